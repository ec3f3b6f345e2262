"""Kafka's own generated classes read what we write, write the same bytes, and convert them to the same JSON.

Versions that Kafka 4 dropped are put to the last release that had them.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from scripts.extract_schemas import CURRENT, OLD, JarUnavailable, fetch_jar
from tailrace.protocol.codegen.schema import Field, index
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.internal_records.coordinator_records import (
    decode_key,
    decode_value,
    encode_key,
    encode_value,
    key_to_dict,
    value_to_dict,
)
from tailrace.protocol.internal_records.metadata_frames import decode_frame, encode_frame, frame_to_dict
from tailrace.protocol.json_form import base64_uuid_text, to_dict
from tailrace.protocol.message import Message, Struct
from tailrace.protocol.messages import GroupMetadataKey, GroupMetadataValue
from tailrace.protocol.registry import message_class, record_class
from tailrace.records.builder import BatchBuilder
from tests.support.kafka_install import KafkaInstallation
from tests.support.log_oracle import LogOracle
from tests.unit.protocol import random_messages
from tests.unit.protocol.random_messages import every_version, random_message, unencodable_messages

pytestmark = pytest.mark.kafka

ORACLE = Path(random_messages.__file__).with_name("MessageOracle.java")
Question = tuple[str, int, Message, bool]


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def answers_of(kafka: KafkaInstallation, jars: list[Path], lines: list[str]) -> list[str]:
    class_path = os.pathsep.join(map(str, jars))
    command = [str(kafka.java.executable), "-XX:TieredStopAtLevel=1", "-cp", class_path, str(ORACLE)]
    done = subprocess.run(command, input="".join(lines), capture_output=True, text=True)
    answers = done.stdout.splitlines()
    assert len(answers) == len(lines), done.stderr[-3000:]
    return answers


def ask(kafka: KafkaInstallation, jars: list[Path], questions: list[Question]) -> list[str]:
    """Return the differences between Kafka's answers and the expected ones."""
    lines = []
    for name, version, message, has_unknown_tags in questions:
        # Kafka's JSON does not know of unknown tags, so bytes that have them are not made from it.
        form = b"" if has_unknown_tags else json.dumps(to_dict(message, version, with_records=True)).encode()
        lines.append(f"{name} {version} {text(message.encode(version))} {text(form)}\n")
    answers = answers_of(kafka, jars, lines)
    return [
        f"{name} v{version}: {wrong}"
        for (name, version, message, _), answer in zip(questions, answers, strict=True)
        if (wrong := complaint(message, version, answer))
    ]


def complaint(message: Message, version: int, answer: str) -> str | None:
    verdict, _, rest = answer.partition(" ")
    if verdict != "ok":
        return rest
    written_again, reported, made_from_json = (base64.b64decode(word) for word in rest.split(" "))
    if written_again != message.encode(version):
        return "Kafka reads it and writes other bytes"
    if json.loads(reported) != to_dict(message, version):
        return f"Kafka reports it as {reported.decode()[:500]}"
    if made_from_json and made_from_json != message.encode(version):
        return "Kafka makes other bytes from its JSON"
    return None


def questions(*, removed: bool, seeds: range) -> list[Question]:
    return [
        (name, version, random_message(name, version, seed, unknown_tags=seed % 3 == 2), seed % 3 == 2)
        for name, version in every_version()
        if (version in message_class(name).SCHEMA.removed) == removed
        for seed in seeds
    ]


def old_jars(kafka: KafkaInstallation) -> list[Path]:
    try:
        old = fetch_jar("kafka-clients", OLD, [])
    except JarUnavailable as why:
        if os.environ.get("TAILRACE_REQUIRE_KAFKA") == "1":
            pytest.fail(str(why), pytrace=False)
        pytest.skip(f"no old Apache Kafka to compare with: {why}")
    return [old, *(jar for jar in kafka.jars if jar.name.startswith(("jackson-", "slf4j-api")))]


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(100, 115), marks=pytest.mark.slow)], ids=str)
def test_kafka_reads_and_writes_the_same_bytes_in_every_version(kafka: KafkaInstallation, seeds: range) -> None:
    asked = questions(removed=False, seeds=seeds)
    assert len(asked) > 700 * len(seeds)
    assert ask(kafka, list(kafka.jars), asked) == []


@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(100, 115), marks=pytest.mark.slow)], ids=str)
def test_old_kafka_reads_and_writes_the_same_bytes_in_dropped_versions(kafka: KafkaInstallation, seeds: range) -> None:
    asked = questions(removed=True, seeds=seeds)
    assert len(asked) > 100 * len(seeds)
    assert ask(kafka, old_jars(kafka), asked) == []


def form_of(struct: Struct, version: int) -> dict[str, Any]:
    """Return the fields like `to_dict`, and also fields that the version does not have, if they are set."""
    form: dict[str, Any] = {}
    for field in struct.SCHEMA.fields:
        value = getattr(struct, field.attribute)
        if version in field.versions or not field.is_default(value):
            form[field.json_name] = value_of(value, field, version)
    return form


def value_of(value: Any, field: Field, version: int) -> Any:
    if value is None:
        return None
    if field.is_array and isinstance(value, list):
        return [value_of(element, field, version) for element in value]
    if field.struct is not None:
        return form_of(value, version)
    if field.element == "uuid":
        return base64_uuid_text(value)
    return text(value) if field.element in ("bytes", "records") else value


# Fields that only versions had which Kafka 4 dropped: it does not know them any more and cannot refuse them.
FORGOTTEN = {
    ("DescribeConfigsResponse", "results.configs.is_default"),
    ("ListOffsetsRequest", "topics.partitions.max_num_offsets"),
    ("ListOffsetsResponse", "topics.partitions.old_style_offsets"),
    ("OffsetCommitRequest", "topics.partitions.commit_timestamp"),
}


