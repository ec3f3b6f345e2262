"""The support of each of Kafka's broker keys.

    HONOURED       the key works as in Kafka
    NO_EFFECT      the key tunes a part that Tailrace does not have, such as a thread pool; setting it logs a warning
    NOT_SUPPORTED  the key enables a feature that Tailrace does not have; any value but the default is refused

A key is looked up by its full name, then by the longest listed prefix that ends with a dot.
"""

from __future__ import annotations

from enum import Enum
from typing import Final


class Support(Enum):
    HONOURED = "honoured"
    NO_EFFECT = "no effect"
    NOT_SUPPORTED = "not supported"


_HONOURED: Final = (
    # identity and addresses
    "node.id", "broker.id", "broker.rack", "process.roles", "listeners", "advertised.listeners",
    "listener.security.protocol.map", "inter.broker.listener.name", "security.inter.broker.protocol",
    "controller.listener.names", "controller.quorum.bootstrap.servers", "controller.quorum.voters",
    "log.dir", "log.dirs", "cordoned.log.dirs",
    "metadata.log.", "metadata.max.retention.", "internal.metadata.log.segment.bytes",
    # topics
    "auto.create.topics.enable", "delete.topic.enable", "num.partitions", "default.replication.factor",
    "min.insync.replicas", "unclean.leader.election.enable", "compression.", "message.max.bytes",
    "log.cleanup.policy", "log.flush.", "log.index.", "log.message.timestamp.", "log.preallocate", "log.retention.",
    "log.roll.", "log.segment.", "log.initial.task.delay.ms", "log.local.retention.",
    "log.cleaner.enable", "log.cleaner.backoff.ms", "log.cleaner.delete.retention.ms",
    "log.cleaner.dedupe.buffer.size", "log.cleaner.io.buffer.load.factor", "log.cleaner.io.buffer.size",
    "log.cleaner.io.max.bytes.per.second", "log.cleaner.max.compaction.lag.ms", "log.cleaner.min.",
    # connections and requests
    "socket.listen.backlog.size", "socket.receive.buffer.bytes", "socket.request.max.bytes",
    "socket.send.buffer.bytes", "max.connections", "max.connections.", "max.connection.creation.rate",
    "connections.max.idle.ms",
    "fetch.max.bytes", "max.incremental.fetch.session.cache.slots", "max.request.partition.size.limit",
    "quota.window.", "controller.quota.window.", "telemetry.max.bytes",
    "unstable.api.versions.enable", "unstable.feature.versions.enable",
    # TLS
    "ssl.keystore.", "ssl.truststore.", "ssl.key.password", "ssl.client.auth", "ssl.enabled.protocols",
    "ssl.cipher.suites", "ssl.endpoint.identification.algorithm", "ssl.principal.mapping.rules",
    # SASL
    "sasl.enabled.mechanisms", "sasl.server.max.receive.size", "connections.max.reauth.ms",
    "connection.failed.authentication.delay.ms",
    "sasl.mechanism.inter.broker.protocol", "sasl.mechanism.controller.protocol",
    "sasl.oauthbearer.", "sasl.login.",
    "delegation.token.",
    # ACLs
    "authorizer.class.name",
    # a broker with separate controllers
    "broker.heartbeat.interval.ms", "initial.broker.registration.timeout.ms", "controlled.shutdown.enable",
    "controller.quorum.request.timeout.ms", "controller.quorum.retry.backoff.ms",
    # a controller of other brokers
    "auto.leader.rebalance.enable", "leader.imbalance.check.interval.seconds", "broker.session.timeout.ms",
    "metadata.max.idle.interval.ms", "unclean.leader.election.interval.ms",
    # replication
    "replica.fetch.", "replica.socket.timeout.ms", "replica.selector.class",
    "replica.lag.time.max.ms", "replica.high.watermark.checkpoint.interval.ms",
    "replication.quota.window.", "alter.log.dirs.replication.quota.window.",
    "leader.replication.throttled.rate", "follower.replication.throttled.rate", "num.replica.fetchers",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    # producers, groups, transactions
    "producer.id.expiration.", "add.partitions.to.txn.", "transaction.", "transactional.id.expiration.ms",
    "offset.metadata.max.bytes", "offsets.", "group.", "request.timeout.ms",
    "share.coordinator.", "queued.max.request.bytes",
    # tiered storage
    "remote.",
)  # fmt: skip

_NO_EFFECT: Final = (
    "sasl.jaas.config", "sasl.server.callback.handler.class", "sasl.login.callback.handler.class", "ssl.protocol",
    "background.threads", "num.io.threads", "num.network.threads", "num.recovery.threads.per.data.dir",
    "num.replica.alter.log.dirs.threads", "log.cleaner.threads",
    "group.coordinator.threads", "group.coordinator.background.threads",
    "share.coordinator.threads", "share.coordinator.load.buffer.size", "share.coordinator.append.linger.ms",
    "share.coordinator.cached.buffer.max.bytes",
    "queued.max.requests",
    "fetch.purgatory.", "producer.purgatory.",
    "delete.records.purgatory.", "share.fetch.purgatory.",
    "controller.performance.", "controller.quorum.", "controller.socket.timeout.ms",
    "internal.metadata.",
    "kafka.metrics.", "metric.reporters", "metrics.", "log.dir.failure.timeout.ms",
    "transaction.state.log.load.buffer.size",
    "replica.socket.", "socket.connection.setup.timeout.", "server.max.startup.time.ms",
    "early.start.listeners",
    "follower.fetch.last.tiered.offset.enable",
    "remote.log.storage.manager.class.path", "remote.log.metadata.manager.class.path",
    "remote.log.metadata.manager.listener.name", "remote.log.manager.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
)  # fmt: skip

_NOT_SUPPORTED: Final = (
    "alter.config.policy.class.name", "create.topic.policy.class.name",
    "client.quota.callback.class", "principal.builder.class", "config.providers",
    "sasl.", "sasl.login.class", "security.providers", "ssl.",
    "controller.quorum.auto.join.enable", "group.share.persister.class.name", "transaction.two.phase.commit.enable",
)  # fmt: skip

_TABLE: Final = {
    **dict.fromkeys(_HONOURED, Support.HONOURED),
    **dict.fromkeys(_NO_EFFECT, Support.NO_EFFECT),
    **dict.fromkeys(_NOT_SUPPORTED, Support.NOT_SUPPORTED),
}


def support_of(name: str) -> Support:
    """Return the support of one of Kafka's keys. Raise KeyError for a key that is not listed."""
    for length in range(len(name), 0, -1):
        prefix = name[:length]
        if prefix in _TABLE and (prefix == name or prefix.endswith(".")):
            return _TABLE[prefix]
    raise KeyError(name)
