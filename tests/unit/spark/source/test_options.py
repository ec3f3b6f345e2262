"""Options have the names and rules of Spark's source; a wrong one is reported by name."""

from __future__ import annotations

from typing import Any

import pytest

from tailrace.model.ids import TopicPartition
from tailrace.spark.source.errors import WrongOption
from tailrace.spark.source.options import ReadOptions, read_options
from tailrace.spark.source.planning.offset_ranges import AT_EARLIEST, AT_LATEST, Point

WIRE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "orders"}
ORDERS = TopicPartition("orders", 0)


def parsed(is_stream: bool = False, /, **more: str) -> ReadOptions:
    return read_options(
        {**WIRE, **{name.replace("__", "."): value for name, value in more.items()}}, is_stream=is_stream
    )


def test_a_batch_reads_all_records_and_a_stream_new_ones_by_default() -> None:
    assert (parsed().starting, parsed().ending) == (AT_EARLIEST, AT_LATEST)
    assert parsed(True).starting == AT_LATEST
    assert parsed().fail_on_data_loss
    assert not parsed().include_headers


def test_the_default_isolation_is_read_uncommitted() -> None:
    assert not parsed().read_committed
    assert parsed(kafka__isolation__level="read_committed").read_committed


def test_option_names_ignore_case() -> None:
    options = read_options(
        {"KAFKA.bootstrap.Servers": "a:1", "SUBSCRIBE": "t", "StartingOffsets": "earliest"}, is_stream=True
    )
    assert options.starting == AT_EARLIEST


def test_topics_are_separated_by_commas_and_spaces_are_ignored() -> None:
    assert parsed(subscribe=" a, b ,a,").selection.topics == ("a", "b")


def test_assign_selects_partitions() -> None:
    options = read_options({"path": "/data", "assign": '{"a": [1, 0], "b": [2]}'}, is_stream=False)
    assert options.selection.partitions == (("a", 0), ("a", 1), ("b", 2))


def test_one_time_overrides_times_by_partition_and_these_override_offsets() -> None:
    offsets, times = '{"orders": {"0": 5}}', '{"orders": {"0": 1000}}'
    assert parsed(startingOffsets=offsets).starting == Point(offsets={ORDERS: 5})
    assert parsed(startingOffsets=offsets, startingOffsetsByTimestamp=times).starting == Point(times={ORDERS: 1000})
    everything = {"startingOffsets": offsets, "startingOffsetsByTimestamp": times, "startingTimestamp": "7"}
    assert parsed(**everything).starting == Point(time=7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "exactly one of subscribe, subscribePattern, assign must be set; none is set"),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "subscribe and assign are set"),
        ({"subscribe": " , "}, "subscribe is ','; it must be topics"),
        ({"subscribePattern": "a("}, "subscribePattern 'a\\(' is not a regular expression"),
        ({"assign": "a:0"}, "assign is 'a:0'; it must be a JSON object of topics"),
        ({"assign": '{"a": 0}'}, "assign is .* it must be"),
        ({"assign": '{"a": [-1]}'}, "assign is .* it must be"),
        ({"assign": "{}"}, "assign is '{}'; it must be"),
    ],
)
def test_exactly_one_selection_option_is_required(options: dict[str, str], words: str) -> None:
    with pytest.raises(WrongOption, match=words):
        read_options({"path": "/data", **options}, is_stream=False)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("startingOffsets", "latest", "startingOffsets cannot be latest: a batch query would read no records"),
        ("startingOffsets", '{"orders":{"0":-1}}', r"startingOffsets cannot be latest \(-1\) for orders-0"),
        ("startingOffsets", '{"orders":{"0":-3}}', "startingOffsets has -3 for orders-0; it must be an offset, -2"),
        ("startingOffsets", "tomorrow", "startingOffsets is 'tomorrow'; it must be a JSON object"),
        ("startingOffsets", '{"orders": 5}', "startingOffsets has 5 for orders; it must be"),
        ("startingOffsets", '{"orders":{"x":5}}', "'x': 5 for orders; it must be a partition and a number"),
        ("startingOffsets", '{"orders":{"0":true}}', "it must be a partition and a number"),
        ("endingOffsets", "earliest", "endingOffsets cannot be earliest: the query would read no records"),
        ("endingOffsets", '{"orders":{"0":-2}}', r"endingOffsets cannot be earliest \(-2\) for orders-0"),
        ("startingTimestamp", "yesterday", "startingTimestamp is 'yesterday'; it must be milliseconds since 1970"),
        ("startingOffsetsByTimestamp", '{"orders":{"0":-5}}', "has -5 for orders-0; it must be milliseconds"),
        ("startingOffsetsByTimestampStrategy", "guess", "it must be error or latest"),
        ("failOnDataLoss", "maybe", "failOnDataLoss is 'maybe'; it must be true or false"),
        ("minPartitions", "0", "minPartitions is '0'; it must be a whole number of at least 1"),
        ("maxBytesPerPartition", "much", "maxBytesPerPartition is 'much'; it must be a size"),
        ("kafka.isolation.level", "read_all", "it must be read_uncommitted or read_committed"),
        ("kafka.bootstrap.servers", "no:port:here", "'no:port:here' is not a bootstrap address"),
        ("kafka.security.protocol", "SASL_SSL", "sasl.mechanism is missing"),
        ("kafka.request.timeout.ms", "soon", "kafka.request.timeout.ms is 'soon'"),
        ("path", "hdfs://host/x", "path must be a directory .*hdfs:// is not supported"),
    ],
)
def test_a_wrong_value_is_reported_with_its_option(name: str, value: str, words: str) -> None:
    with pytest.raises(WrongOption, match=words):
        read_options({**WIRE, name: value}, is_stream=False)


