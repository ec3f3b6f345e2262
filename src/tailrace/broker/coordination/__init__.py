"""The coordinators of a broker and the topics that are their memory.

A handler asks `groups.py` or `transactions.py` for a change or for state. The key (group id, transactional id) belongs
to a partition of the coordinator's topic, and coordinator/ does the rest.

    coordinators.py              Coordinators: the coordinators of this broker, by their topics
    coordinator_topics.py        CoordinatorTopics: creates those topics when a client first needs them
    partition_writer.py          PartitionWriter: reads and appends for a coordinator
    groups.py                    Groups: the group coordinator with its settings
    transactions.py              Transactions: the transaction coordinator with its settings
    marker_writer.py             MarkerWriter: the end of a transaction, written to a partition led here
    transaction_verification.py  TransactionVerification: a coordinator knows of a partition before a transaction opens
    partition_ends.py            PartitionEnds: end offsets of partitions, wherever they are led
"""
