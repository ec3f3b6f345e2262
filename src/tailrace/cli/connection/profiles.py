"""The address of a cluster, and named profiles.

The first of these sources gives the address:

  1. --bootstrap HOST:PORT
  2. --profile NAME, a table in the profiles file
  3. the environment variable TAILRACE_BOOTSTRAP
  4. 127.0.0.1:9092

The profiles file is $XDG_CONFIG_HOME/tailrace/profiles.toml, by default ~/.config/tailrace/profiles.toml:

    [production]
    bootstrap = "kafka-1:9093,kafka-2:9093"
    command-config = "production.properties"    # relative to this file

    [production.settings]                       # instead of a file, or to override it
    "security.protocol" = "SASL_SSL"

If the profile has no `bootstrap`, the environment variable or the default applies. `--bootstrap` always wins.
"""

from __future__ import annotations

import argparse
import os
import tomllib
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from tailrace.cli.errors import CommandError
from tailrace.cli.parsing.options import DEFAULT_BOOTSTRAP

VARIABLE: Final = "TAILRACE_BOOTSTRAP"
_BOOTSTRAP: Final = "bootstrap"
_COMMAND_CONFIG: Final = "command-config"
_SETTINGS: Final = "settings"
_FIELDS: Final = (_BOOTSTRAP, _COMMAND_CONFIG, _SETTINGS)
_FILE_BYTES_MAX: Final = 1_048_576


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A named cluster: its address, a properties file, and settings that override the file."""

    bootstrap: str | None = None
    command_config: str | None = None
    settings: dict[str, str] = field(default_factory=dict)


NO_PROFILE: Final = Profile()


def profiles_path() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(home) / "tailrace" / "profiles.toml"


def chosen_profile(options: argparse.Namespace) -> Profile:
    """Return the profile of --profile, or an empty one."""
    return NO_PROFILE if options.profile is None else read_profile(profiles_path(), options.profile)


def bootstrap_of(options: argparse.Namespace, profile: Profile) -> str:
    """Return the address of the cluster, from the first source that has one."""
    if options.bootstrap is not None:
        return str(options.bootstrap)
    return profile.bootstrap or os.environ.get(VARIABLE) or DEFAULT_BOOTSTRAP


def read_profile(path: Path, name: str) -> Profile:
    """Return a profile of a profiles file. Raise CommandError if it does not exist or is malformed."""
    profiles = _read(path)
    if name not in profiles:
        close = get_close_matches(name, profiles, 1)
        hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(sorted(profiles)) or 'none'}"
        raise CommandError(f"--profile {name}: {path} has no profile of that name ({hint})")
    table = profiles[name]
    where = f"profile {name} in {path}"
    if not isinstance(table, dict):
        raise CommandError(f"{where} is not a table: write [{name}]")
    for key in table:
        if key not in _FIELDS:
            raise CommandError(f"{where} has the unknown field {key!r}; it may have {', '.join(_FIELDS)}")
    config = _text(table, _COMMAND_CONFIG, where)
    return Profile(
        bootstrap=_text(table, _BOOTSTRAP, where),
        command_config=None if config is None else str(path.parent / Path(config).expanduser()),
        settings=_settings(table.get(_SETTINGS, {}), where),
    )


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            data = file.read(_FILE_BYTES_MAX + 1)
        if len(data) > _FILE_BYTES_MAX:
            raise CommandError(f"{path} is larger than {_FILE_BYTES_MAX:,} bytes")
        return tomllib.loads(data.decode())
    except FileNotFoundError:
        raise CommandError(f"there is no file {path}: create it, or give the address with --bootstrap") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CommandError(f"{path} is not valid TOML: {error}") from None


def _text(table: dict[str, Any], key: str, where: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise CommandError(f'{key} of {where} must be a non-empty string: write {key} = "…"')
    return value


def _settings(table: Any, where: str) -> dict[str, str]:
    if not isinstance(table, dict):
        raise CommandError(f"`settings` of {where} must be a table")
    for key, value in table.items():
        if isinstance(value, dict):
            raise CommandError(f'settings of {where} has a name without quotes: write "{key}.…" = "…"')
        if not isinstance(value, str):
            raise CommandError(f'setting {key} of {where} must be a string: write "{key}" = "…"')
    return dict(table)
