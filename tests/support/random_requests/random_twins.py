"""RandomTwins: one request to Apache Kafka and to Tailrace, and the comparison of their responses."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any, Final

from tailrace.broker.requests.api_table import API_TABLE
from tailrace.protocol.errors import UnwritableMessage
from tailrace.protocol.headers import read_response_header
from tailrace.protocol.json_form import base64_uuid_text
from tailrace.protocol.registry import response_class
from tests.support.api_twins import KafkaSide, OurSide
from tests.support.random_requests.plain_answers import PlainAnswers, differences

SHOWN_STEPS: Final = 25
_LEARN_TRIES: Final = 100
_SHORTER: Final = re.compile(r"(\w)\1{20,}")


class Different(AssertionError):
    """The two brokers gave different responses."""


class Side:
    """One broker, and the ids that it has given out."""

    def __init__(self, link: KafkaSide | OurSide) -> None:
        self.link = link
        self.answers = PlainAnswers()
        self.sessions: dict[str, int] = {}
        self.producers: dict[str, tuple[int, int]] = {}  # id and epoch
        self.members: dict[str, str] = {}

    def topic_id(self, name: str) -> bytes:
        return self.link.topic_id(name)

    def producer(self, name: str | None) -> tuple[int, int]:
        return (-1, -1) if name is None else self.producers[name]

    def learn_topics(self) -> None:
        self.link.learn()
        self.answers.topics = {base64_uuid_text(one): name for name, one in self.link.topic_ids.items()}

    def ask(self, message: Any, version: int) -> Any:
        return self.link.ask(message, version)


Make = Callable[[Side], Any]
Damage = Callable[[bytearray], None]


class RandomTwins:
    def __init__(self, kafka: KafkaSide, ours: OurSide) -> None:
        self.kafka, self.ours = Side(kafka), Side(ours)
        self._served = kafka.versions
        self.steps: list[str] = []
        self.compared = 0

    @property
    def sides(self) -> tuple[Side, Side]:
        return self.kafka, self.ours

    def versions(self, api_key: int) -> list[int]:
        """Return the versions that both serve."""
        row = API_TABLE[api_key]
        return [one for one in self._served[api_key] if row.min_version <= one <= row.max_version]

    def learn_topics(self) -> None:
        """Note the ids of topics, once both brokers have the same ones."""
        self.ours.learn_topics()
        for _ in range(_LEARN_TRIES):
            self.kafka.learn_topics()
            if self.kafka.link.topic_ids.keys() == self.ours.link.topic_ids.keys():
                return
            time.sleep(0.05)
        kafka, ours = (sorted(side.link.topic_ids) for side in self.sides)
        raise Different(f"topics: Kafka {kafka}, Tailrace {ours}")

    def ask(self, label: str, make: Make, version: int, damage: Damage | None = None) -> tuple[Any, Any] | None:
        """Send a request to both and compare. Return both responses, or None if there is none to read."""
        try:
            bodies = [bytearray(make(side).encode(version)) for side in self.sides]
        except UnwritableMessage:
            return None
        if damage is not None:
            for body in bodies:
                damage(body)
        api_key = make(self.kafka).SCHEMA.api_key
        is_whole = "" if damage is None else " (damaged)"
        self.steps.append(f"v{version} {_SHORTER.sub(_shorter, label)}{is_whole}")
        raw = [side.link.send(api_key, version, bytes(body)) for side, body in zip(self.sides, bodies, strict=True)]
        self.compared += 1
        shown = [_without_body(one) for one in raw]
        if "answered" not in shown or shown[0] != shown[1]:
            self._check(differences("", *shown), bodies[1])
            return None
        kafka, ours = (_decoded(api_key, version, one) for one in raw)
        self._name_session(kafka, ours)
        plain = [side.answers.plain(one, version) for side, one in zip(self.sides, (kafka, ours), strict=True)]
        self._check(differences("", *plain), bodies[1])
        return kafka, ours

    def _name_session(self, kafka: Any, ours: Any) -> None:
        """Give a session that both have opened the same name."""
        if not getattr(kafka, "session_id", 0) or not getattr(ours, "session_id", 0):
            return
        if kafka.session_id not in self.kafka.answers.sessions and ours.session_id not in self.ours.answers.sessions:
            name = f"session {len(self.kafka.answers.sessions)}"
            self.kafka.answers.sessions[kafka.session_id] = name
            self.ours.answers.sessions[ours.session_id] = name

    def _check(self, found: list[str], body: bytearray) -> None:
        if found:
            last = self.steps[-SHOWN_STEPS:]
            raise Different("\n".join([*last, f"request {len(self.steps)}, to Tailrace: {body[:600].hex()}", *found]))

    def close(self) -> None:
        assert isinstance(self.kafka.link, KafkaSide)
        self.kafka.link.close()


def _shorter(run: re.Match[str]) -> str:
    return f"{run[1]}*{len(run[0])}"


def _without_body(answer: bytes | None) -> str:
    return "connection closed" if answer is None else "answered" if answer else "no response"


def _decoded(api_key: int, version: int, answer: bytes | None) -> Any:
    assert answer is not None
    return response_class(api_key).decode(answer, version, read_response_header(api_key, version, answer)[1])
