"""The Spark source: what a query reads, in which slices, and how a task reads one.

driver   options.py ─► batch_reader.py or stream_reader.py ─► planning/
task     slice_reader.py ─► transports/ ─► arrow_batches.py

data_source.py     LogDataSource: `format("tailrace")`
options.py         ReadOptions, checked on the driver
store_options.py   options about places and object stores
schema.py          the columns of the table
batch_reader.py    LogReader: a batch query
stream_reader.py   LogStreamReader: micro-batches
slice_reader.py    a task: a slice of the log to Arrow batches
arrow_batches.py   filled buffers as Arrow arrays, without copying
group_commits.py   GroupCommits: a stream's progress as a consumer group
errors.py          the source's errors
planning/          offset ranges, pruning, tasks
transports/        segment files, or a cluster over the wire
"""
