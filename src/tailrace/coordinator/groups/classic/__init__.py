"""Classic groups: the members elect a leader, and the leader assigns the work.

JoinGroup ──► gather all members ──► new generation ──► SyncGroup of the leader ──► assignment stored ──► Stable
Heartbeat keeps a session; a member that joins, leaves or times out starts the next rebalance

classic_group.py        ClassicGroup: members, leader, protocol, states and their transitions
classic_member.py       ClassicMember: identity and protocols of a member, and the responses that it waits for
classic_join.py         JoinGroup: new and known members
join_request.py         JoinRequest: a JoinGroup request, decoded
static_members.py       StaticMembers: instance ids, and the fencing of earlier member ids
static_rejoin.py        StaticRejoins: a static member joins again after a restart
classic_membership.py   SyncGroup, Heartbeat and LeaveGroup
classic_rebalance.py    Rebalances: gathering, generations, sessions and their timers
classic_records.py      records of classic groups: written and read
"""
