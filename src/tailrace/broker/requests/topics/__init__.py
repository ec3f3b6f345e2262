"""Requests about topics, their partitions and replicas.

A change is decided by the controller of this node. Where the controllers are other nodes, the dispatcher forwards it
and no handler sees it. Metadata is answered from the image.

    metadata.py                       Metadata
    encoded_topics.py                 EncodedTopics: encoded parts of Metadata responses, kept for the next client
    topic_view.py                     topics as a client of a listener sees them
    auto_creation.py                  topics that are created when a client asks for them
    describe_topic_partitions.py      DescribeTopicPartitions
    create_topics.py                  CreateTopics
    delete_topics.py                  DeleteTopics
    create_partitions.py              CreatePartitions
    elect_leaders.py                  ElectLeaders
    alter_partition_reassignments.py  AlterPartitionReassignments
    list_partition_reassignments.py   ListPartitionReassignments
"""
