"""CordonedDirectories: log directories that keep their partitions but get no new ones (KIP-1066).

`cordoned.log.dirs` names some of `log.dirs`, or all of them with `*`. It can be set in the properties file or while the
broker runs. New partitions are created in the other directories, and no partition is moved to a cordoned directory. The
broker reports its cordoned directories to the controller. If all are cordoned, the controller places no new replicas on
the broker. A replica that arrives anyway is created in the first directory.
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
    """Raise InvalidConfig for a directory that is not in log.dirs."""
    if _ALL in names and len(names) > 1:
        raise InvalidConfig(f"{CORDONED}: {_ALL} cannot be combined with other values")
    unknown = [name for name in names if name not in log_dirs and name != _ALL]
    if unknown:
        raise InvalidConfig(f"{CORDONED}: {', '.join(unknown)} must be in log.dirs")


class CordonedDirectories:
    def __init__(self, config: BrokerConfig, logs: LogDirectories, controller: Controller) -> None:
        check_cordoned(config.names(CORDONED), config.log_dirs)
        self._config = config
        self._logs = logs
        self._controller = controller

    def apply(self, image: MetadataImage) -> None:
        """Apply the current setting."""
        named = self._config.current(CORDONED, image)
        assert isinstance(named, tuple)
        paths = frozenset(self._config.log_dirs if _ALL in named else named)
        if paths != self._logs.cordoned:
            self._logs.cordon(paths)
            self._controller.cordon([one.id for one in self._logs.directories if one.path in paths])
