"""The controller as a broker sees it: LocalController inside a standalone node, RemoteController below a quorum.

controller.py          Controller: the interface of both
local_controller.py    LocalController: the controller of a cluster of one
control_state.py       the input and the result of a decision
token_control.py       delegation tokens of a LocalController
topic_control.py       topics and partitions that a LocalController creates, with pauses if they are many
raft_voters.py         AddRaftVoter and RemoveRaftVoter of a quorum of one
quorum_description.py  DescribeQuorum of a quorum of one
remote_controller.py   RemoteController: forwards changes and follows the metadata of a quorum
controller_channel.py  sends requests to the active controller, and finds it again
"""
