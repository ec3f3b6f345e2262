"""Handlers: one module per API, named like the API, in folders by family.

A handler is `handle(request, now_ms, *, …)`. Its keyword-only parameters are services (`broker/services.py`). It
returns the response, or steps that can pause, or None if the response is sent later or never. It raises KafkaError to
refuse the whole request.

    api_table.py        the APIs that are served: key, versions, handler
    controller_table.py the APIs at a controller listener
    request_context.py  ConnectionContext, Request, Reply

    data/          records: Produce, Fetch, ListOffsets, share fetches
    groups/        classic, consumer and streams groups
    offsets/       committed offsets of groups
    shares/        share groups and their state
    transactions/  transactions and producer ids
    topics/        topics, partitions and their replicas, Metadata
    configs/       configs, client quotas, client metrics
    security/      ACLs, SCRAM credentials, delegation tokens, SASL
    controllers/   what only a controller listener serves: registrations, heartbeats, the metadata log
    cluster/       the cluster, its nodes and their log directories, ApiVersions
"""
