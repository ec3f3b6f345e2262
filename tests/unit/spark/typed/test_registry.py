"""A schema registry that is down, slow or hostile costs a bounded time and memory, and says who is to blame."""

from __future__ import annotations

import pickle
import socket
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")


from tailrace.spark.typed.schemas import registry as module
from tailrace.spark.typed.schemas.registry import Registry, RegistryAddress, RegistryUnreachable, SchemaUnknown
from tests.support.schema_registry import FakeRegistry, fake_registry


@pytest.fixture
def server() -> Iterator[FakeRegistry]:
    with fake_registry() as found:
        yield found


def client(server: FakeRegistry, credentials: str | None = None) -> Registry:
    return Registry(RegistryAddress.parse(server.url, credentials), pause=lambda _: None)


def test_a_known_or_unknown_schema_is_requested_once(server: FakeRegistry) -> None:
    server.add(7, '"string"')
    registry = client(server)
    assert [registry.by_id(7).text for _ in range(3)] == ['"string"'] * 3
    for _ in range(2):
        with pytest.raises(SchemaUnknown, match="has no schemas/ids/8"):
            registry.by_id(8)
    assert len(server.asked) == 2


def test_a_worker_requests_a_limited_number_of_unknown_schema_ids(server: FakeRegistry) -> None:
    registry = client(server)
    for schema_id in range(150):
        with pytest.raises(SchemaUnknown):
            registry.by_id(schema_id)
    assert len(server.asked) == 100
    with pytest.raises(SchemaUnknown, match="was not looked up: 100 other ids are unknown"):
        registry.by_id(1000)


def test_references_are_collected_before_the_schemas_that_use_them(server: FakeRegistry) -> None:
    def to(name: str) -> dict[str, Any]:
        return {"name": name, "subject": f"{name}/x", "version": 1}

    server.add(1, "top", references=[to("b"), to("a")])
    server.answers["/subjects/a%2Fx/versions/1"] = {"schema": "A"}
    server.answers["/subjects/b%2Fx/versions/1"] = {"schema": "B", "references": [to("a"), to("b")]}
    assert list(client(server).by_id(1).references.items()) == [("a", "A"), ("b", "B")]


def test_an_endless_chain_of_references_ends(server: FakeRegistry) -> None:
    server.add(1, "top", references=[{"name": "0", "subject": "s", "version": 0}])
    for number in range(200):
        following = [{"name": str(number + 1), "subject": "s", "version": number + 1}]
        server.answers[f"/subjects/s/versions/{number}"] = {"schema": "x", "references": following}
    with pytest.raises(SchemaUnknown, match="more than 100 references"):
        client(server).by_id(1)


def test_credentials_are_sent_and_never_shown(server: FakeRegistry) -> None:
    server.add(1, '"int"')
    client(server, "me:secret").by_id(1)
    client(server, "Bearer token").by_id(1)
    assert [sent for _, sent in server.asked] == ["Basic bWU6c2VjcmV0", "Bearer token"]
    address = RegistryAddress.parse("https://me:secret@registry:8081/path/")
    assert (address.url, "secret" in repr(address)) == ("https://registry:8081/path", False)
    with pytest.raises(ValueError, match="'registry:8081' is not the URL"):
        RegistryAddress.parse("me:secret@registry:8081")
    copy = pickle.loads(pickle.dumps(Registry(address)))
    assert copy.address == address


def test_a_request_to_a_busy_registry_is_retried_and_a_refused_one_is_not(server: FakeRegistry) -> None:
    server.answers["/schemas/ids/1"] = [503, 500, {"schema": '"int"'}]
    assert client(server).by_id(1).text == '"int"'
    server.answers["/schemas/ids/2"] = 503
    with pytest.raises(RegistryUnreachable, match="cannot be asked: it responds with status 503"):
        client(server).by_id(2)
    server.answers["/schemas/ids/3"] = 401
    with pytest.raises(RegistryUnreachable, match="refuses /schemas/ids/3: status 401"):
        client(server).by_id(3)
    assert len(server.asked) == 3 + 4 + 1


def test_a_registry_that_is_down_fails_the_job_after_some_attempts() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = RegistryAddress.parse(f"http://127.0.0.1:{unused.getsockname()[1]}")
    pauses: list[float] = []
    with pytest.raises(RegistryUnreachable, match="cannot be asked"):
        Registry(address, pauses.append).by_id(1)
    assert len(pauses) == 3


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"<html>", "is not a JSON object"),
        (b"[" * 100_000, "is not a JSON object"),
        (b"[]", "is not a JSON object"),
        (b"x" * 600_000, "more than 524288 bytes"),
        ({"schema": 7}, "without its text"),
        ({"schema": "x", "references": [{"name": "a"}]}, "a reference of another form"),
        ({"schema": "x", "references": 5}, "references that are not a list"),
    ],
)
def test_hostile_responses_are_bounded(server: FakeRegistry, answer: Any, words: str) -> None:
    server.answers["/schemas/ids/1"] = answer
    with pytest.raises(RegistryUnreachable, match=words):
        client(server).by_id(1)


def test_a_response_that_arrives_byte_by_byte_is_cut_off(server: FakeRegistry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT_S", 0.2)
    server.add(1, "x" * 10_000)
    server.drip_s = 0.05
    with pytest.raises(RegistryUnreachable, match="cannot be asked"):
        client(server).by_id(1)
