"""Opening a log. After a crash the unflushed segments are read whole, and a torn tail is cut off.

`recovery.open_log` finishes interrupted swaps, rebuilds missing indexes, scans what was not flushed, and brings the
producer states to the end of the log.

    recovery.py          open_log and its steps
    recovery_scan.py     RecoveryScan: one segment, read whole into indexes, epochs and producer states
    scan_kernels.py      the loops over batches of a scan, compiled
    interrupted_swap.py  finishes or undoes a replacement of segments that a crash interrupted
    adoption.py          appends finished segments that a bulk load or a restore has written
"""
