"""Messages as JSON."""

from __future__ import annotations

import pytest

from tailrace.protocol.errors import UnsupportedVersion
from tailrace.protocol.json_form import base64_uuid_text, to_dict
from tailrace.protocol.messages import FetchRequest, PartitionChangeRecord, ProduceRequest, SaslAuthenticateRequest


def test_names_and_values_equal_kafkas() -> None:
    record = PartitionChangeRecord(partition_id=3, topic_id=bytes(range(16)), isr=[1, 2])
    assert to_dict(record, 0) == {"partitionId": 3, "topicId": "AAECAwQFBgcICQoLDA0ODw", "isr": [1, 2]}


def test_a_tagged_field_at_its_default_is_left_out_and_null_is_not() -> None:
    form = to_dict(FetchRequest(), 17)
    assert "clusterId" not in form
    assert "replicaState" not in form
    assert "replicaId" not in form  # gone since version 15
    assert form["topics"] == []


def test_bytes_are_base64() -> None:
    assert to_dict(SaslAuthenticateRequest(auth_bytes=b"\xff\xfe\xfd"), 2) == {"authBytes": "//79"}
    assert base64_uuid_text(b"\xff" * 16) == "_____________________w"


def test_records_are_shown_as_their_size_unless_requested() -> None:
    partition = ProduceRequest.PartitionProduceData(records=memoryview(b"abc"))
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData(name="t", partition_data=[partition])])
    reported = [to_dict(request, 9, with_records=asked)["topicData"][0]["partitionData"][0] for asked in (False, True)]
    assert reported == [{"index": 0, "recordsSizeInBytes": 3}, {"index": 0, "records": "YWJj"}]


def test_a_version_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UnsupportedVersion):
        to_dict(FetchRequest(), 99)
