"""Where batches come from: segment files, or a cluster over the wire.

transport.py         Transport: the interface of both
files_transport.py   segment files, read in place
segment_map.py       IndexedSegment: where a segment can be cut
segment_feed.py      reads an offset range from a folder while files come and go
wire_transport.py    Fetch requests to any Kafka cluster
"""
