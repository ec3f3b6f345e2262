"""The record batch format: views over bytes, builders, validation, codecs. May import: model.

Code in Python works on whole batches. Loops over records are in `kernels.py` and in `columnar/`, which are compiled.

    produce   checks/validation.is_kept_as_sent (one kernel call), or check_produced → record_walk → record_rules

Batches and records
    batch.py            RecordBatch: a view over one batch of format 2, and its header
    record.py           Record: the records of a batch, decoded on request
    builder.py          BatchBuilder: a new batch from records
    control_records.py  control batches: transaction markers and the records of a quorum
    legacy.py           messages of formats 0 and 1
    conversion.py       conversion between the formats
    resend.py           copies a batch of one log as a producer would send it to another
    raw_batches.py      RawBatches: whole batches from chunks of a log or a Fetch response
    kernels.py          the loops over records, compiled
    header_kernels.py   the walk over batch headers, compiled
    utf8.py             UTF-8 as Java reads it

Sub-packages
    checks/    checks of produced records
    codecs/    compression and CRC-32C
    columnar/  record batches to columns and back
"""
