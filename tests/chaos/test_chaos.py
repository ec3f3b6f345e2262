"""Clusters of every shape under load and faults, for minutes. `make chaos` runs for any time."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.cluster import Shape
from tests.chaos.trial import Trial
from tests.support.kafka_install import KafkaInstallation

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SECONDS = 150.0


@pytest.mark.parametrize(
    ("shape", "seed"),
    [
        (Shape(1, 3, 0), 31),
        (Shape(3, 3, 0), 32),
        (Shape(1, 3, 1), 33),
        (Shape(3, 3, 1), 34),
        (Shape(1, 3, 0, is_ours=True), 35),
        (Shape(1, 3, 1, is_ours=True), 36),
    ],
    ids=str,
)
def test_under_faults_no_record_is_lost_duplicated_or_changed(
    kafka: KafkaInstallation, tmp_path: Path, shape: Shape, seed: int
) -> None:
    report = Trial(kafka, tmp_path, shape, seed=seed, seconds=SECONDS, print_line=print).run()
    assert report.findings == [], str(report)
