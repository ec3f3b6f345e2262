"""The coordinators of a broker and the topics that store their state.

A handler calls `groups.py` or `transactions.py` to read or change state. The group id or transactional id selects a
partition of the coordinator's topic. The package coordinator/ implements the coordinators.

    coordinators.py              Coordinators: the coordinators of this broker, by their topics
    coordinator_topics.py        CoordinatorTopics: creates those topics when a client first needs them
    partition_writer.py          PartitionWriter: reads and appends records for a coordinator
    groups.py                    Groups: the group coordinator with its settings
    transactions.py              Transactions: the transaction coordinator with its settings
    marker_writer.py             MarkerWriter: writes transaction markers to partitions led here
    transaction_verification.py  TransactionVerification: checks that a partition is part of a transaction
    partition_ends.py            PartitionEnds: end offsets of partitions on any broker
"""
