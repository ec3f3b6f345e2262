"""The controller's decisions. Each function takes a request and an image, and returns records and a response.

Nothing changes before the records are written.

    topic_creation.py        CreateTopics, CreatePartitions
    topic_deletion.py        DeleteTopics
    topic_names.py           valid topic names
    config_changes.py        AlterConfigs, IncrementalAlterConfigs, configs of new topics
    config_validation.py     rules between the configs of one resource
    client_quotas.py         AlterClientQuotas, DescribeClientQuotas
    feature_updates.py       UpdateFeatures
    acls.py                  CreateAcls, DeleteAcls, DescribeAcls
    scram_credentials.py     AlterUserScramCredentials, DescribeUserScramCredentials
    delegation_tokens.py     CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken
    brokers/                 registrations, heartbeats, producer ids
    replicas/                placement, leaders, ISRs, reassignments
"""
