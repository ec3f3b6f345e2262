"""The record batch format: views over bytes, builders, validation, codecs. May import: model.

Code in Python works on whole batches. Loops over records are in `kernels.py` and in `columnar/`, which are compiled.

    produce   validation.is_kept_as_sent (one kernel call), or validation.check_produced → record_walk → record_rules

Batches and records
    batch.py            RecordBatch: a view over one batch of format 2, and its header
    record.py           Record: the records of a batch, decoded on request
    builder.py          BatchBuilder: a new batch from records
    control.py          control batches: transaction markers and the records of a quorum
    legacy.py           messages of formats 0 and 1
    conversion.py       conversion between the formats
    resend.py           a batch of one log as a producer sends it to another
    raw_batches.py      RawBatches: whole batches out of chunks
    kernels.py          the loops over records, compiled
    utf8.py             UTF-8 as Java reads it

Checks of produced records
    validation.py       the rules for batches, and the changes that the broker makes
    record_rules.py     the rules for records, and the errors that name them
    record_walk.py      one walk over the records of a batch, decompressed piece by piece
    checked_records.py  CheckedRecords: the outcome of the checks; the estimated cost of checks
    produce_request.py  what the records field of a Produce request may hold

Sub-packages
    codecs/             compression and CRC-32C
    columnar/           record batches to columns and back
"""
