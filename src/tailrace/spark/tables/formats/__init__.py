"""Iceberg and Delta tables: how they are created, committed to and maintained.

table.py                 Table: the interface of both formats
iceberg.py               IcebergTable, through pyiceberg
iceberg_files.py         data files of an Iceberg table: read by workers, replaced by commits
iceberg_maintenance.py   merges files of an Iceberg table, and removes old snapshots
delta.py                 DeltaTable, through delta-rs
delta_merge.py           merges files of a Delta table
partitioning.py          the partitions of a table: date, hour and columns
stored_file.py           StoredFile: a data file that a table has
merge_plan.py            chooses small files that are worth a merge
"""
