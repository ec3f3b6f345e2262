"""The three indexes of a segment. They have no checksum: an index is a hint, and is rebuilt if the log disagrees.

offset_index.py       OffsetIndex: offset → position in the .log file, sparse
time_index.py         TimeIndex: timestamp → offset, sparse
transaction_index.py  TransactionIndex: the aborted transactions
index_file.py         IndexFile: entries of a fixed width, and the search over them
index_kernels.py      the binary search in the entries, compiled
index_trust.py        compares an index with its log before it is used
"""
