"""The follower's side of replication: fetchers, their sessions and throttles.

replica_fetchers.py   ReplicaFetchers: num.replica.fetchers fetchers per leader
replica_fetcher.py    ReplicaFetcher: one request at a time to one leader
fetcher_settings.py   FetcherSettings: what all fetchers of a broker share
offsets_request.py    the ListOffsets request of a follower whose log end the leader does not have
followed.py           Followed: a partition in its role as follower
leader_session.py     LeaderSession: the fetch session with a leader (KIP-227)
throttles.py          replication throttles of leaders and followers
"""
