"""Transactions: the coordinator behind `__transaction_state`.

May import: what `coordinator` may. A transaction is a value that changes by named steps (`transaction.py`); what a request
asks of it is decided in `fencing.py` and `ending.py`; `transaction_coordinator.py` turns that into records and answers.
"""
