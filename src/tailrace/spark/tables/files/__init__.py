"""The Parquet files of a table, on this machine or in an object store.

parquet_files.py        ParquetFiles: files of a target size, one for each partition of the table
parquet_statistics.py   statistics of a Parquet file, for Delta
parquet_records.py      ParquetRecords: the records of `consume --parquet`
storage.py              Storage: the location of a table's files
delta_files.py          the files of a Delta table as a pyarrow file system
"""
