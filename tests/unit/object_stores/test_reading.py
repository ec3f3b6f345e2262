"""A bucket is read with few requests and limited retries; errors are one sentence, and keys are never shown."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from tailrace.log.disk.files import DiskFiles
from tailrace.log.recovery.recovery import open_log
from tailrace.model.topic_config import TopicConfig
from tailrace.object_stores import object_file, read_ahead
from tailrace.object_stores.object_files import ObjectFiles
from tailrace.object_stores.opening import files_of
from tailrace.object_stores.settings import ATTEMPTS, StoreSettings
from tailrace.object_stores.store_address import Place, WrongAddress, parse_place
from tailrace.spark.source.errors import OffsetRangeLost, Unreadable, WrongOption
from tailrace.spark.source.options import read_options
from tests.support.batches import batch
from tests.support.s3_server import KEYS, S3Server
from tests.support.source_rows import offsets, plan, read, read_slices

NOW_MS = 1_700_000_000_000
SEGMENTS, BATCHES, RECORDS = 6, 40, 5
LAST = SEGMENTS * BATCHES * RECORDS


@pytest.fixture(scope="session")
def orders(running_store: S3Server, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Return a topic of some segments with many batches and index entries: its address, and its path on disk."""
    directory = tmp_path_factory.mktemp("orders")
    config = TopicConfig(index_interval_bytes=4096)
    log = open_log(DiskFiles(), f"{directory}/orders-0", config, now_ms=NOW_MS)
    for number in range(SEGMENTS * BATCHES):
        if number % BATCHES == 0 and number:
            log.roll(NOW_MS)
        time = NOW_MS + number * RECORDS
        records = batch(*[bytes(2000)] * RECORDS, timestamp=range(time, time + RECORDS))
        log.append_as_leader(records, leader_epoch=0, now_ms=time)
    log.advance_high_watermark(log.log_end_offset)
    log.close()
    return running_store.upload(directory, "orders-bucket"), directory


def asked(s3: S3Server, address: str, **more: str) -> dict[str, str]:
    return {"path": address, "subscribe": "orders", **s3.options, **more}


def test_a_narrow_query_reads_two_indexes_and_a_few_batches(s3: S3Server, orders: tuple[str, Path]) -> None:
    where = {"startingOffsets": '{"orders":{"0":700}}', "endingOffsets": '{"orders":{"0":710}}'}
    with s3.counted() as requests:
        slices = pickle.loads(pickle.dumps(plan(asked(s3, orders[0], **where))))
        driver = len(s3.requests)
        assert offsets(read_slices(slices)) == list(range(700, 710))
    task = s3.requests[driver:]
    assert [request.kind for request in task] == ["LIST", "HEAD", "GET", "HEAD", "GET"]
    read_of_logs = sum(request.sent for request in requests if request.kind == "GET" and request.key.endswith(".log"))
    assert read_of_logs <= 2 * object_file.FIRST_WINDOW
    assert sum(request.kind != "HEAD" for request in requests) <= 12


