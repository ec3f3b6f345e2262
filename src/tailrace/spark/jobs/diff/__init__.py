"""`tailrace job diff`: compares two directories or clusters record by record.

diff.py          the job
record_diff.py   compares two copies of a partition as Arrow batches
"""
