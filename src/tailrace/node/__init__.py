"""A whole node: settings, log directories, broker and network put together.

serving.py       broker_builder: settings of a server and of a broker, and what the core is given by its process
joining.py       QuorumNetwork: the network of a broker that joins a cluster, before it serves
offline_node.py  OfflineNode: a data directory that no broker serves, opened by this process for a while
timed_files.py   TimedFiles: files that measure flushes
"""
