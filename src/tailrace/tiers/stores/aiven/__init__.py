"""The layout of Aiven's plugin for tiered storage: three objects for each segment, in a bucket or a folder.

aiven_store.py   AivenStore: copies, reads and deletes segments
aiven_layout.py  the names of objects
manifest.py      Manifest: the object that describes a segment; it is written last
chunk_index.py   ChunkIndex: where the chunks of a log are, if they are compressed
blobs.py         Blobs: the objects of a bucket, and DiskBlobs, the same in a folder
"""
