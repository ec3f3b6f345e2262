"""`tailrace cluster`, `reassign`, `elect`, `tier` and `migrate`.

cluster_arguments.py     options of `cluster`
cluster_up.py            `cluster up`: Kafka's controllers and Tailrace brokers on this machine, until Ctrl-C
cluster_status.py        `cluster status`: brokers, controllers, partitions and lagging followers
cluster_status_view.py   a ClusterState as lines for people and as JSON
spark_queries.py         `cluster queries`: Spark queries that read and write, and exports to tables
reassign_arguments.py    options of `reassign` and `elect`
reassign.py              `reassign`: plan, apply, status, cancel and unthrottle moves of partitions
assignment_file.py       the JSON file of a reassignment
elect.py                 `elect`: preferred and unclean leader elections
tier_arguments.py        options of `tier`
tier.py                  `tier`: files in a remote store that no segment needs
migrate_arguments.py     options of `migrate`
migrate.py               `migrate`: turn a standalone node into the first broker of a cluster
migrate_properties.py    properties files of the migrated broker and of its controllers
"""
