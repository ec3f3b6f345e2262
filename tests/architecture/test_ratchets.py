"""Limits that hold for all of the source, with recorded exceptions that may only shrink (`ratchets.py`)."""

from __future__ import annotations

import pytest

from tests.architecture.ratchets import LIMITS, complaints, is_within, module_cycles, recorded


@pytest.mark.parametrize("name", LIMITS)
def test_nothing_exceeds_its_limit(name: str) -> None:
    assert complaints(recorded()[name], LIMITS[name]) == []


def test_modules_do_not_import_each_other() -> None:
    """All imports count: those at the top, those inside functions and those for type checkers."""
    known = recorded()["import_cycles"]
    found = module_cycles()
    assert [cycle for cycle in found if not is_within(cycle, known)] == []
    assert [cycle for cycle in known if not any(is_within(one, [cycle]) for one in found)] == [], (
        "these cycles are gone: run `python -m tests.architecture.ratchets`"
    )
