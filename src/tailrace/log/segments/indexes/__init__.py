"""The three indexes of a segment. None has a checksum: they are hints, and are rebuilt from the log if it disagrees.

offset_index.py       OffsetIndex: offset → position in the .log file, sparse
time_index.py         TimeIndex: timestamp → offset, sparse
transaction_index.py  TransactionIndex: the aborted transactions
index_file.py         IndexFile: entries of a fixed width, and the search over them
index_trust.py        compares an index with its log before it is used
"""
