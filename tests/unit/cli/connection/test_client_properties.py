"""Settings of a client come from a profile, from --command-config and from -X, by the names of Kafka or of kcat."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.cli.connection.client_properties import client_properties
from tailrace.cli.connection.profiles import NO_PROFILE, Profile
from tailrace.cli.errors import CommandError
from tests.support.command import tailrace
from tests.support.secured import TLS, jaas

PLAIN = ["security.protocol=sasl_plaintext", "sasl.mechanism=PLAIN", "sasl.username=alice", 'sasl.password=a"b\\c=d']


def test_settings_of_kcat_are_those_of_kafka() -> None:
    sasl = client_properties(NO_PROFILE, None, PLAIN).security.sasl
    assert sasl is not None
    assert (sasl.mechanism, sasl.username, sasl.password) == ("PLAIN", "alice", 'a"b\\c=d')
    pem = str(TLS / "client.pem")
    files = [f"ssl.ca.location={TLS / 'authority.pem'}", f"ssl.certificate.location={pem}", f"ssl.key.location={pem}"]
    tls = client_properties(NO_PROFILE, None, ["security.protocol=ssl", *files]).security.tls
    assert tls is not None
    assert (tls.authorities_file, tls.authorities_type) == (str(TLS / "authority.pem"), "PEM")
    assert "PRIVATE KEY" in str(tls.key)


def test_later_sources_override_earlier_ones(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    login = jaas("Plain", "file", "x")
    file.write_text(f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config={login}\nacks=all\n")
    profile = Profile(command_config=str(file), settings={"client.id": "profile"})
    found = client_properties(profile, None, [])
    assert found.security.sasl is not None
    assert (found.security.sasl.username, found.client_id) == ("file", "profile")
    assert client_properties(profile, None, ["client.id=x"]).client_id == "x"
    other = client_properties(profile, None, [f"sasl.jaas.config={jaas('Plain', 'bob', 'y')}"]).security.sasl
    assert other is not None
    assert other.username == "bob"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (["sasl.pasword=x"], r"unknown setting sasl.pasword \(did you mean sasl.password\?\)"),
        (["acks=1"], "unknown setting acks"),
        (["security.protocol"], "write -X KEY=VALUE"),
        (["=x"], "write -X KEY=VALUE"),
        (["security.protocol=TLS"], "security.protocol is 'TLS'"),
        (["security.protocol=SASL_SSL", "sasl.username=a"], "must be set together"),
        (["security.protocol=SSL", "ssl.key.location=a"], "must be set together"),
        ([*PLAIN, "sasl.jaas.config=x"], "are the same setting"),
        (["sasl.mechanism=PLAIN", "sasl.mechanisms=PLAIN"], "are the same setting"),
        (["ssl.ca.location=a"], "has no effect while security.protocol is PLAINTEXT"),
    ],
)
def test_a_wrong_setting_is_refused_in_one_sentence(settings: list[str], words: str) -> None:
    with pytest.raises(CommandError, match=words):
        client_properties(NO_PROFILE, None, settings)
    ran = tailrace("topics", "list", *[word for one in settings for word in ("-X", one)])
    assert (ran.status, ran.out, ran.err.count("\n")) == (2, "", 1)


def test_a_secret_is_not_part_of_an_error(tmp_path: Path) -> None:
    for settings in (["=hush"], [*PLAIN[:2], "sasl.password=hush"], ["sasl.pasword=hush"]):
        ran = tailrace("topics", "list", *[word for one in settings for word in ("-X", one)])
        assert ran.status == 2
        assert "hush" not in ran.err


def test_a_binary_file_is_not_a_certificate(tmp_path: Path) -> None:
    file = tmp_path / "key.der"
    file.write_bytes(b"\x30\x82\xff")
    with pytest.raises(CommandError, match=r"key\.der is not a PEM file"):
        client_properties(
            NO_PROFILE, None, ["security.protocol=SSL", f"ssl.certificate.location={file}", f"ssl.key.location={file}"]
        )
