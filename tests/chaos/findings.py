"""Findings: violations that any thread reports while a cluster is under load. The first finding ends the run."""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable


class Late(AssertionError):
    """A condition that was not met in time, because of a bug or because the machine is overloaded."""


class Findings:
    def __init__(self) -> None:
        self._began = time.monotonic()
        self._lock = threading.Lock()
        self.found: list[str] = []
        self.are_all_late = True

    def add(self, text: str, *, is_late: bool = False) -> None:
        with self._lock:
            self.found.append(f"{time.monotonic() - self._began:.1f} s: {text}")
            self.are_all_late = self.are_all_late and is_late


class Worker:
    """A thread that runs until it is asked to end. An unexpected exception in it is a finding."""

    def __init__(self, name: str, findings: Findings, step: Callable[[], None]) -> None:
        self.name = name
        self._findings = findings
        self._step = step
        self.is_ending = threading.Event()
        self._step_began = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self, patience_s: float, *, must_end: bool = True) -> bool:
        """Return True if the thread has ended. If it must end and has not, that is a finding."""
        self.is_ending.set()
        self._thread.join(patience_s)
        if self._thread.is_alive() and must_end:
            text = f"{self.name} did not end within {patience_s:g} s; its stack:\n{self.place}"
            self._findings.add(text, is_late=True)
        return not self._thread.is_alive()

    @property
    def step_s(self) -> float:
        """Return how long the current step has taken so far."""
        return time.monotonic() - self._step_began

    @property
    def place(self) -> str:
        """Return the thread's current stack."""
        frame = sys._current_frames().get(self._thread.ident or 0)
        return "".join(traceback.format_stack(frame)[-3:]) if frame is not None else "its end"

    def _run(self) -> None:
        try:
            while not self.is_ending.is_set():
                self._step_began = time.monotonic()
                self._step()
        except BaseException:
            self._findings.add(f"{self.name} broke: {traceback.format_exc()}")
