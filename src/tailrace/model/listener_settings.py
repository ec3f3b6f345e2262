"""Settings of one listener: `listener.name.NAME.key` takes precedence over `key`.

Kafka expects the listener's name in lower case in these keys, also if the listener is defined in upper case.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

PREFIX: Final = "listener.name."
SHARDS_LISTENER: Final = "SHARDS"  # the listener between the shards of one node


def settings_of_listener(properties: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the settings that apply to a listener, by their names without the prefix."""
    prefix = f"{PREFIX}{name.lower()}."
    own = {key.removeprefix(prefix): text for key, text in properties.items() if key.startswith(prefix)}
    return {**{key: text for key, text in properties.items() if not key.startswith(PREFIX)}, **own}
