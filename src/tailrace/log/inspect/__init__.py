"""The commands of `tailrace log`: they read a data directory and, except repair, change nothing.

survey.py            a partition by its files and indexes, without reading segments
dump.py              the contents of files, entry by entry, as DumpLogSegments prints them
dump_log.py          the batches and records of a .log or .checkpoint file
dump_decoders.py     keys and values as text
explain.py           the steps of one read
verify.py            checks everything in a data directory
verify_segment.py    checks one segment, batch by batch
verify_indexes.py    compares indexes with their log
verify_producers.py  compares transaction indexes and snapshots with their log
recorded_check.py    the check of a segment, recorded for a later verification
resync.py            finds the next batch after damage
repair.py            repairs the problems that verify found
findings.py          Finding: a problem and its place
offline.py           opens a log without changing the disk
offline_records.py   the records of a log opened by offline.py
"""
