"""Every client command at a Tailrace broker with SASL_SSL and ACLs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tailrace
from tests.support.cli_play import ADMIN, Player, kcat_settings, play, play_as_stranger, write_client_config
from tests.support.command import tailrace as command
from tests.support.secured import STORES, TLS, jaas

SETTINGS = {
    **STORES,
    "listeners": "BOTH://127.0.0.1:0",
    "listener.security.protocol.map": "BOTH:SASL_SSL",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
    "listener.name.both.plain.sasl.jaas.config": jaas("Plain", "x", "x", **ADMIN),
    "connection.failed.authentication.delay.ms": "10",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with tailrace.Broker(config=SETTINGS) as running:
        yield f"127.0.0.1:{running._running().port('BOTH')}"


def test_every_client_command_works_with_a_command_config(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = write_client_config(tmp_path / "admin.properties", "admin")
    play(Player.with_command_config(bootstrap, config, monkeypatch), tmp_path, bootstrap, broker=1)


def test_every_client_command_works_with_settings_of_kcat(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(Player.with_settings(bootstrap, kcat_settings("admin"), monkeypatch), tmp_path, bootstrap, broker=1)


def test_every_client_command_works_with_a_profile(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    player = Player.with_profile(bootstrap, kcat_settings("admin"), tmp_path, monkeypatch)
    play(player, tmp_path, bootstrap, broker=1)


def test_every_client_command_is_refused_for_a_user_without_rights(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = Player.with_command_config(
        bootstrap, write_client_config(tmp_path / "admin.properties", "admin"), monkeypatch
    )
    admin.ok("topics", "create", "orders")
    try:
        stranger = Player.with_command_config(
            bootstrap, write_client_config(tmp_path / "mallory.properties", "mallory"), monkeypatch
        )
        play_as_stranger(stranger, tmp_path)
        assert admin.document("offsets", "orders")["partitions"][0]["latest"] == 0
        assert admin.document("acls", "list", "--principal", "User:mallory")["acls"] == []
    finally:
        admin.ok("topics", "delete", "orders")


def test_a_reader_learns_which_right_is_missing(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = Player.with_command_config(
        bootstrap, write_client_config(tmp_path / "admin.properties", "admin"), monkeypatch
    )
    reader = Player.with_command_config(
        bootstrap, write_client_config(tmp_path / "mallory.properties", "mallory"), monkeypatch
    )
    admin.ok("topics", "create", "orders")
    admin.ok("acls", "add", "--principal", "User:mallory", "--operation", "Read", "--topic", "orders")
    try:
        refused = reader.run("produce", "orders", stdin=b"x\n")
        assert refused.err.startswith(
            "tailrace: an idempotent producer: the user needs the right Write on a topic (CLUS"
        )
        refused = reader.run("consume", "orders", "--group", "billing")
        assert "billing: the operation is not allowed on the group (GROUP_AUTHORIZATION_FAILED)\n" in refused.err
    finally:
        admin.ok("acls", "remove", "--principal", "User:mallory", "--yes")
        admin.ok("topics", "delete", "orders")


def test_a_new_scram_user_logs_in_with_settings_of_kcat_and_from_a_profile(
    bootstrap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = Player.with_command_config(
        bootstrap, write_client_config(tmp_path / "admin.properties", "admin"), monkeypatch
    )
    admin.ok("users", "set", "carol", stdin=b"carol-secret\n")
    settings = {
        "security.protocol": "sasl_ssl",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "carol",
        "sasl.password": "carol-secret",
        "ssl.ca.location": str(TLS / "authority.pem"),
    }
    words = [word for name, text in settings.items() for word in ("-X", f"{name}={text}")]
    assert command("topics", "list", "-b", bootstrap, *words).status == 0
    wrong = command("topics", "list", "-b", bootstrap, *words, "-X", "sasl.password=wrong")
    assert (wrong.status, wrong.err.count("\n")) == (2, 1)
    assert "refused to authenticate 'carol'" in wrong.err

    (tmp_path / "tailrace").mkdir()
    lines = [f'"{name}" = "{text}"' for name, text in settings.items()]
    (tmp_path / "tailrace" / "profiles.toml").write_text(
        f'[test]\nbootstrap = "{bootstrap}"\n[test.settings]\n' + "\n".join(lines)
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert command("topics", "list", "--profile", "test").status == 0
    admin.ok("users", "remove", "carol")
