"""A broker of a cluster: its controllers and the other brokers. A broker that is alone has none of these parts.

quorum_startup.py         joining: the metadata is followed, the broker registers and waits to be let in
forwarding.py             Forwarding: requests that only the controller may decide
config_forwarding.py      AlterConfigs and IncrementalAlterConfigs, checked here before they are forwarded
directory_assignments.py  DirectoryAssignments: reports the log directories of replicas to the controller
replication.py            Replication: fetches what is followed, proposes in-sync replicas
transaction_peers.py      TransactionPeers: markers and partitions of transactions, sent to other brokers
share_state_peers.py      ShareStatePeers: state of share groups, asked of other brokers
"""
