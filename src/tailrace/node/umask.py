"""tailrace.umask: the permission bits that new data files and folders must not have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from tailrace.log.disk.files import PRIVATE_UMASK
from tailrace.model.topic_config import InvalidConfig

UMASK_KEY: Final = "tailrace.umask"


def umask_of(own_settings: Mapping[str, str]) -> int:
    """Return tailrace.umask: the permission bits that new data files and folders must not have."""
    text = own_settings.get(UMASK_KEY, f"{PRIVATE_UMASK:03o}")
    if not re.fullmatch("0?[0-7]{3}", text) or int(text, 8) & 0o700:
        raise InvalidConfig(f"{UMASK_KEY}: {text!r} is not an octal umask between 000 and 077, such as 027")
    return int(text, 8)
