"""Transports read batches from segment files, or from a cluster over the network.

transport.py         Transport: the interface of both
files_transport.py   segment files, read in place
indexed_segment.py   IndexedSegment: the positions where a segment can be cut
topic_identity.py    TopicIdentity: the ids of a topic and its cluster
segment_feed.py      reads an offset range from a folder while a broker changes its files
tier_transport.py    remote segments of tiered storage, and the cluster for the rest
remote_metadata.py   RemoteMetadata: the remote segments that a cluster's metadata topic names
wire_transport.py    Fetch requests to any Kafka cluster
"""