def test_a_whole_topic_is_read_with_a_request_for_each_part(
    s3: S3Server, orders: tuple[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_file, "PART_BYTES", 128 * 1024)
    slices = pickle.loads(pickle.dumps(plan(asked(s3, orders[0]))))
    with s3.counted() as requests:
        assert offsets(read_slices(slices)) == list(range(LAST))
    logs = [request for request in requests if request.key.endswith(".log") and request.kind == "GET"]
    sizes = [path.stat().st_size for path in sorted((orders[1] / "orders-0").glob("*.log"))]
    assert len(logs) == sum(-(-size // (128 * 1024)) for size in sizes)
    assert sum(request.sent for request in logs) == sum(sizes)


def test_offsets_by_time_are_the_same_as_on_disk(s3: S3Server, orders: tuple[str, Path]) -> None:
    for moment in (NOW_MS, NOW_MS + 333, NOW_MS + LAST - 1):
        more = {"startingTimestamp": str(moment), "endingTimestamp": str(moment + 50)}
        expected = read({"path": str(orders[1]), "subscribe": "orders", **more})
        assert read(asked(s3, orders[0], **more)) == expected != []


def test_unchanged_objects_are_not_fetched_again(s3: S3Server, orders: tuple[str, Path]) -> None:
    """A stream queries the end of the log repeatedly."""
    files = files_of(parse_place(orders[0], settings(s3)))
    path = f"{orders[0]}/orders-0"
    names = [entry.name for entry in files.entries(path)]
    index = next(name for name in names if name.endswith(".index"))
    first = files.read(f"{path}/{index}")
    with s3.counted() as requests:
        files.entries(path)
        assert files.read(f"{path}/{index}") == first
    assert [request.kind for request in requests] == ["LIST"]


def settings(s3: S3Server) -> StoreSettings:
    return StoreSettings(
        endpoint_override=s3.endpoint,
        region="us-east-1",
        access_key=KEYS["accessKey"],
        secret_key=KEYS["secretKey"],
    )


def test_a_segment_deleted_during_a_read_is_data_loss(s3: S3Server, orders: tuple[str, Path]) -> None:
    address = s3.upload(orders[1], "going")
    slices = plan(asked(s3, address))
    first = sorted(path.name for path in (orders[1] / "orders-0").glob("*.log"))[0]
    s3.remove(f"{address}/orders-0/{first}")
    with pytest.raises(OffsetRangeLost, match="offsets 0 to 199 of orders-0 are missing"):
        read_slices(pickle.loads(pickle.dumps(slices)))
    assert offsets(read_slices(slices, fail_on_data_loss=False)) == list(range(200, LAST))


def test_an_object_deleted_after_opening_is_reported_as_deleted(s3: S3Server, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(bytes(200_000))
    address = s3.upload(tmp_path, "gone-later")
    file = files_of(parse_place(address, settings(s3))).open(f"{address}/x")
    assert file.read(0, 10) == bytes(10)
    s3.remove(f"{address}/x")
    with pytest.raises(FileNotFoundError, match=r"no such object|the object was deleted"):
        file.read(150_000, 10)


def test_a_request_to_a_busy_store_is_retried(s3: S3Server, orders: tuple[str, Path]) -> None:
    s3.busy = 1
    assert offsets(read(asked(s3, orders[0], endingOffsets='{"orders":{"0":7}}'))) == list(range(7))
    assert s3.busy == 0


@pytest.mark.slow
def test_retries_to_a_busy_store_are_limited(s3: S3Server, orders: tuple[str, Path]) -> None:
    s3.busy = 1_000
    with s3.counted() as requests, pytest.raises(Unreadable, match=r"s3://orders-bucket cannot be read: the store was"):
        read(asked(s3, orders[0]))
    s3.busy = 0
    assert len(requests) == ATTEMPTS
    with pytest.raises(Unreadable, match="s3://orders-bucket cannot be read: the store cannot be reached"):
        read({**asked(s3, orders[0]), "endpointOverride": "http://127.0.0.1:1"})


def test_errors_of_the_store_are_reported_in_one_sentence(s3: S3Server, orders: tuple[str, Path]) -> None:
    def reported(path: str) -> str:
        with pytest.raises(Unreadable) as error:
            read(asked(s3, path))
        assert KEYS["secretKey"] not in str(error.value)
        return str(error.value)

    assert reported("s3://nobodys-bucket/x") == "s3://nobodys-bucket/x cannot be read: no such bucket"
    assert reported(f"{orders[0]}/none") == f"{orders[0]}/none cannot be read: no such object"


def test_keys_are_not_in_repr_or_messages(s3: S3Server) -> None:
    options = read_options(asked(s3, "s3a://bucket/x"), is_stream=False)
    for shown in (repr(options), str(options), repr(options.store)):
        assert KEYS["secretKey"] not in shown
        assert KEYS["accessKey"] not in shown


def test_the_option_names_of_hadoops_connector_are_accepted(s3: S3Server, orders: tuple[str, Path]) -> None:
    hadoop = {
        "fs.s3a.endpoint": s3.endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.access.key": KEYS["accessKey"],
        "fs.s3a.secret.key": KEYS["secretKey"],
    }
    address = orders[0].replace("s3://", "s3a://")
    wanted = {"subscribe": "orders", "endingOffsets": '{"orders":{"0":7}}'}
    assert offsets(read({"path": address, **wanted, **hadoop})) == list(range(7))
    assert read_options({"path": address, "subscribe": "t", **hadoop}, is_stream=False).store == settings(s3)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"path": "s3://b/x", "accessKey": "a"}, "accessKey and secretKey must be set together"),
        ({"path": "s3://b/x", "sessionToken": "a"}, "sessionToken needs accessKey"),
        (
            {"path": "s3://b/x", "anonymous": "true", "accessKey": "a", "secretKey": "b"},
            "anonymous and accessKey cannot be set together",
        ),
        ({"path": "gs://b/x", "region": "here"}, "region is for s3:// only; Google's store uses the credentials"),
        ({"path": "s3://b/x", "region": "a", "fs.s3a.endpoint.region": "b"}, "are the same option, but have different"),
        ({"path": "s3://b/x?secret_key=hidden"}, "secret_key cannot be set in an address"),
        ({"path": "s3://key:hidden@b/x"}, "an address must not contain keys"),
        ({"path": "s3://"}, "the address has no bucket"),
        ({"path": "abfs://b/x"}, "abfs:// is not supported"),
    ],
)
def test_a_wrong_store_option_is_reported(given: dict[str, str], words: str) -> None:
    with pytest.raises(WrongOption, match=words) as error:
        read_options({"subscribe": "t", **given}, is_stream=False)
    assert "hidden" not in str(error.value)


