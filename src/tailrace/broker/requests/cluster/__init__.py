"""Requests about the cluster, its nodes, their log directories, and the supported APIs.

api_versions.py            ApiVersions
describe_cluster.py        DescribeCluster
describe_quorum.py         DescribeQuorum
add_raft_voter.py          AddRaftVoter
remove_raft_voter.py       RemoveRaftVoter
unregister_broker.py       UnregisterBroker
update_features.py         UpdateFeatures
describe_log_dirs.py       DescribeLogDirs
alter_replica_log_dirs.py  AlterReplicaLogDirs
cluster_authorization.py   checks of rights on the cluster
"""
