"""The Spark sink: rows into topics, each once. May import client and records.

writer.py (driver) ─► task_writer.py (tasks, open transactions) ─► decision.py ─► ledger.py ─► commit

writer.py          the objects that Spark calls for a batch or a micro-batch
options.py         WriteOptions, checked on the driver
input_columns.py   which columns make records
task_writer.py     TaskWriter: a task's rows to record batches to brokers
splitting.py       splits a batch that a topic finds too large
ledger.py          Ledger: decisions about micro-batches, kept in the target cluster
decision.py        Decision: the transactions of a micro-batch that are to be committed
errors.py          the sink's errors
"""
