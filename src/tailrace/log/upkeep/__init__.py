"""Upkeep of a log: flushes, retention, and the removal of files.

durability.py  Durability: the recovery point, and the flushes that move it
retention.py   selects the segments to delete, with the reason
removal.py     Removal: files are renamed at once and removed later
deferred.py    Deferred: work that is due later
log_offsets.py LogOffsets: the bounds of a log as properties, and the part of it in a remote store
log_owner.py   LogOwner: the work that a log leaves to its directory
"""
