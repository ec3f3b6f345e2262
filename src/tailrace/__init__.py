"""Tailrace: a Kafka-compatible broker in Python whose logs can be queried directly from Spark.

ARCHITECTURE.md shows the layers and walks through a request.

    pytest_plugin.py   pytest fixtures: a fresh broker for every test that asks for one, or a shared one
    exports.py         the names of `import tailrace`, loaded on first use
    java.py            finds the Java for Spark and for Kafka's controllers
    __main__.py        `python -m tailrace`
    embedded/          `tailrace.Broker`: a whole broker inside a Python process, for tests, tools and notebooks
    cli/               the command line: one module per command
    node/              a broker and its server put together from one configuration
    server/            the loop: sockets, threads, clock, signals
    spark/             the log as a Spark table: source, sink and jobs
    local_cluster/     a cluster as processes of one machine
    broker/            requests to replies, without sockets or threads
    client/            the batch client of the command line and of Spark
    shares/            share groups: share partitions, acquisition, acknowledgement, persisted state
    fetch/             the Fetch path: sessions, plan, budget, read, wait
    coordinator/       groups, offsets and transactions
    replication/       the replicas hosted here: roles, ISR, high watermark, acks
    tiers/             tiered storage: remote segments and the stores that keep them
    object_stores/     logs read from a bucket
    metadata/          the metadata log, its image, and the controller of a cluster of one
    log/               one partition's log on disk, and the directories of them
    records/           the record batch format
    waiting/           operations that wait for local state or for another node
    quota/             rates, limits and pauses of clients
    protocol/          Kafka's messages: schemas, compiled readers and writers
    diagnostics/       internal errors that the broker survives, and rate-limited log lines
    model/             identifiers, error codes, topic configuration
    metrics/           histograms, metric families, Prometheus' text format
"""

from tailrace.exports import __getattr__ as __getattr__

__version__ = "0.1.0"
