"""Requests that read and write records.

Produce checks and appends through replication/, and waits for replicas if acks=all. Fetch plans, reads and waits
through fetch/. Share fetches go through shares/.

    produce.py                  Produce
    produce_checks.py           checks of the records of a Produce request
    produce_verification.py     transactional records: their coordinator has to know of the partition first
    fetch.py                    Fetch
    fetch_explanation.py        a fetch that is carried out and explained (`tailrace fetch explain`)
    list_offsets.py             ListOffsets
    offset_for_leader_epoch.py  OffsetForLeaderEpoch
    delete_records.py           DeleteRecords
    share_fetch.py              ShareFetch
    share_acknowledge.py        ShareAcknowledge
"""
