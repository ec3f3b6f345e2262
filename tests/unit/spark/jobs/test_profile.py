"""A profile has the counts of a plain loop over the records, for any cut of the log into slices."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tailrace
from tailrace.records.batch import Codec
from tailrace.spark.jobs.errors import JobError
from tailrace.spark.jobs.profile import profile as profile_module
from tailrace.spark.jobs.profile.facts import SizeHistogram, TimeSeries
from tailrace.spark.jobs.profile.page import page, summary, write_page
from tailrace.spark.jobs.profile.profile import ProfileReport, collect_profile, plan_profile
from tailrace.spark.jobs.profile.task import merge_partition, profile_slice
from tests.support.filled_topics import put
from tests.support.golden import golden
from tests.support.source_rows import read


def profile(place: str, **options: Any) -> ProfileReport:
    partitions, tasks = plan_profile(place, **options)
    results: dict[int, dict[int, Any]] = defaultdict(dict)
    for task in tasks:
        for group, number, found in profile_slice(task):
            results[group][number] = found
    merged = {
        group: merge_partition(group, [some[number] for number in sorted(some)]) for group, some in results.items()
    }
    return collect_profile(place, partitions, merged)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with tailrace.Broker(tmp_path_factory.mktemp("profile") / "data", log_index_interval_bytes=100) as broker:
        broker.create_topic("t", partitions=2)
        some = [(b"k%d" % (n % 7) if n % 3 else None, None if n % 11 == 0 else b"v" * (n % 40)) for n in range(200)]
        put(broker.bootstrap, "t", 0, some, codec=Codec.ZSTD)
        put(broker.bootstrap, "t", 0, some[:50], per_batch=9)
        put(broker.bootstrap, "t", 1, some[:30], timestamp=1_700_000_500_000)
        yield broker


def expected(rows: list[dict[str, Any]]) -> dict[str, Any]:
    latest: dict[bytes, int] = {}
    for number, row in enumerate(rows):
        if row["KEY"] is not None:
            latest[row["KEY"]] = number
    times = [row["TIMESTAMP"] for row in rows]
    keys = Counter(row["KEY"] for row in rows if row["KEY"] is not None)
    sizes = [len(row["KEY"] or b"") + len(row["VALUE"] or b"") for row in rows]
    return {
        "records": len(rows),
        "tombstones": sum(row["VALUE"] is None for row in rows),
        "keyless": sum(row["KEY"] is None for row in rows),
        "record_bytes": sum(sizes),
        "out_of_order": sum(later < earlier for earlier, later in pairwise(times)),
        "distinct": len(latest),
        "superseded": sum(keys.values()) - len(latest),
        "superseded_bytes": sum(
            size for number, size in enumerate(sizes)
            if rows[number]["KEY"] is not None and latest[rows[number]["KEY"]] != number
        ),
        "top": max(keys.values(), default=0),
    }  # fmt: skip


def found_in(one: Any) -> dict[str, Any]:
    facts, keys = one.facts, one.keys
    return {
        "records": facts.records,
        "tombstones": facts.tombstones,
        "keyless": facts.keyless,
        "record_bytes": facts.record_bytes,
        "out_of_order": facts.out_of_order,
        "distinct": keys.distinct,
        "superseded": keys.superseded,
        "superseded_bytes": keys.superseded_bytes,
        "top": keys.top[0][1] if keys.top else 0,
    }


@pytest.mark.parametrize("way", ["files", "wire", "files in small slices"])
def test_a_profile_equals_the_counts_of_a_plain_loop(
    broker: tailrace.Broker, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = broker.bootstrap if way == "wire" else broker.data
    if way == "files in small slices":
        monkeypatch.setattr(profile_module, "BYTES_PER_TASK", 700)
    (topic,) = profile(place, topics=["t"], parallelism=5).topics
    for number in range(2):
        rows = read({"kafka.bootstrap.servers": broker.bootstrap, "assign": f'{{"t": [{number}]}}'})
        assert found_in(topic.partitions[number]) == expected(rows)
    assert topic.facts.records == 280
    assert topic.facts.batches == 40 + 6 + 6
    assert topic.facts.codecs["zstd"].batches == 40
    assert sum(records for records, _ in topic.facts.times.buckets.values()) == 280
    assert topic.facts.value_sizes.largest == 39


def test_a_profile_of_batch_headers_has_their_counts(broker: tailrace.Broker) -> None:
    (quick,) = profile(broker.data, batches_only=True).topics
    (whole,) = profile(broker.data).topics
    for name in ("records", "batches", "bytes", "aborted_records", "min_time"):
        if name != "min_time":
            assert getattr(quick.facts, name) == getattr(whole.facts, name)
    assert quick.keys is None
    assert quick.facts.codecs["zstd"].ratio is None


def test_a_profile_of_kafkas_files_counts_transactions_and_superseded_records(tmp_path: Path) -> None:
    path = golden("broker-clean").unpack(tmp_path)
    report = profile(str(path))
    by_name = {topic.name: topic for topic in report.topics}
    for name, topic in by_name.items():
        for one in topic.partitions:
            options = {"path": str(path), "assign": f'{{"{name}": [{one.partition.partition}]}}'}
            rows = read({**options, "kafka.isolation.level": "read_committed"})
            every = [row for row in read(options) if row["OFFSET"] < one.end]  # one transaction is still open
            assert found_in(one) == expected(rows)
            assert one.facts.aborted_records == len(every) - len(rows)
    assert by_name["payments"].facts.aborted_records > 0
    assert by_name["payments"].facts.control_batches > 0
    text = page(report)
    assert text.count("<svg") >= 5 * 4
    assert "payments" in text
    assert all(topic.name in text for topic in report.topics)
    assert dict(summary(by_name["users"]))["distinct keys"]
    written = write_page(report, str(tmp_path / "out"))
    assert [Path(name).name for name in written] == ["profile.html", "profile.json"]


def test_a_profile_without_topics_is_refused(tmp_path: Path) -> None:
    with tailrace.Broker(tmp_path / "data"):
        pass
    with pytest.raises(JobError, match="there are no topics in"):
        profile(str(tmp_path / "data"))


@given(st.lists(st.integers(0, 100_000), min_size=1), st.integers(1, 100))
def test_quantiles_have_a_precision_of_one_64th(sizes: list[int], percent: int) -> None:
    share = percent / 100
    histogram, other = SizeHistogram(), SizeHistogram()
    histogram.add(Counter(sizes[::2]))
    other.add(Counter(sizes[1::2]))
    histogram.merge(other)
    ordered = sorted(sizes)
    number = next(n for n in range(len(ordered)) if n + 1 >= share * len(ordered))
    exact = ordered[number]
    assert exact * 63 / 64 - 1 <= histogram.quantile(share) <= exact
    assert histogram.largest == ordered[-1]


@given(
    st.lists(st.tuples(st.integers(0, 10**9), st.integers(1, 5), st.integers(0, 9)), max_size=900), st.integers(0, 900)
)
def test_a_time_series_keeps_its_totals_in_any_order_of_merging(points: list[tuple[int, int, int]], cut: int) -> None:
    one, other = TimeSeries(), TimeSeries()
    one.add(points[:cut])
    other.add(points[cut:])
    one.merge(other)
    assert len(one.buckets) <= 400
    by_bucket: Counter[int] = Counter()
    for second, records, _ in points:
        by_bucket[second // one.width_s] += records
    assert {number: records for number, (records, _) in one.buckets.items()} == by_bucket
    assert sum(size for _, size in one.buckets.values()) == sum(size for *_, size in points)
