"""Reads a properties file: settings of a broker, or of a Kafka client."""

from __future__ import annotations

from typing import Final

from tailrace.cli.errors import CommandError

_PROPERTIES_BYTES_MAX: Final = 16_777_216


def read_properties(path: str) -> dict[str, str]:
    """Return the settings of a properties file."""
    from tailrace.broker.config.properties_file import MalformedProperties, parse_properties

    try:
        with open(path, "rb") as file:
            data = file.read(_PROPERTIES_BYTES_MAX + 1)
        if len(data) > _PROPERTIES_BYTES_MAX:
            raise CommandError(f"{path} is larger than {_PROPERTIES_BYTES_MAX:,} bytes: it is not a properties file")
        return parse_properties(data.decode())
    except MalformedProperties as error:
        raise CommandError(f"{path}: {error}") from error
    except UnicodeDecodeError:
        raise CommandError(f"{path}: not a text file") from None
