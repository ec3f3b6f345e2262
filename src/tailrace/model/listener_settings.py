"""Settings of one listener: `listener.name.NAME.key` counts before `key`.

Kafka reads the name there in lower case, whatever it looks like elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "listener.name."


def settings_of_listener(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """What counts for a listener, by the names that the settings have without a prefix."""
    prefix = f"{PREFIX}{name.lower()}."
    own = {key.removeprefix(prefix): text for key, text in properties.items() if key.startswith(prefix)}
    return {**{key: text for key, text in properties.items() if not key.startswith(PREFIX)}, **own}