def test_neither_path_nor_cluster_is_an_error() -> None:
    with pytest.raises(WrongOption, match=r"set path .* or kafka.bootstrap.servers"):
        read_options({"subscribe": "orders"}, is_stream=False)


def test_a_misspelled_option_is_reported_with_a_suggestion() -> None:
    with pytest.raises(WrongOption, match=r"there is no option startingoffset; did you mean startingOffsets\?"):
        read_options({**WIRE, "startingOffset": "earliest"}, is_stream=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_ending_options_are_refused_for_a_stream(name: str) -> None:
    with pytest.raises(WrongOption, match=f"{name} is for batch queries"):
        read_options({**WIRE, name: "latest"}, is_stream=True)


@pytest.mark.parametrize(
    "name",
    ["auto.offset.reset", "enable.auto.commit", "key.deserializer", "value.deserializer", "interceptor.classes"],
)
def test_kafka_settings_of_the_source_cannot_be_overridden(name: str) -> None:
    with pytest.raises(WrongOption, match=f"kafka.{name} cannot be set"):
        read_options({**WIRE, f"kafka.{name}": "earliest"}, is_stream=False)


def test_options_of_a_java_consumer_log_a_warning() -> None:
    options = read_options({**WIRE, "kafka.max.poll.records": "20000", "groupIdPrefix": "mine"}, is_stream=False)
    assert [warning.split()[0] for warning in options.warnings] == ["kafka.max.poll.records", "groupidprefix"]


def test_stream_options_of_a_batch_query_log_a_warning() -> None:
    assert parsed(maxOffsetsPerTrigger="5").warnings == (
        "maxOffsetsPerTrigger is for streams and has no effect on a batch query",
    )


def test_cluster_options_without_a_cluster_log_a_warning() -> None:
    options = read_options({"path": "/d", "subscribe": "t", "kafka.fetch.max.bytes": "9"}, is_stream=False)
    assert options.warnings == ("kafka.fetch.max.bytes has no effect without kafka.bootstrap.servers",)


def test_a_minimum_above_the_maximum_offsets_is_refused() -> None:
    with pytest.raises(WrongOption, match=r"minOffsetsPerTrigger \(9\) is more than maxOffsetsPerTrigger \(3\)"):
        parsed(True, minOffsetsPerTrigger="9", maxOffsetsPerTrigger="3")


@pytest.mark.parametrize(("text", "expected"), [("500ms", 500), ("30s", 30_000), ("15m", 900_000), ("2h", 7_200_000)])
def test_durations_have_units(text: str, expected: int) -> None:
    assert parsed(True, maxTriggerDelay=text).max_trigger_delay_ms == expected


def test_kafka_settings_reach_the_client() -> None:
    options = parsed(
        kafka__client__id="me", kafka__request__timeout__ms="700", kafka__max__partition__fetch__bytes="99"
    )
    assert options.wire is not None
    assert (options.wire.settings.client_id, options.wire.settings.request_timeout_ms) == ("me", 700)
    assert options.wire.max_partition_fetch_bytes == 99


def test_a_path_may_be_a_file_url() -> None:
    options: Any = read_options({"path": "file:///var/data/", "subscribe": "t"}, is_stream=False)
    assert options.path == "/var/data"


def test_a_starting_group_is_named_and_needs_a_cluster() -> None:
    assert parsed(startingOffsets="group:orders app").starting == Point(group="orders app")
    assert parsed(True, startingOffsets=" group:g ", startingOffsetsWithoutCommit="Latest").without_commit == "latest"
    with pytest.raises(WrongOption, match="startingOffsets is group: without a name; write group:NAME"):
        parsed(startingOffsets="group: ")
    with pytest.raises(WrongOption, match=r"startingOffsets=group:… needs kafka\.bootstrap\.servers"):
        read_options({"path": "/data", "subscribe": "t", "startingOffsets": "group:g"}, is_stream=False)
    with pytest.raises(WrongOption, match="endingOffsets is 'group:g'"):
        parsed(endingOffsets="group:g")
    with pytest.raises(WrongOption, match="startingOffsetsWithoutCommit is 'none'; it must be earliest or latest"):
        parsed(startingOffsets="group:g", startingOffsetsWithoutCommit="none")


def test_a_rule_for_missing_commits_without_a_group_has_no_effect() -> None:
    assert "no effect without startingOffsets=group:" in parsed(startingOffsetsWithoutCommit="latest").warnings[0]
