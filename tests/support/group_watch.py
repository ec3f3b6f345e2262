"""GroupWatch: member processes of a group, and their events: assignments, reads and commits over time.

    watch = GroupWatch(bootstrap, group, topic)
    first = watch.start("librdkafka")
    watch.wait_until(lambda: watch.reads() >= 100)
    first.kill()
    watch.check(...)

Times are those of the system's monotonic clock.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

from tests.support.foreign_clients import go_program

_PROGRAM = Path(__file__).parent / "clients" / "python" / "group_member.py"
PATIENCE_S = 60


class Member:
    def __init__(self, name: str, command: list[str]) -> None:
        self.name = name
        self.events: list[dict[str, Any]] = []
        self.ended_at: float | None = None
        self.stalled: tuple[float, float | None] | None = None  # begin and end of the stall
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self.events.append(json.loads(line))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in tuple(self.events) if event["event"] == kind]

    @property
    def is_running(self) -> bool:
        return self.ended_at is None

    @property
    def owned(self) -> set[int]:
        """Return the partitions that the member owns, according to its own events."""
        owned: set[int] = set()
        for event in tuple(self.events):
            if event["event"] == "assigned":
                owned |= set(event["partitions"])
            elif event["event"] == "revoked":
                owned -= set(event["partitions"])
        return owned

    def stall(self) -> None:
        os.kill(self._process.pid, signal.SIGSTOP)
        self.stalled = (time.monotonic(), None)

    def go_on(self) -> None:
        if self.stalled is not None:
            self.stalled = (self.stalled[0], time.monotonic())
        os.kill(self._process.pid, signal.SIGCONT)

    def commits(self) -> list[dict[str, Any]]:
        """Return accepted commits, except a commit that was sent before a stall and confirmed after it: its time is
        unknown.
        """
        taken = self.of("committed")
        if self.stalled is None:
            return taken
        stalled_at, resumed_at = self.stalled
        after = [event for event in taken if resumed_at is not None and event["at"] > resumed_at]
        if after:
            sent = [
                event
                for event in self.of("read")
                if event["at"] < stalled_at and event["partition"] == after[0]["partition"]
                if event["offset"] + 1 == after[0]["offset"]
            ]
            if sent:
                taken.remove(after[0])
        return taken

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def leave(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.ended_at is None:
            self._process.send_signal(how)
            try:
                self._process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
                raise
            finally:
                self.ended_at = time.monotonic()
            self._reader.join(PATIENCE_S)


class GroupWatch:
    def __init__(self, bootstrap: str, group: str, topic: str, *, strategy: str = "range", session_ms: int) -> None:
        self._arguments = [bootstrap, group, topic, strategy, str(session_ms)]
        self.members: list[Member] = []

    def start(self, client: str) -> Member:
        if client == "franz-go":
            command = [*go_program("franzgroup").command, *self._arguments]
        else:
            command = [sys.executable, str(_PROGRAM), client, *self._arguments]
        member = Member(f"{client}-{len(self.members)}", command)
        self.members.append(member)
        return member

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.story()
            time.sleep(0.02)

    def story(self) -> str:
        events = sorted(
            ((event["at"], member.name, event) for member in self.members for event in member.events),
            key=lambda e: e[0],
        )
        return "\n".join(f"{at:.3f} {name} {event}" for at, name, event in events)

    def end(self) -> None:
        for member in self.members:
            if member.is_running:
                member.go_on()
                member.kill()

    # Checks of the events

    def read(self) -> list[tuple[int, int]]:
        return [(event["partition"], event["offset"]) for member in self.members for event in member.of("read")]

    def overlaps(self, *, tolerated: frozenset[str] = frozenset()) -> list[str]:
        """Return partitions that two members owned at once, according to their events. Stalled members are excepted."""
        spans: dict[int, list[tuple[float, float, str]]] = {}
        for member in self.members:
            if member.name in tolerated:
                continue
            begun: dict[int, float] = {}
            for event in member.events:
                for partition in event.get("partitions", ()):
                    if event["event"] == "assigned":
                        begun.setdefault(partition, event["at"])
                    elif event["event"] == "revoked" and partition in begun:
                        spans.setdefault(partition, []).append((begun.pop(partition), event["at"], member.name))
            end = member.ended_at or time.monotonic()
            for partition, at in begun.items():
                spans.setdefault(partition, []).append((at, end, member.name))
        found = []
        for partition, of_one in spans.items():
            ordered = sorted(of_one)
            for (_, end, one), (start, _, other) in pairwise(ordered):
                if one != other and start < end:
                    found.append(f"partition {partition}: {other} had it before {one} had released it")
        return found

    def steps_back(self) -> list[str]:
        """Return commits that were accepted although a later owner had committed a higher offset."""
        commits: dict[int, list[tuple[float, int, str]]] = {}
        for member in self.members:
            for event in member.commits():
                commits.setdefault(event["partition"], []).append((event["at"], event["offset"], member.name))
        found = []
        for partition, taken in commits.items():
            furthest = 0
            for at, offset, name in sorted(taken):
                if offset <= furthest:
                    found.append(f"partition {partition}: {name} committed {offset} at {at:.3f} after {furthest}")
                furthest = max(furthest, offset)
        return found
