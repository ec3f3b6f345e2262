"""The batch client: the command line, Spark and jobs reach any Kafka cluster with it.

It moves whole record batches and makes no object per record. May import records, protocol and model.

    bootstrap.py ─► cluster/cluster.py (metadata, leaders, retries) ─► connections.py ─► connection.py ─► sockets.py

    settings.py      ClientSettings: timeouts, client id, security
    bootstrap.py     parses bootstrap lists
    address.py       Address: host and port
    connection.py    one blocking connection to one broker
    connections.py   one connection per broker, reused
    sockets.py       plain TCP sockets, and the choice between plain and TLS
    patience.py      the time budget of a request and the pauses between retries
    errors.py        ClientError and its kinds
    admin.py         topics, records and disks
    configs.py       configs of topics and brokers
    offsets.py       first and last offsets, and the offset of a time
    batches.py       fetches record batches
    isolation.py     read_committed: which fetched batches a consumer may see
    cluster/         a cluster as one object to ask: metadata, coordinators, state
    groups/          describe, reset and delete groups
    producing/       writes batches, with idempotence and transactions
    security/        TLS, SASL, tokens and key stores
"""
