"""A wrong value of an option is one sentence with status 2. It is found before the command connects to a cluster."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tailrace.cli.connection import connecting
from tests.support.command import tailrace

ADD = "acls add --principal User:a --operation Read"
WRONG: list[tuple[str, str]] = [
    ("acls add --principal alice --operation Read --topic t", "'alice' is not TYPE:NAME"),
    ("acls add --principal User: --operation Read --topic t", "is not TYPE:NAME"),
    ("acls add --principal User:a --operation Raed --topic t", "'Raed' is not an operation"),
    (ADD, "required"),
    (f"{ADD} --topic t --group g", "not allowed with"),
    (f"{ADD} --topic=", "--topic has an empty name"),
    (f"{ADD} --cluster --prefixed", "--prefixed needs the prefix"),
    (f"{ADD} --topic * --prefixed", "--prefixed needs the prefix"),
    ("acls list --applying", "--applying needs the name"),
    ("acls remove --yes", "name the entries to remove"),
    ("consume t -f %q", "'%q' is not a token"),
    ("consume t -f %", "'%' is not a token"),
    ("consume t -f \\q", "is not an escape"),
    ("consume t -f %s -J", "not allowed with"),
    ("consume t -K : --values", "not allowed with"),
    ("consume t -e --follow", "not allowed with"),
    ("consume t -c 0", "not a whole number of at least 1"),
    ("consume t -o soon", "is not a start"),
    ("consume t --group=", "the name of a group is empty"),
    ("consume t --group g -p 0", "--group and --partition exclude each other"),
    ("consume t -t t", "not allowed with argument"),
    ("consume", "one of the arguments TOPIC -t/--topic is required"),
    ("produce -p 0", "one of the arguments TOPIC -t/--topic is required"),
    ("produce t -p x", "not a whole number of at least 0"),
    ("produce t -k a -K :", "not allowed with"),
    ("produce t -k a -J", "exclude each other"),
    ("produce t -z lzma", "not a valid choice"),
    ("users set alice --password secret", "unknown option --password (did you mean --password-file?)"),
    ("users set alice --mechanism SCRAM-SHA-1", "not a valid choice"),
    ("users set alice --iterations 100", "4096 to 16384"),
    ("users set alice --password-file /nowhere", "/nowhere: No such file"),
    ("users set alice --password-file {empty}", "is empty"),
    ("users set alice --password-file {lines}", "has several lines"),
    ("users set alice --password-file {binary}", "is not UTF-8"),
    ("quotas set --user a", "required"),
    ("quotas set producer_byte_rate=1", "name the entity"),
    ("quotas remove", "name the entity"),
    ("quotas set --user a producer_byte_rate", "is not a quota"),
    ("quotas set --user a producer_byte_rate=fast", "is not a quota"),
    ("quotas set --user a producer_byte_rate=-1", "is not a quota"),
    ("quotas set --user a producer_byte_rate=nan", "is not a quota"),
    ("quotas set --user a --ip 1.2.3.4 producer_byte_rate=1", "cannot be combined"),
    ("quotas set --user a --default-user producer_byte_rate=1", "not allowed with"),
    ("quotas set --user= producer_byte_rate=1", "empty name"),
    ("reassign plan --topic t --brokers 1,x", "is not a list of different broker ids"),
    ("reassign plan --topic t --brokers 1,1", "is not a list of different broker ids"),
    ("reassign plan --topic t --current --brokers 1", "give it without --brokers"),
    ("reassign apply /nowhere", "/nowhere: No such file"),
    ("reassign apply {lines}", "is not JSON"),
    ("reassign apply {object}", "is not a plan"),
    ("reassign apply {replicas}", '"replicas": [1, 1]'),
    ("reassign apply {twice}", "lists t-0 twice"),
    ("reassign apply {object} --throttle 0", "not a whole number of at least 1"),
    ("reassign apply {object} --wait soon", "not a number of seconds"),
    ("elect unclean --yes", "required"),
    ("elect preferred --topic t:x", "neither TOPIC nor TOPIC:N,N"),
    ("topics trim t", "required"),
    ("topics trim t --before yesterday", "is not a start"),
    ("topics trim t --before 1 --partition -1", "--partition"),
]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    entry = {"topic": "t", "partition": 0, "replicas": [1]}
    texts = {
        "empty": b"\n",
        "lines": b"one\ntwo\n",
        "binary": b"\xff\xfe",
        "object": b"{}",
        "replicas": json.dumps({"version": 1, "partitions": [{**entry, "replicas": [1, 1]}]}).encode(),
        "twice": json.dumps({"version": 1, "partitions": [entry, entry]}).encode(),
    }
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    return {name: tmp_path / name for name in texts}


@pytest.mark.parametrize(("command", "words"), WRONG, ids=[command for command, _ in WRONG])
def test_a_wrong_value_is_refused_in_one_sentence(
    command: str, words: str, files: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(*arguments: object) -> None:
        raise AssertionError("the command connects to a cluster")

    monkeypatch.setattr(connecting, "ClusterClient", connect)
    ran = tailrace(*command.format(**files).split())
    assert (ran.status, ran.out) == (2, "")
    last = ran.err.splitlines()[-1]
    assert words in (json.loads(last)["error"]["message"] if last.startswith("{") else last)
    assert ran.err.count("\n") == 1 or ran.err.startswith("usage: tailrace")
    assert "Traceback" not in ran.err
