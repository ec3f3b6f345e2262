"""Client quotas: measured rates, limits, and the pause of a client that exceeds one. No sockets, no clock.

rate.py                Rate and TokenBucket: the measurements of Kafka's quotas
limits.py              QuotaLimits: which limit applies to a client, and which clients share it
rate_quota.py          RateQuota: bytes per second, or request time
mutation_quota.py      MutationQuotas: created and deleted partitions
connection_quota.py    ConnectionQuota: new connections per address
replication_quota.py   ReplicationQuota: bytes of replication
"""
