"""Fast paths for the most frequent requests. Each takes the plainest form of a request; handlers do the rest.

quick_requests.py       quick_handler: the fast path of an API
quick_produce.py        QuickProduce: Produce of one batch
waiting_produce.py      WaitingProduce: such a request with acks=all, until the replicas have its batch
quick_commit.py         QuickCommit: OffsetCommit
"""
