"""The replicas hosted here: roles, epochs, ISR, high watermark, acks. May import metadata and below.

Produce   produce.py ─► partition.py ─► leader.py ─► log; acks=all: delayed_produce.py
Follow    fetching/ ─► partition.py ─► follower.py ─► log

partition.py               Partition: one replica; fences epochs, then asks its role
leader.py                  LeaderRole: followers, high watermark, low watermark, ISR
follower.py                FollowerRole: appends what the leader sends, truncates where logs diverge
replica_settings.py        ReplicaSettings: what all replicas of a broker share
hosted_partitions.py       HostedPartitions: all replicas of this broker, online or offline
follower_progress.py       FollowerProgress: a follower's position, known from its fetches
produce.py                 appends a Produce request partition by partition
delayed_produce.py         waits for acks=all
delayed_delete_records.py  waits until all replicas have moved their log start
current_leader.py          the leader and its endpoint, for a client that asked the wrong broker
moving_copy.py             MovingCopy: the copy of a log in another directory, and its progress
directory_move.py          DirectoryMove: fills the copy, then replaces the log by it
topic_traffic.py           TopicTraffic: counters of a topic's traffic
fetching/                  a follower's fetchers
isr/                       the in-sync replicas, and how they change
"""
