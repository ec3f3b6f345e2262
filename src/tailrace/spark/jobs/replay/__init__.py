"""`tailrace job replay`: copies a range of a log into another cluster.

replay.py   the job
copy.py     copies one partition
state.py    ReplayState: the progress of each partition
"""
