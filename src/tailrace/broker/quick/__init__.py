"""Fast paths for the most frequent requests. Each takes the plainest form of a request; handlers do the rest.

quick_requests.py       quick_handler: the fast path of an API
quick_commit.py         QuickCommit: OffsetCommit
"""
