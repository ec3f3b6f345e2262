"""The batch client of the command line, the Spark source and sink, and the jobs. It works with any Kafka cluster.

The client moves whole record batches and creates no object per record. It may import records, protocol and model.

    admin.py, batches.py, … ─► cluster/cluster_client.py (metadata, leaders) ─► network/connections.py ─► broker

    settings.py         ClientSettings: timeouts, client id, security
    errors.py           ClientError and its kinds
    admin.py            topics, records and disks
    configs.py          configs of topics and brokers
    offsets.py          first and last offsets, and the offset of a time
    batches.py          fetches record batches
    visible_batches.py  read_committed: which fetched batches a consumer may see
    network/            addresses, connections and retries
    cluster/            ClusterClient: requests to a cluster, its metadata, coordinators and state
    groups/             describe, reset and delete groups
    producing/          writes batches, with idempotence and transactions
    access/             access control lists, SCRAM users and client quotas
    security/           TLS, SASL, tokens and key stores
"""
