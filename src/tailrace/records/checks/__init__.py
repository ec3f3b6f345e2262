"""Checks of produced records.

validation → record_walk (compressed batches) → record_rules

validation.py       the rules for batches, and the changes that the broker makes
record_rules.py     the rules for records, and the errors that name them
record_walk.py      one walk over the records of a batch, decompressed piece by piece
check_kernels.py    one pass over the header and the records of a batch, compiled
checked_records.py  CheckedRecords: the result of the checks, and their estimated cost
produce_request.py  the rules for the records field of a Produce request
"""
