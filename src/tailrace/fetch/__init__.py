"""The Fetch path, from a request to the file slices of its response. May import replication and below.

request ─► request_context.py ─► fetch_plan.py ─► read.py ─► enough? ─► response.py
                                                   ▲          │ no
                                                   └── delayed_fetch.py

fetches.py             Fetches: starts and parks fetches
fetch.py               Fetch: one request from its plan to its response; Reason: why the wait ended
request_context.py     the kind of fetch that a request is, by session id and epoch
context.py             the four kinds: sessionless, full, incremental, session error
session.py             FetchSession: the partitions that a client fetches
sessions.py            FetchSessions: the bounded cache of sessions
fetch_plan.py          FetchParams and FetchPlan: limits, and which partitions are read in which order
isolation.py           the kinds of fetcher (consumer, follower, debugger) and how far each may read
read.py                reads the partitions of a plan within the budget
byte_budget.py         how many bytes each partition may still return
preferred_replica.py   sends consumers to a replica in their rack (KIP-392)
delayed_fetch.py       waits for min_bytes or max_wait_ms; the cases A to I
response.py            builds the response for the request's version
down_conversion.py     converts batches to the old message formats
explain.py             the steps of one fetch as data, for `tailrace explain fetch`
"""
