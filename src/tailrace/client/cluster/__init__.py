"""Requests to a cluster. ClusterClient finds the right broker, refreshes metadata and retries.

cluster_client.py  ClusterClient: requests to any broker, a leader, a coordinator or the controller
metadata.py        brokers, topics, partitions and leaders, as the cluster reports them
coordinators.py    finds the coordinator of a group or transactional id, and sends requests to it
replicas.py        the progress of single replicas, and running reassignments
reassignments.py   plans, starts, throttles and cancels moves of partitions
even_assignment.py plan_even: an even spread of partitions over brokers
elections.py       leader elections
quorum.py          controllers: the leader, and the lag of voters and observers
cluster_state.py   ClusterState: brokers, controllers, partitions, lag and problems in one value
"""
