"""The metrics of tiered storage have Kafka's names and the counts of the tasks."""

from __future__ import annotations

from tailrace.broker.metrics.broker_metrics import broker_families
from tests.support.memory_node import start
from tests.support.tiered_node import TOPIC, TieredNode

TOPICS = "kafka_server_brokertopicmetrics_"


def values(node: TieredNode) -> dict[tuple[str, ...], float]:
    """Return the samples without a suffix, by name and labels."""
    return {
        (family.name, *sample.labels.values()): sample.value
        for family in broker_families(node.broker.services, node.now_ms)
        for sample in family.samples
        if not sample.suffix
    }


def test_copies_reads_and_deletions_are_counted_by_topic_and_in_total() -> None:
    node = TieredNode()
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    before = values(node)
    assert before[TOPICS + "remotecopylagsegments", TOPIC] == len(node.log().segments) - 1
    assert before[TOPICS + "remotecopylagbytes", TOPIC] == sum(one.size for one in list(node.log().segments)[:-1])
    node.run_tasks()
    node.fetch(0)
    found = values(node)
    segments = sum(name.endswith(".log") for name in node.remote_files())
    for labels in ((), (TOPIC,)):
        assert found[TOPICS + "remotecopyrequests", *labels] == segments
        assert found[TOPICS + "remotecopybytes", *labels] == found[TOPICS + "remotelogsizebytes", *labels] > 0
        assert found[TOPICS + "remotefetchrequests", *labels] == 1
        assert found[TOPICS + "remotefetchbytes", *labels] > 0
        assert found[TOPICS + "remotelogmetadatacount", *labels] == segments
        assert found[TOPICS + "remotecopylagsegments", *labels] == 0
        assert found[TOPICS + "remotecopyerrors", *labels] == 0
    assert node.delete() == 0
    node.run_tasks()
    gone = values(node)
    assert (TOPICS + "remotecopybytes", TOPIC) not in gone
    assert gone[TOPICS + "remotecopybytes",] == found[TOPICS + "remotecopybytes",]
    assert gone[TOPICS + "remotedeleterequests",] == segments


def test_reads_that_wait_and_fetches_that_expire_have_metrics() -> None:
    pool = "org_apache_kafka_storage_internals_log_remotestoragethreadpool_"
    held: list[object] = []
    node = TieredNode(static={"remote.log.reader.threads": "2"})
    assert node.create({"local.retention.bytes": "1"}).error_code == 0
    node.produce(20)
    node.run_tasks()
    calls = node.broker.services.store_calls
    assert calls is not None
    calls._submit = lambda lane, work, threads: held.append(work)
    for offset in (0, 2, 4):
        assert node.client.send(node.fetch_request(offset), 12) == []
    found = values(node)
    assert found[pool + "remotelogreadertaskqueuesize",] == 1
    assert found[pool + "remotelogreaderavgidle_percent",] == 0
    node.tick(500)
    assert values(node)["kafka_server_delayedremotefetchmetrics_expires",] == 3


def test_without_tiered_storage_there_are_no_such_metrics() -> None:
    names = {family.name for family in broker_families(start().services, 0)}
    assert not [name for name in names if "remote" in name and "remotetimems" not in name]
