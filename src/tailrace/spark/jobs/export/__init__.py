"""`tailrace job export`: topics to Parquet, incrementally and each record once.

export.py          the job
export_ledger.py   ExportLedger: the offsets that are exported already
slice_export.py    writes a slice of the log to Parquet files, in a task
decoded_values.py  decodes values as JSON, Avro or Protobuf
"""
