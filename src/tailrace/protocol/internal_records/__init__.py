"""The frames of records in Kafka's internal topics: type, version, message.

coordinator_records.py  records of `__consumer_offsets`, `__transaction_state`, `__share_group_state`
metadata_frames.py      records of `__cluster_metadata`
"""
