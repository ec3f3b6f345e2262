"""Transactions: the coordinator behind `__transaction_state`.

May import: what `coordinator` may. A transaction is a value that changes by named steps (`transaction.py`); what a
request asks of it is decided in `transaction_shard.py` and `ending.py`; `markers.py` tells the end to its partitions.
"""
