"""The two kinds of controllers that brokers can be below, for fixtures and tests with a parameter.

@pytest.fixture(scope="module", params=KINDS)
def cluster(request, kafka, tmp_path_factory):
    with controllers_of(request.param, kafka, directory, properties=CONTROLLERS) as controllers: …
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.support.kafka_controllers import KafkaControllers
from tests.support.kafka_install import KafkaInstallation
from tests.support.tailrace_controller import TailraceController

Controllers = KafkaControllers | TailraceController
KINDS: Final = ("kafka", "tailrace")  # Apache Kafka's controller, and ours


def controllers_of(
    kind: str,
    installation: KafkaInstallation,
    directory: Path,
    *,
    properties: Mapping[str, str] | None = None,
    format_options: tuple[str, ...] = (),
    is_formatted_here: bool = False,
) -> Controllers:
    """Return a controller that is not started yet. is_formatted_here: our code formats Kafka's directory."""
    if kind == "tailrace":
        return TailraceController(installation, directory, properties=properties, format_options=format_options)
    return KafkaControllers(
        installation,
        directory,
        properties=properties,
        format_options=format_options,
        is_formatted_here=is_formatted_here,
    )
