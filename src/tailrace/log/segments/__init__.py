"""Segments: the files that a log consists of, with their indexes.

A `Segment` is a .log file and its indexes. `SegmentList` has all segments of a log by base offset; the last one is the
active segment, and `roll_policy.py` decides when a new one is started.

    segment.py       Segment: a .log file with its indexes
    segment_list.py  SegmentList: the segments of a log by base offset
    segment_swap.py  replaces segments so that a crash leaves the old or the new ones
    open_segments.py OpenSegments: bounds the number of segments with open files
    roll_policy.py   when a new segment has to be started
    batch_walk.py    walks the batches of a log file
    position.py      LogPosition and FileSlice: where records are
    indexes/         the offset, time and transaction index of a segment
"""
