"""The address of a cluster comes from --bootstrap, --profile, TAILRACE_BOOTSTRAP or the default, in this order."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from tailrace.cli.connection.profiles import bootstrap_of, chosen_profile
from tailrace.cli.errors import CommandError
from tests.support.command import tailrace

PROFILES = """
[production]
bootstrap = "kafka-1:9093"
command-config = "production.properties"

[production.settings]
"sasl.mechanism" = "PLAIN"

[local]
command-config = "/etc/kafka/client.properties"
"""


@pytest.fixture
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("TAILRACE_BOOTSTRAP", raising=False)
    path = tmp_path / "tailrace" / "profiles.toml"
    path.parent.mkdir()
    path.write_text(PROFILES)
    return path


def address(bootstrap: str | None = None, profile: str | None = None) -> str:
    options = argparse.Namespace(bootstrap=bootstrap, profile=profile)
    return bootstrap_of(options, chosen_profile(options))


def test_the_address_comes_from_the_first_source_that_has_one(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert address() == "127.0.0.1:9092"
    monkeypatch.setenv("TAILRACE_BOOTSTRAP", "variable:9092")
    assert address() == "variable:9092"
    assert address(profile="production") == "kafka-1:9093"
    assert address(profile="local") == "variable:9092"
    assert address("option:9092", "production") == "option:9092"


def test_a_profile_names_its_properties_file_relative_to_the_profiles_file(profiles: Path) -> None:
    found = chosen_profile(argparse.Namespace(profile="production"))
    assert found.command_config == str(profiles.parent / "production.properties")
    assert found.settings == {"sasl.mechanism": "PLAIN"}
    assert chosen_profile(argparse.Namespace(profile="local")).command_config == "/etc/kafka/client.properties"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[prod]\nbootstrap = 1", "bootstrap of profile prod"),
        ("[prod]\nbootstrap = ' '", "bootstrap of profile prod"),
        ("[prod]\nbotstrap = 'a:1'", "unknown field 'botstrap'"),
        ("prod = 'a:1'", "is not a table"),
        ("[prod.settings]\nsecurity.protocol = 'SSL'", "a name without quotes"),
        ("[prod.settings]\n'client.id' = 7", "setting client.id"),
        ("[prod]\nsettings = 'x'", "`settings` of profile prod"),
        ("[prod", "is not valid TOML"),
        ("[prdo]", r"no profile of that name \(did you mean prdo\?\)"),
        ("[other]", r"no profile of that name \(it has other\)"),
    ],
)
def test_a_malformed_profile_is_refused(profiles: Path, text: str, words: str) -> None:
    profiles.write_text(text)
    with pytest.raises(CommandError, match=words):
        chosen_profile(argparse.Namespace(profile="prod"))


def test_a_missing_profiles_file_is_reported_in_one_sentence(profiles: Path) -> None:
    profiles.unlink()
    ran = tailrace("topics", "list", "--profile", "production")
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)
    assert f"there is no file {profiles}" in ran.err


def test_a_command_connects_to_the_address_of_the_variable(profiles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAILRACE_BOOTSTRAP", "127.0.0.1:1")
    ran = tailrace("topics", "list")
    assert ran.status == 2
    assert "no broker can be reached at 127.0.0.1:1" in ran.err
