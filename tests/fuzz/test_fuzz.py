"""Hostile input, in seconds: what inputs begin with, what once broke something, and some hundred mutations.

`make fuzz` continues from here for the given time, guided by the code that inputs reach.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.fuzz.failures import unpack_inputs
from tests.fuzz.targets import NAMES, Target, make_target

REGRESSIONS = Path(__file__).with_name("regressions")
MUTATIONS = 600
ANSWERS = 40  # each is a whole command


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@cache
def target_of(name: str) -> Target:
    return make_target(name)


@pytest.mark.parametrize("name", NAMES)
def test_seed_inputs_break_nothing(name: str) -> None:
    target = target_of(name)
    target.replay(target.seeds())


@pytest.mark.parametrize(
    "path", sorted(REGRESSIONS.glob("*/*.bin")), ids=lambda path: f"{path.parent.name}-{path.stem}"
)
def test_inputs_that_once_failed_break_nothing(path: Path) -> None:
    target_of(path.parent.name).replay(unpack_inputs(path.read_bytes()))


@pytest.mark.parametrize("name", NAMES)
def test_mutated_inputs_break_nothing(name: str) -> None:
    """The same ones each time; inputs build on each other's."""
    target = target_of(name)
    target.renew()
    dice = random.Random(1)
    pool = list(target.seeds())
    for _ in range(ANSWERS if name == "answers" else MUTATIONS):
        data = dice.choice(pool)
        for _ in range(dice.choice((1, 1, 2, 4))):
            data = target.mutate(data, dice)
        target.run(data)
        if dice.random() < 0.1:
            pool.append(data)
