"""`tailrace job compact`: writes the same bytes as the broker's log cleaner, with many tasks.

compact.py          the job
compaction_plan.py  the work of one partition, from names, indexes and checkpoints
single_task.py      a partition compacted by one task
tasks.py            a partition compacted by several tasks
swap.py             swaps the result in if no broker runs
directory_lock.py   the `.lock` of data directories
"""
