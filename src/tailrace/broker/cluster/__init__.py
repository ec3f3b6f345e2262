"""Communication of a broker with its controllers and with other brokers. A cluster of one node does not use it.

quorum_startup.py         joining a cluster: read the metadata, register, wait to be unfenced
forwarding.py             Forwarding: forwards requests to the controller
config_forwarding.py      AlterConfigs and IncrementalAlterConfigs, checked here before they are forwarded
directory_assignments.py  DirectoryAssignments: reports the log directories of replicas to the controller
replication.py            Replication: fetches from leaders, proposes ISR changes to the controller
transaction_peers.py      TransactionPeers: requests about transactions to other brokers
share_state_peers.py      ShareStatePeers: requests about share group state to other brokers
controller_listener.py    ControllerListener: requests of other brokers, if this node is their controller; Envelopes
observer_fetch.py         ObserverFetch: a Fetch of the metadata log that waits for news
"""
