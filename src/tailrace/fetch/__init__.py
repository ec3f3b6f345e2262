"""The Fetch path, from a request to the file slices that answer it. May import replication and below.

request ─► sessions.py ─► fetch_plan.py ─► read.py ─► enough? ─► response.py
                                            ▲          │ no
                                            └── delayed_fetch.py

fetches.py             Fetches and Fetch: one request from its session to its answer
context.py             the four kinds of fetch: sessionless, full, incremental, session error
session.py             FetchSession: the partitions that a client fetches
sessions.py            FetchSessions: the bounded cache of sessions, and the kind of fetch that a request is
fetch_plan.py          FetchParams and FetchPlan: limits, and which partitions are read in which order
isolation.py           who fetches (consumer, follower, debugger) and how far each may read
read.py                reads the partitions of a plan within the budget
byte_budget.py         how many bytes each partition may still return
preferred_replica.py   sends consumers to a replica in their rack (KIP-392)
delayed_fetch.py       waits for min_bytes or max_wait_ms; the cases A to I
response.py            puts the answers together for the request's version
down_conversion.py     batches as old message formats
explain.py             the steps of one fetch as data, for `tailrace explain fetch`
"""
