"""The controller as a broker sees it: LocalController in the same node, RemoteController below a quorum.

controller.py          Controller: the interface of both
local_controller.py    LocalController: the only controller of a cluster
broker_control.py      the brokers below a LocalController: registration, heartbeats, ISRs, elections by itself
partition_sweep.py     leaders and ISRs that follow a change of a broker, in steps
broker_sessions.py     the time of each broker's last heartbeat, and how far it has read the metadata
own_broker.py          the broker in the process of a LocalController
control_state.py       the input and the result of a decision
token_control.py       delegation tokens of a LocalController
topic_control.py       topics and partitions that a LocalController creates, with pauses if they are many
raft_voters.py         AddRaftVoter and RemoveRaftVoter of a quorum of one
quorum_description.py  DescribeQuorum of a quorum of one
remote_controller.py   RemoteController: forwards changes and follows the metadata of a quorum
controller_channel.py  sends requests to the active controller, and finds it again
"""
