"""Tables with one row for each key: the newest record, as in a compacted topic.

    slices ─► spread (in tasks) ─ shuffle by bucket ─► rewrite_bucket (in tasks) ─► one commit that replaces files

latest_rounds.py   LatestRounds: writes and commits the rounds of such a table
bucket_tasks.py    the tasks: the newest records of a round by bucket, and the new files of a bucket
newest.py          the newest record of each key in an Arrow table, and rows without certain keys

Each row is in a bucket, chosen by its key. A round replaces all files of the buckets in which it has keys. So readers
of any kind see plain files, without delete files or deletion vectors.
"""
