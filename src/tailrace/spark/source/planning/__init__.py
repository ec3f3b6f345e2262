"""Planning of a query: the offsets to read, and how they are cut into tasks.

offset_ranges.py   resolves starting and ending points to offsets
data_loss.py       the ranges that can be read; failOnDataLoss decides about the others
pruning.py         conditions on topics, partitions, offsets and times
query_plan.py      the ranges of a batch query
admission.py       the number of offsets in the next micro-batch of a stream
planning.py        cuts ranges into tasks, by bytes or by offsets
"""
