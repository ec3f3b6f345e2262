"""Reads logs in a bucket like logs on disk, and writes objects. The package may import log, records and model; it uses
pyarrow for reading.

opening.py ─► object_files.py ─► object_file.py ─► read_ahead.py ─► store.py

store_address.py  a local path, or s3://bucket/prefix
settings.py       StoreSettings: endpoint, region, credentials
opening.py        opens the files of an address
object_files.py   ObjectFiles: a bucket as the log's `Files`
object_file.py    ObjectFile: an object as a file, read with few requests
read_ahead.py     ReadAhead: fetches announced parts in advance, within a memory bound
store.py          ObjectStore: list a folder, read a range
writing/          writes objects, without pyarrow
"""
