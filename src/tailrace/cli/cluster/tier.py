"""`tailrace tier verify` and `tailrace tier gc`: files in a remote store that no segment of the cluster needs."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from tailrace.cli.connection.connecting import connected
from tailrace.cli.errors import CommandError
from tailrace.cli.log.partition_choice import files_at, tidy_path
from tailrace.cli.output import count_text, json_document, print_lines, table
from tailrace.client.cluster.cluster_client import ClusterClient
from tailrace.object_stores.store_address import is_remote, parse_place
from tailrace.object_stores.writing.open_blobs import blobs_of
from tailrace.object_stores.writing.s3_blobs import S3Blobs, Upload
from tailrace.spark.source.errors import SourceError
from tailrace.spark.source.transports.remote_metadata import RemoteMetadata
from tailrace.tiers.stores.tier_check import Finding, Kind, OpenUpload, SegmentKey, TierCheck, list_store

_EXPLANATIONS = {
    Kind.ORPHAN: "not in the metadata: a copy or a deletion was not completed",
    Kind.FOREIGN: "of a topic that the cluster has never tiered; --foreign deletes them",
    Kind.UPLOAD: "an upload was begun and not completed",
    Kind.MISSING: "can be read according to the metadata, but files are missing",
}


def verify(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        found = _findings(options, cluster)
    return _print(options.store, found, (), options.json)


def gc(options: argparse.Namespace) -> int:
    with connected(options) as cluster:
        found = _findings(options, cluster)
    kinds = {Kind.ORPHAN, Kind.UPLOAD} | ({Kind.FOREIGN} if options.foreign else set())
    due = [one for one in found if one.kind in kinds]
    left = [one for one in found if one.kind not in kinds and one.kind is not Kind.FOREIGN]
    if options.yes:
        _delete(options.store, due)
    _print(options.store, due if not options.yes else left, due if options.yes else (), options.json)
    return 1 if left or (due and not options.yes) else 0


def _findings(options: argparse.Namespace, cluster: ClusterClient) -> list[Finding]:
    """Compare the store with the metadata, which is read after the store was listed."""
    metadata = RemoteMetadata()
    try:
        is_tiered = metadata.is_there(cluster)
        path = tidy_path(options.store)
        files = files_at(options.store)
        if not is_remote(options.store):
            files.entries(path)  # raises an error if there is no such folder
        stored = list_store(files, path)
        uploads = [OpenUpload(one.key, one.upload_id) for one in _uploads(options.store)]
        if is_tiered:
            metadata.read_all(cluster)
    except SourceError as error:
        raise CommandError(str(error)) from None
    segments = {
        SegmentKey(one.segment_id.topic_id, one.segment_id.partition, one.segment_id.text): one
        for one in metadata.segments()
    }
    return TierCheck(segments, metadata.topics).findings(stored, uploads)


def _uploads(address: str) -> list[Upload]:
    """Return the uploads that were begun and not completed. Google's store deletes its own after a week."""
    if not is_remote(address):
        return []
    blobs = blobs_of(parse_place(address))
    return list(blobs.abandoned()) if isinstance(blobs, S3Blobs) else []


def _delete(address: str, due: Sequence[Finding]) -> None:
    if not is_remote(address):
        files = files_at(address)
        for one in due:
            for path in one.names:
                files.remove(path)
        return
    place = parse_place(address)
    blobs = blobs_of(place)
    for one in due:
        if one.kind is Kind.UPLOAD and isinstance(blobs, S3Blobs):
            blobs.abort(Upload(one.names[0], one.names[1], 0))
        else:
            for path in one.names:
                blobs.delete([path.removeprefix(place.path).lstrip("/")])


def _print(store: str, found: Sequence[Finding], deleted: Sequence[Finding], is_json: bool) -> int:
    if is_json:
        document = {
            "store": store,
            "findings": [_json(one) for one in found],
            "deleted": [_json(one) for one in deleted],
        }
        print_lines(json_document(document))
    else:
        for title, some in (("", found), ("deleted:", deleted)):
            if some:
                rows = [(one.kind.value, str(one.partition), one.start_offset, one.segment_id) for one in some]
                print_lines(*([title] if title else []), *table(["<KIND", "<PARTITION", "OFFSET", "<SEGMENT"], rows))
        for kind in dict.fromkeys(one.kind for one in found):
            print_lines(f"{kind.value}: {_EXPLANATIONS[kind]}")
        print_lines(f"{store}: {count_text(len(found), 'finding')}, {len(deleted)} deleted")
    return 1 if found else 0


def _json(one: Finding) -> dict[str, Any]:
    return {
        "kind": one.kind.value,
        "topic": one.partition.topic,
        "partition": one.partition.partition,
        "startOffset": one.start_offset,
        "segmentId": one.segment_id,
        "names": list(one.names),
    }
