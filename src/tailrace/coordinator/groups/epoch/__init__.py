"""The engine of epoch groups: consumer groups (KIP-848), share groups (KIP-932) and streams groups (KIP-1071).

In all three the coordinator computes the assignment. A change of members, subscriptions or topics bumps the group
epoch. A target assignment is computed for that epoch. Each member is reconciled to its target, heartbeat by heartbeat.

    heartbeat ──► member ──► group epoch ──► target ──► current assignment ──► records ──► replay
                  session and revocation timers fence members that are silent or late

The kinds keep what differs: their requests, subscriptions, assignors, and the shape of an assignment.

    epoch_engine.py         the steps of a heartbeat: find, check, bump the epoch, store the target and the current step
    epoch_group.py          EpochGroup: epochs, members, target assignment; checks of commits; state names
    epoch_member.py         EpochMember: identity, epochs and state of a member; the check of a heartbeat's epoch
    reconciliation.py       one step of a member from its current assignment to its target
    member_timers.py        session, revocation and rejoin timers, which fence members
    epoch_records.py        the five records that each kind has: written, read, tombstones
    record_fields.py        how members and partitions are stored in messages, described as data
    epoch_replay.py         records replayed into the state
    epoch_description.py    the common parts of the Describe responses
    epoch_settings.py       the common configuration
    subscriptions.py        Subscriptions: topics counted by the members that subscribe to them
    target_computations.py  targets of large groups: computed on a worker thread, written in slices
    metadata_hash.py        the hash by which a group notices that its topics have changed
"""
