"""Answers: a hostile broker → every command of the command line ends with one clear sentence.

An input is a byte that chooses the command, a byte that chooses how many of the responses are changed, and a seed of
the changes. The command talks to a real broker in memory. On the way back its responses get odd fields, damaged bytes,
wrong lengths or correlation ids, or do not come. What must hold:

- the exit status is 0, 1 or 2: there is no internal error;
- nothing that the broker sends reaches the terminal as a control character;
- the command takes little time and memory, and ends after a limited number of requests.
"""

from __future__ import annotations

import random
import re
import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from unittest.mock import patch

from tailrace.client.cluster.cluster_client import ClusterClient
from tests.fuzz.hostile_socket import HostileBroker, PatientClock
from tests.fuzz.limits import InvariantBroken, limited
from tests.support.command import Ran, tailrace
from tests.support.memory_node import start

SHARES: Final = (1.0, 0.5, 0.2, 0.1)
_SETUP: Final = (
    "topics create orders --partitions 3 --config retention.ms=1000000",
    "topics create compacted --config cleanup.policy=compact",
    "produce orders --file {lines} --compression gzip",
    "produce orders --file {lines}",
    "consume orders --group members --max 2",
    "acls add --principal User:a --operation Read --topic orders",
    "users set alice --password-file {password}",
    "quotas set --user alice producer_byte_rate=1000",
)
COMMANDS: Final = """
cluster status
topics list
topics list --internal --json
topics describe orders
topics describe orders --json
topics describe --unhealthy
topics create new --partitions 2
topics delete new
topics alter compacted --partitions 2 --dry-run
topics trim orders --before 1
topics trim orders --before 1 --yes
configs describe --topic orders --all
configs describe --broker 1 --json
configs set --topic orders retention.ms=1
configs unset --topic orders retention.ms
produce orders --file {lines}
produce orders --file {lines} --json
produce orders --file {lines} --acks 0
consume orders
consume orders --json
consume orders --from -2 --more
consume orders --isolation committed --values
consume orders --group members --max 3
consume orders --group fresh --json
offsets orders
offsets orders --json --max-timestamp
offsets orders --at 1000
groups list
groups list --json
groups describe members
groups describe members --json
groups lag members
groups reset members --topic orders --to-earliest
groups reset members --topic orders --shift-by 1 --yes
groups delete nobody
groups delete-offsets members --topic orders
transactions list
transactions list --json
transactions describe t
transactions find-hanging --topic orders
transactions abort orders-0 --start-offset 0
acls list
acls list --json
acls add --principal User:b --operation Read --topic x
acls remove --principal User:b --yes
users list
users list --json
users set alice --password-file {password}
users remove nobody
quotas list
quotas list --json
quotas set --user alice producer_byte_rate=2000
quotas remove --user nobody producer_byte_rate
reassign plan --topic orders --brokers 1
reassign apply {plan} --dry-run
reassign apply {plan} --wait 5
reassign status
reassign status --json
reassign cancel --yes
reassign unthrottle
elect preferred
elect preferred --topic orders --json
elect unclean --topic orders --yes
top --once
top --once --json
""".strip().splitlines()
_STATIC: Final = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
_PLAN: Final = '{"version": 1, "partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}]}'
_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_COMMANDS_A_BROKER: Final = 500
_SEED_BYTES: Final = 4


class AnswerTarget:
    def __init__(self) -> None:
        self.history: list[bytes] = []
        self._folder = TemporaryDirectory(prefix="tailrace-answers-")
        self._files = {name: str(Path(self._folder.name, name)) for name in ("lines", "password", "plan")}
        Path(self._files["lines"]).write_text("a\nb\nc\n" * 5)
        Path(self._files["password"]).write_text("secret\n")
        Path(self._files["plan"]).write_text(_PLAN)
        self.renew()

    def renew(self) -> None:
        self.history = []
        self._clock = PatientClock()
        self._broker = start(static=_STATIC)
        for command in _SETUP:
            ran = self._run(command, random.Random(0), 0.0)
            assert not ran.status, f"{command}: {ran}"

    def replay(self, inputs: Sequence[bytes]) -> None:
        self.renew()
        for data in inputs:
            self.run(data)

    def seeds(self) -> Sequence[bytes]:
        return [bytes([number, 255, 0, 0, 0, 0]) for number in range(len(COMMANDS))]

    def mutate(self, data: bytes, dice: random.Random) -> bytes:
        number = data[0] if data and dice.random() < 0.5 else dice.randrange(len(COMMANDS))
        return bytes([number, dice.randrange(len(SHARES))]) + dice.randbytes(_SEED_BYTES)

    def pieces(self, data: bytes) -> list[bytes]:
        return [data]

    def run(self, data: bytes) -> None:
        if len(data) < 2:
            return
        if len(self.history) >= _COMMANDS_A_BROKER:
            self.renew()
        self.history.append(data)
        command = COMMANDS[data[0] % len(COMMANDS)]
        share = SHARES[data[1]] if data[1] < len(SHARES) else 0.0
        with limited():
            ran = self._run(command, random.Random(data[2:]), share)
        _check(command, ran)

    def _run(self, command: str, dice: random.Random, share: float) -> Ran:
        peer = HostileBroker(self._broker, self._clock, dice, share)
        client = partial(ClusterClient, open_socket=peer.open_socket, clock=self._clock)
        words = shlex.split(command.format(**self._files))
        with ExitStack() as patches:
            patches.enter_context(patch("tailrace.cli.connection.connecting.ClusterClient", client))
            patches.enter_context(patch("tailrace.client.groups.group_member.SystemClock", lambda: self._clock))
            patches.enter_context(patch("time.sleep", self._clock.sleep))
            patches.enter_context(patch("time.monotonic", self._clock.monotonic))
            patches.enter_context(patch("time.time", lambda: self._clock.now_ms / 1_000))
            patches.enter_context(patch("time.time_ns", lambda: self._clock.now_ms * 1_000_000))
            patches.enter_context(patch.dict("os.environ", {"TAILRACE_DEBUG": "1"}))
            return tailrace(*words, "--bootstrap", "kafka:9092", "--timeout", "5")


def _check(command: str, ran: Ran) -> None:
    if ran.status not in (0, 1, 2):
        raise InvariantBroken(f"{command}: status {ran.status}: {ran.err}")
    found = _CONTROL.search(ran.out + ran.err)
    if found is not None:
        raise InvariantBroken(f"{command}: the control character {found[0]!r} reaches the terminal")
