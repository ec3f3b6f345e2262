"""Requests that read and write records.

Produce appends records through the package replication, and waits for replicas if acks=all. Fetch uses the package
fetch, and ShareFetch the package shares.

    produce.py                  Produce
    produce_checks.py           checks of the records of a Produce request
    produce_verification.py     the check of transactional records at their coordinator
    fetch.py                    Fetch
    fetch_explanation.py        a fetch with an explanation of each step (`tailrace fetch explain`)
    list_offsets.py             ListOffsets
    remote_list_offsets.py      lookups by time that begin in the remote store
    offset_for_leader_epoch.py  OffsetForLeaderEpoch
    delete_records.py           DeleteRecords
    share_fetch.py              ShareFetch
    share_acknowledge.py        ShareAcknowledge
"""
