"""InternalErrors: which exceptions the broker survives, and how it reports them."""

from __future__ import annotations

import logging

import pytest

from tailrace.diagnostics.internal_errors import InternalErrors, is_fatal
from tailrace.model.errors import FatalError
from tailrace.waiting.purgatory import DelayedOperation, Purgatory


def raised_in(module: str, error: Exception) -> Exception:
    """Return an exception whose innermost frame belongs to a module of this name."""
    names = {"__name__": module, "error": error}
    exec("def fail():\n    raise error", names)
    with pytest.raises(type(error)) as caught:
        names["fail"]()  # type: ignore[operator]
    return caught.value


@pytest.mark.parametrize(
    ("module", "error", "fatal"),
    [
        ("tailrace.log.segments.segment", AssertionError("offsets go back"), True),
        ("tailrace.metadata.image.image", AssertionError("no such topic"), True),
        ("tailrace.coordinator.groups.classic.classic_member", AssertionError("no protocol"), False),
        ("tailrace.log.segments.segment", RuntimeError("something else"), False),
        ("tailrace.broker.storage.disk_failures", FatalError("the disk is gone"), True),
    ],
)
def test_only_broken_invariants_of_the_log_and_the_metadata_are_fatal(
    module: str, error: Exception, fatal: bool
) -> None:
    assert is_fatal(raised_in(module, error)) is fatal


def test_survived_errors_are_counted_and_their_tracebacks_limited(caplog: pytest.LogCaptureFixture) -> None:
    errors = InternalErrors(logging.getLogger("tailrace.test"))
    for now_ms in range(100):
        errors.survive("a timer", raised_in("tailrace.broker.shares.shares", RuntimeError("broken")), now_ms)
    assert errors.counts == {"a timer": 100}
    assert caplog.text.count("Traceback") == 1
    assert "RuntimeError: broken" in caplog.text
    assert "please report it" in caplog.text


def test_a_fatal_error_is_raised_again() -> None:
    with pytest.raises(FatalError):
        InternalErrors(logging.getLogger("tailrace.test")).survive("a timer", FatalError("stop"), 0)


class _Broken(DelayedOperation):
    def try_complete(self, now_ms: int) -> bool:
        raise RuntimeError("cannot be tried")

    def expire(self, now_ms: int) -> None:
        raise RuntimeError("cannot expire")


class _Sound(DelayedOperation):
    def __init__(self, deadline_ms: int) -> None:
        super().__init__(deadline_ms)
        self.tries = 0
        self.is_expired = False

    def try_complete(self, now_ms: int) -> bool:
        self.tries += 1
        return False

    def expire(self, now_ms: int) -> None:
        self.is_expired = True


def test_an_operation_that_raises_leaves_the_purgatory_and_the_others_stay() -> None:
    failed: list[DelayedOperation] = []
    purgatory = Purgatory(lambda operation, error, now_ms: failed.append(operation))
    broken, late, sound = _Broken(100), _Broken(50), _Sound(100)
    for operation, key in ((broken, "key"), (sound, "key"), (late, "other")):
        purgatory.watch(operation, [key])
    purgatory.check("key", 1)
    assert failed == [broken]
    assert sound.tries == 1
    purgatory.expire(100)
    assert failed == [broken, late]
    assert sound.is_expired
    assert len(purgatory) == 0
