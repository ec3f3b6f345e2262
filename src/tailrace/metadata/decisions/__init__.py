"""The controller's decisions. Each function takes a request and an image, and returns records and a response.

Nothing changes before the records are written.

    topic_creation.py        CreateTopics, CreatePartitions
    topic_deletion.py        DeleteTopics
    topic_names.py           valid topic names
    config_changes.py        AlterConfigs, IncrementalAlterConfigs, configs of new topics
    config_validation.py     rules between the configs of one resource
    replica_placement.py     replicas of new partitions, over racks and brokers
    partition_change.py      the next state of a partition: elections, ISR changes, reassignments
    leadership.py            leaders and ISR when brokers come and go; ElectLeaders, AlterPartition
    reassignment.py          AlterPartitionReassignments, ListPartitionReassignments, replicas in log directories
    broker_registration.py   brokers register, are unfenced, shut down
    client_quotas.py         AlterClientQuotas, DescribeClientQuotas
    feature_updates.py       UpdateFeatures
    acls.py                  CreateAcls, DeleteAcls, DescribeAcls
    scram_credentials.py     AlterUserScramCredentials, DescribeUserScramCredentials
    delegation_tokens.py     CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken
"""
