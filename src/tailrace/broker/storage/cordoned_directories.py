"""CordonedDirectories: log directories that keep what they have and get no new partitions (KIP-1066).

`cordoned.log.dirs` names some of `log.dirs`, or all with `*`, in the properties file or while the broker runs. New
partitions go to the others, and none is moved there. The controllers are told, so that a broker whose directories are
all cordoned gets no new replicas; should one come all the same, it goes to the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tailrace.broker.config.broker_config import BrokerConfig
from tailrace.log.directories.log_directories import LogDirectories
from tailrace.metadata.controller.controller import Controller
from tailrace.metadata.image.image import MetadataImage
from tailrace.model.topic_config import InvalidConfig

CORDONED: Final = "cordoned.log.dirs"
_ALL: Final = "*"


def check_cordoned(names: Sequence[str], log_dirs: Sequence[str]) -> None:
    """Refuse what names a directory that the broker does not have."""
    if _ALL in names and len(names) > 1:
        raise InvalidConfig(f"{CORDONED}: where it is {_ALL}, it must not have other values")
    unknown = [name for name in names if name not in log_dirs and name != _ALL]
    if unknown:
        raise InvalidConfig(f"{CORDONED}: not among log.dirs: {', '.join(unknown)}")


class CordonedDirectories:
    def __init__(self, config: BrokerConfig, logs: LogDirectories, controller: Controller) -> None:
        check_cordoned(config.names(CORDONED), config.log_dirs)
        self._config = config
        self._logs = logs
        self._controller = controller

    def apply(self, image: MetadataImage) -> None:
        """As the settings are now."""
        named = self._config.current(CORDONED, image)
        assert isinstance(named, tuple)
        paths = frozenset(self._config.log_dirs if _ALL in named else named)
        if paths != self._logs.cordoned:
            self._logs.cordon(paths)
            self._controller.cordon([one.id for one in self._logs.directories if one.path in paths])
