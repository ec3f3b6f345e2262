"""Share groups (KIP-932): share partitions, acquisition, acknowledgement, sessions, persisted state.

share_fetch.py ─► share_partition.py (where to read) ─► the log ─► acquiring.py ─► share_read.py ─► response
acknowledgements ─► acknowledging.py ─► state/ ─► response

share_fetch.py         ShareFetch: a member's fetch until its response
share_sessions.py      ShareSessions: the partitions that each member fetches
share_partitions.py    SharePartitions: all share partitions of this broker, persisted and timed
share_partition.py     SharePartition: a group's position in a partition, and its records in flight
in_flight.py           InFlightBatch: records in flight and their delivery state
acquiring.py           acquires records for a member until their lock expires
acknowledging.py       acknowledges or releases acquired records
lock_expiry.py         releases records whose lock has expired
aborted.py             archives records of aborted transactions
share_read.py          the slice of a read that holds the acquired records
start_offset.py        share.auto.offset.reset
delivery_settings.py   DeliverySettings: a group's delivery configs
state/                 the share coordinator: state in `__share_group_state`
"""
