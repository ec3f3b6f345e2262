from __future__ import annotations

import pytest

from tailrace.client.producing.partitioner import partition_of_key
from tailrace.model.java.murmur2 import murmur2

# The results of Kafka's Utils.murmur2 (signed) and BuiltInPartitioner.partitionForKey(key, 7).
JAVA = [
    ("", 275646681, 2),
    ("00", 375494588, 0),
    ("ff", -311467685, 5),
    ("010203", 2139322793, 6),
    ("01020304", -1698034171, 1),
    ("807f00ff05", -314396450, 5),
    ("6b6579", -1079937367, 4),
    ("637573746f6d65722d37", -1283830537, 6),
    ("6772c3b6c39f6572", -365361616, 5),
    ("00" * 100, 518425432, 0),
    ("183477a35a94c9bf390b770209d32a595d4a987d41f4b3e592471abe05194bb55dcab391", 1607538654, 1),
    ("693058b22edd1479f1953297e1c82141a6a46d99364cf461b317c99fee614cc5a74b029f8f81", -94013244, 6),
]


@pytest.mark.parametrize(("key", "signed_hash", "partition"), JAVA)
def test_keys_have_the_partitions_of_the_java_client(key: str, signed_hash: int, partition: int) -> None:
    data = bytes.fromhex(key)
    assert murmur2(data) == signed_hash % 2**32
    assert murmur2(memoryview(data)) == signed_hash % 2**32
    assert partition_of_key(data, 7) == partition
