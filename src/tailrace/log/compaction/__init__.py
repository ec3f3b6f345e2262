"""Compaction: of the records with one key only the latest is kept.

`cleaner.clean_log` scans the keys of the dirty part of a log, writes cleaned segments beside the old ones, and swaps
them in.

    cleaner.py               compacts one log, group by group
    cleaner_range.py         DirtyRange: which part of a log is dirty, and whether cleaning is due
    compaction.py            decides which records are kept: KeyScan, Survivors
    cleaner_kernels.py       the loops over records of both, compiled
    cleaned_segment.py       writes a cleaned segment with its indexes
    cleaned_transactions.py  the transactions around the batches that are cleaned
    cleaner_checkpoint.py    up to which offset each log is compacted
    proposal.py              compacted segments that a job has written, checked and swapped in by the owner of the log
"""