@pytest.mark.parametrize("removed", [False, True], ids=["current", "removed"])
def test_fields_that_a_version_lacks_are_refused_or_dropped_as_in_kafka(
    kafka: KafkaInstallation, removed: bool
) -> None:
    asked = [
        (name, version, field, message)
        for name, version in every_version()
        if (version in message_class(name).SCHEMA.removed) == removed
        for field, message in unencodable_messages(name, version, 1)
        if (name, field) not in FORGOTTEN or removed
    ]
    assert len(asked) > 250
    lines = [
        f"{name} {version} - {text(json.dumps(form_of(message, version)).encode())}\n"
        for name, version, _, message in asked
    ]
    jars = old_jars(kafka) if removed else list(kafka.jars)
    differing = []
    for (name, version, field, message), answer in zip(asked, answers_of(kafka, jars, lines), strict=True):
        try:
            ours = f"ok {text(message.encode(version))}"
        except UnwritableMessage as error:
            ours = f"error {error}"
        if ours.startswith("ok") != answer.startswith("ok") or (answer.startswith("ok") and ours != answer):
            differing.append(f"{name} v{version} {field}: {ours[:200]}; Kafka: {answer[:200]}")
    assert differing == []


def test_the_schemas_are_those_of_the_kafka_under_test(kafka: KafkaInstallation) -> None:
    assert kafka.version == CURRENT


# ----------------------------------------------------------------------------------- records, as DumpLogSegments prints

DECODERS = {
    "group": "--offsets-decoder",
    "transaction": "--transaction-log-decoder",
    "share": "--share-group-state-decoder",
    "metadata": "--cluster-metadata-decoder",
}


def reported_by_kafka(log_oracle: LogOracle, file: Path, decoder: str) -> list[tuple[Any, Any]]:
    """Return the keys and payloads that DumpLogSegments prints for the records of a file."""
    found = []
    for line in log_oracle.dump(file, options=[decoder, "--deep-iteration"]).splitlines():
        if line.startswith("| offset: "):
            key, _, payload = line.partition(" key: ")[2].partition(" payload: ")
            payload = payload or line.partition(" payload: ")[2]
            found.append((key and json.loads(key), payload if payload == "<DELETE>" else json.loads(payload)))
    return found


def write_log(file: Path, records: list[tuple[bytes | None, bytes | None]]) -> None:
    builder = BatchBuilder()
    for key, value in records:
        builder.append(0, key, value)
    file.write_bytes(builder.build())


@pytest.mark.parametrize("family", ["group", "transaction", "share"])
def test_the_json_of_coordinator_records_equals_kafkas(family: str, log_oracle: LogOracle, tmp_path: Path) -> None:
    records: list[tuple[bytes | None, bytes | None]] = []
    for number in index()["records"][f"{family}/key"]:
        key_class, value_class = (record_class(family, kind, int(number)) for kind in ("key", "value"))
        assert key_class is not None
        assert value_class is not None
        key = encode_key(random_message(key_class.SCHEMA.name, 0, 1))
        records.append((key, None))
        for version in value_class.SCHEMA.versions:
            for seed in range(3):
                value = random_message(value_class.SCHEMA.name, version, seed)
                records.append((key, encode_value(value, version)))
    file = tmp_path / "00000000000000000000.log"
    write_log(file, records)

    reported = []
    for key, value in records:
        assert key is not None
        decoded = decode_key(family, key)
        form = "<DELETE>" if value is None else value_to_dict(decode_value(family, decoded, value))
        reported.append((key_to_dict(decoded), form))
    assert reported_by_kafka(log_oracle, file, DECODERS[family]) == reported


def test_subscriptions_within_groups_are_decoded_as_in_kafka(log_oracle: LogOracle, tmp_path: Path) -> None:
    def embedded(name: str, version: int) -> bytes:
        known = min(version, 3)
        return version.to_bytes(2, "big") + random_message(name, known, 5).encode(known)

    member = GroupMetadataValue.MemberMetadata
    members = [
        member(
            member_id=f"m{version}",
            subscription=embedded("ConsumerProtocolSubscription", version),
            assignment=embedded("ConsumerProtocolAssignment", version),
        )
        for version in (0, 1, 2, 3, 4, 99)
    ]
    members.append(member(member_id="broken", subscription=b"\0\1\2", assignment=b""))
    key = encode_key(GroupMetadataKey(group="g"))
    value = encode_value(GroupMetadataValue(protocol_type="consumer", members=members), 3)
    file = tmp_path / "00000000000000000000.log"
    write_log(file, [(key, value)])

    decoded = decode_key("group", key)
    reported = [(key_to_dict(decoded), value_to_dict(decode_value("group", decoded, value)))]
    assert reported[0][1]["data"]["members"][0]["assignment"]["assignedPartitions"]
    assert reported_by_kafka(log_oracle, file, "--offsets-decoder") == reported


def test_the_json_of_metadata_records_equals_kafkas(log_oracle: LogOracle, tmp_path: Path) -> None:
    frames = [
        encode_frame(random_message(name, version, seed, unknown_tags=True), version)
        for name in index()["families"]["metadata"]
        for version in message_class(name).SCHEMA.versions
        for seed in range(3)
    ]
    file = tmp_path / "00000000000000000000.log"
    write_log(file, [(None, frame) for frame in frames])
    reported = [("", frame_to_dict(decode_frame(frame))) for frame in frames]
    assert reported_by_kafka(log_oracle, file, "--cluster-metadata-decoder") == reported
