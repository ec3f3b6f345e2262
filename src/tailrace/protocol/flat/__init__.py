"""Produce, Fetch and OffsetCommit as flat tuples, without an object for each struct of a message.

One kernel reads the flexible versions of a request with any number of partitions in one pass, and another writes the
response. All other versions, and requests with unexpected tagged fields, are read as messages and converted to the same
tuples. Handlers therefore see one form.

    read_kernels.py    requests of flexible versions, from bytes to tuples (compiled)
    write_kernels.py   responses of flexible versions, from tuples to bytes (compiled)
    produce.py         the tuples of Produce; conversion from and to messages
    fetch.py           the tuples of Fetch; conversion from and to messages
    offset_commit.py   the tuples of OffsetCommit; conversion from and to messages
    replica_fetch.py   encoder and decoder of a follower's Fetch
"""
