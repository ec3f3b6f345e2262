"""Checks of produced records.

validation → record_walk (compressed batches) → record_rules

validation.py       the rules for batches, and the changes that the broker makes
record_rules.py     the rules for records, and the errors that name them
record_walk.py      one walk over the records of a batch, decompressed piece by piece
checked_records.py  CheckedRecords: the outcome of the checks; the estimated cost of checks
produce_request.py  what the records field of a Produce request may hold
"""
