"""The batch client: the command line, Spark and jobs reach any Kafka cluster with it.

It moves whole record batches and makes no object per record. May import records, protocol and model.

    admin.py, batches.py, … ─► cluster/cluster.py (metadata, leaders, retries) ─► network/connections.py ─► broker

    settings.py    ClientSettings: timeouts, client id, security
    errors.py      ClientError and its kinds
    admin.py       topics, records and disks
    configs.py     configs of topics and brokers
    offsets.py     first and last offsets, and the offset of a time
    batches.py     fetches record batches
    isolation.py   read_committed: which fetched batches a consumer may see
    network/       addresses, connections and retries
    cluster/       a cluster as one object to ask: metadata, coordinators, state
    groups/        describe, reset and delete groups
    producing/     writes batches, with idempotence and transactions
    security/      TLS, SASL, tokens and key stores
"""
