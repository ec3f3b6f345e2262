"""API keys agree with the schemas."""

from __future__ import annotations

import pytest

from tailrace.protocol.api_keys import ApiKey, api, apis
from tailrace.protocol.errors import UnsupportedVersion
from tailrace.protocol.internal_records.metadata_frames import record_type_name
from tailrace.protocol.registry import request_class


def test_every_api_has_its_key() -> None:
    assert [one.key for one in apis()] == sorted(ApiKey)
    assert {one.key.name for one in apis()} == {record_type_name(one.name) for one in apis()}
    assert ApiKey.FETCH == 1


def test_an_api_has_the_versions_of_its_request() -> None:
    for one in apis():
        schema = request_class(one.key).SCHEMA
        assert schema.name == f"{one.name}Request"
        for facts, reported in (
            (one.versions, schema.versions),
            (one.removed, schema.removed),
            (one.flexible, schema.flexible),
        ):
            assert (facts.low, facts.high) == (reported.low, reported.high)
        assert (one.listeners, one.latest_version_unstable) == (schema.listeners, schema.latest_version_unstable)


@pytest.mark.parametrize(
    ("key", "offered"),
    [
        (ApiKey.FETCH, "4-18"),
        (ApiKey.PRODUCE, "3-13"),
        (ApiKey.METADATA, "0-13"),
        (ApiKey.INIT_PRODUCER_ID, "0-5"),  # 6 is unstable in 4.3
        (ApiKey.STOP_REPLICA, "none"),
        (ApiKey.SHARE_FETCH, "1-2"),
    ],
)
def test_the_offered_versions_equal_kafka_4s(key: ApiKey, offered: str) -> None:
    assert str(api(key).offered) == offered


def test_an_api_has_the_listeners_that_serve_it() -> None:
    assert api(ApiKey.PRODUCE).listeners == ("broker",)
    assert api(ApiKey.VOTE).listeners == ("controller",)
    assert len([one for one in apis() if "broker" in one.listeners and one.offered]) == 77


def test_an_unknown_key_is_refused() -> None:
    with pytest.raises(UnsupportedVersion, match="API key 12345 is unknown"):
        api(12345)
