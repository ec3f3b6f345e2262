"""Which offsets a query reads, and how they are cut into tasks.

offset_ranges.py   starting and ending points as offsets, and ranges between them
pruning.py         conditions on topics, partitions, offsets and times
query_plan.py      the ranges of a batch query
admission.py       how much a stream takes into its next micro-batch
planning.py        cuts ranges into tasks, by bytes or by offsets
"""