def test_options_of_a_store_have_no_effect_on_a_directory() -> None:
    options = read_options({"path": "/data", "subscribe": "t", "region": "here"}, is_stream=False)
    assert options.warnings == ("region has no effect: it is for a path in an object store",)


def test_addresses_are_parsed_with_their_settings() -> None:
    assert parse_place("file:///data/") == Place("/data", None)
    assert parse_place("S3A://b/x//") == Place("s3a://b/x", StoreSettings())
    assert parse_place("s3://b?endpoint_override=h:1&scheme=http&anonymous=true&region=r") == Place(
        "s3://b", StoreSettings(endpoint_override="http://h:1", anonymous=True, region="r")
    )
    with pytest.raises(WrongAddress, match="absolute path"):
        parse_place("file://data")


def test_every_write_to_a_store_is_refused(s3: S3Server, orders: tuple[str, Path]) -> None:
    files: Any = files_of(parse_place(orders[0], settings(s3)))
    path = f"{orders[0]}/orders-0/leader-epoch-checkpoint"
    for change in (
        lambda: files.write(path, b"", sync=True),
        lambda: files.remove(path),
        lambda: files.replace(path, path),
        lambda: files.make_directory(path),
        lambda: files.lock(path),
        lambda: files.open(f"{path}.new", create=True),
        lambda: files.open(path).write(0, b""),
        lambda: files.open(path).truncate(0),
    ):
        with pytest.raises(OSError, match="read-only"):
            change()


class OneObject:
    """A store of one object that counts its requests."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.reads: list[tuple[int, int]] = []

    def list(self, path: str) -> dict[str, Any]:
        from tailrace.object_stores.store import ListedObject

        return {"x": ListedObject(False, len(self.data), 0)}

    def open(self, path: str) -> OneObject:
        return self

    def read(self, position: int, size: int) -> bytes:
        self.reads.append((position, size))
        return self.data[position : position + size]


def test_every_kind_of_read_returns_the_bytes_of_the_object() -> None:
    data = bytes(range(251)) * 4000
    for part in (1000, 70_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(object_file, "PART_BYTES", part)
            store = OneObject(data)
            file = ObjectFiles(store).open("b/x")
            file.will_read(5000, 900_000)
            for position, size in ((5000, 10), (5010, 300_000), (305_010, 40), (899_990, 500), (10, 100), (0, 2**20)):
                assert file.read(position, size) == data[position : position + size]
                buffer = bytearray(size)
                got = file.read_into(position, memoryview(buffer))
                assert buffer[:got] == data[position : position + size]
            assert bytes(file.map()) == data


def test_read_ahead_fetches_only_announced_parts_within_its_bound() -> None:
    store = OneObject(bytes(20 * read_ahead.PART_BYTES))
    file = ObjectFiles(store).open("b/x")
    file.will_read(0, 10 * read_ahead.PART_BYTES)
    assert len(file.read(0, 100)) == 100
    file.release()
    assert len(store.reads) <= read_ahead.PARTS_AT_ONCE + 1


def test_sequential_small_reads_use_growing_windows() -> None:
    store = OneObject(bytes(4 * 2**20))
    file = ObjectFiles(store).open("b/x")
    for position in range(0, 4 * 2**20, 4096):
        assert len(file.read(position, 61)) == 61
    assert len(store.reads) <= 8
