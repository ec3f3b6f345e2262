"""Opening a log. After a crash the unflushed segments are read whole, and a torn tail is cut off.

`recovery.open_log` completes interrupted swaps, rebuilds missing indexes, scans unflushed segments, and brings the
producer states to the end of the log.

    recovery.py          open_log and its steps
    recovery_scan.py     RecoveryScan: one segment, read whole into indexes, epochs and producer states
    broken_files.py      keeps the bytes that recovery cuts, as `.broken` files
    scan_kernels.py      the loops over batches of a scan, compiled
    interrupted_swap.py  completes or undoes a replacement of segments that a crash interrupted
    adoption.py          appends finished segments that a bulk load or a restore has written
"""
