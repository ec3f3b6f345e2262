"""Requests about topics, their partitions and replicas.

The controller of this node decides on changes. If the controllers are other nodes, the dispatcher forwards the requests
to them, and no handler is called. Metadata requests are answered from the metadata image.

    metadata.py                       Metadata
    encoded_topics.py                 EncodedTopics: a cache of encoded topics for Metadata responses
    topic_view.py                     partitions as clients of a listener see them
    auto_creation.py                  topics that are created on first use
    describe_topic_partitions.py      DescribeTopicPartitions
    create_topics.py                  CreateTopics
    delete_topics.py                  DeleteTopics
    create_partitions.py              CreatePartitions
    elect_leaders.py                  ElectLeaders
    alter_partition_reassignments.py  AlterPartitionReassignments
    list_partition_reassignments.py   ListPartitionReassignments
"""
