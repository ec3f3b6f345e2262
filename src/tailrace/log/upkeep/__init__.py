"""Upkeep of a log: flushes, retention, and the removal of files.

durability.py  Durability: the recovery point, and the flushes that move it
retention.py   which segments must be deleted, and why
removal.py     Removal: files are renamed at once and removed later
deferred.py    Deferred: work that waits for its time
log_owner.py   LogOwner: the work that a log leaves to its directory
"""
