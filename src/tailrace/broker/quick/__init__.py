"""Fast paths for the most frequent requests. Each takes the plainest form of a request; handlers do the rest.

quick_requests.py       quick_handler: the fast path of an API
quick_produce.py        QuickProduce: Produce of one batch
waiting_produce.py      WaitingProduce: such a request with acks=all, until the replicas have its batch
quick_fetch.py          QuickFetch: a consumer's Fetch of one partition
quick_replica_fetch.py  QuickReplicaFetch: a follower's Fetch in its session
quick_commit.py         QuickCommit: OffsetCommit
"""
