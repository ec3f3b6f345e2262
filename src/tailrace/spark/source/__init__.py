"""The Spark source: plans the slices of a query, and reads a slice in a task.

driver   options.py ─► batch_reader.py or stream_reader.py ─► planning/
task     slice_reader.py ─► transports/ ─► arrow_batches.py

data_source.py    LogDataSource: `format("tailrace")`
options.py        ReadOptions, checked on the driver
store_options.py  options about paths and object stores
table_columns.py  the columns of the table
batch_reader.py   LogReader: a batch query
stream_reader.py  LogStreamReader: micro-batches
starting_offsets.py  the first offsets of a query, also those of a consumer group
slice_reader.py   reads a slice of the log as Arrow batches, in a task
arrow_batches.py  turns filled buffers into Arrow arrays, without copying
group_commits.py  GroupCommits: commits a stream's progress to a consumer group
errors.py         the source's errors
planning/         offset ranges, pruning, tasks
transports/       reads segment files, or a cluster over the network
"""
