"""Compaction keeps only the latest record of each key.

`cleaner.clean_log` scans the keys of the dirty part of a log, writes cleaned segments beside the old ones, and swaps
them in.

    cleaner.py               compacts one log, group by group
    segment_groups.py        the segments that become one segment
    cleaner_range.py         DirtyRange: the dirty part of a log, and if cleaning is due
    compaction.py            decides which records are kept: KeyScan, SurvivingRecords
    cleaner_kernels.py       the loops over records of both passes, compiled
    cleaned_segment.py       writes a cleaned segment with its indexes
    cleaned_transactions.py  the transactions of the batches that are cleaned
    cleaner_checkpoint.py    the offset up to which each log is compacted
    proposal.py              compacted segments that a job has written, checked and swapped in by the owner of the log
"""
