"""`tailrace job compact`: the bytes that the local cleaner would write, made by many tasks.

compact.py          the job
plan.py             the work of one partition, from names, indexes and checkpoints
alone.py            a partition compacted by one task
tasks.py            a partition compacted by several tasks
swap.py             swaps the result in where no broker runs
directory_lock.py   the `.lock` of data directories
"""
