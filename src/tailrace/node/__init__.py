"""A complete node: settings, log directories, broker and network.

serving.py         broker_builder: builds a broker from its settings, with disk, clock and random numbers
shards/            several brokers as one node: `tailrace serve --shards N`
umask.py           the access rights of new files
quorum_network.py  QuorumNetwork: the network of a broker that joins a cluster, before it serves
remote_host.py     remote stores, and the threads that wait for them
offline_node.py    OfflineNode: a data directory without a broker, opened by this process
timed_files.py     TimedFiles: files that measure flushes
"""
