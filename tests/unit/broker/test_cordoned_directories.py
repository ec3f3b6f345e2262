"""cordoned.log.dirs: directories that keep what they have and get nothing new."""

from __future__ import annotations

import pytest

from tailrace.model.errors import ErrorCode
from tailrace.model.topic_config import InvalidConfig
from tailrace.protocol import messages as m
from tests.support.memory_files import MemoryFiles
from tests.support.memory_node import Client
from tests.unit.broker.test_directory_moves import A, B, order, start

CORDONED = "cordoned.log.dirs"


def cordon(client: Client, value: str) -> ErrorCode:
    request = m.IncrementalAlterConfigsRequest()
    change = request.AlterableConfig(name=CORDONED, value=value)
    request.resources = [request.AlterConfigsResource(resource_type=4, resource_name="1", configs=[change])]
    code = ErrorCode(client.ask(request, 1).responses[0].error_code)
    client.broker.tick(client.now_ms)
    return code


def create(client: Client, name: str, partitions: int) -> ErrorCode:
    topic = m.CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return ErrorCode(client.ask(m.CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code)


def count(client: Client) -> dict[str, int]:
    return {one.path: len(one.logs) for one in client.broker.services.logs.directories}


def described(client: Client) -> dict[str, bool]:
    results = client.ask(m.DescribeLogDirsRequest(topics=None), 5).results
    return {one.log_dir: one.is_cordoned for one in results}


def registered(client: Client) -> set[str]:
    paths = {one.id: one.path for one in client.broker.services.logs.directories}
    return {paths[one] for one in client.broker.services.controller.image.brokers[1].cordoned_directories or ()}


def test_a_directory_cordoned_at_the_start_gets_no_new_partitions() -> None:
    client = start(MemoryFiles(), settings={CORDONED: A})
    assert create(client, "t", 4) is ErrorCode.NONE
    assert count(client) == {A: 0, B: 4}
    assert described(client) == {A: True, B: False}
    assert registered(client) == {A}


def test_directories_can_be_cordoned_and_uncordoned_at_run_time() -> None:
    files = MemoryFiles()
    client = start(files)
    create(client, "before", 2)
    assert count(client) == {A: 1, B: 1}
    assert cordon(client, B) is ErrorCode.NONE
    assert (described(client), registered(client)) == ({A: False, B: True}, {B})
    create(client, "meanwhile", 2)
    assert count(client) == {A: 3, B: 1}
    assert order(client, B, "meanwhile") == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    client.broker.close(client.now_ms)
    client = start(files)  # the metadata still has the setting
    assert registered(client) == {B}
    assert cordon(client, "") is ErrorCode.NONE
    assert (described(client), registered(client)) == ({A: False, B: False}, set())
    create(client, "after", 2)
    assert count(client) == {A: 3, B: 3}


def test_no_topic_can_be_created_if_all_directories_are_cordoned() -> None:
    client = start(MemoryFiles())
    create(client, "before", 1)
    assert cordon(client, "*") is ErrorCode.NONE
    assert described(client) == {A: True, B: True}
    assert create(client, "t", 1) is not ErrorCode.NONE
    assert cordon(client, A) is ErrorCode.NONE
    assert create(client, "t", 1) is ErrorCode.NONE


def test_cordoning_a_directory_outside_log_dirs_is_refused() -> None:
    for value in ("/nowhere", f"*,{A}"):
        with pytest.raises(InvalidConfig, match=r"cordoned\.log\.dirs"):
            start(MemoryFiles(), settings={CORDONED: value})
    client = start(MemoryFiles())
    assert cordon(client, "/nowhere") is ErrorCode.INVALID_REQUEST
    assert registered(client) == set()
