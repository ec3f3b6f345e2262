"""The Spark sink: writes rows to topics, each exactly once. The package may import client and records.

writer.py (driver) ─► task_writer.py (tasks, open transactions) ─► decision.py ─► ledger.py ─► commit

writer.py          the objects that Spark calls for a batch or a micro-batch
options.py         WriteOptions, checked on the driver
input_columns.py   the columns of a DataFrame that make records
task_writer.py     TaskWriter: encodes the rows of a task into record batches, and sends them
splitting.py       splits a batch that is too large for a topic
ledger.py          Ledger: decisions about micro-batches, stored in the target cluster
decision.py        Decision: the transactions of a micro-batch that are to be committed
errors.py          the sink's errors
"""
