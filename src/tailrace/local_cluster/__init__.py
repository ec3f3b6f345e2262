"""A cluster on one machine, as processes: a controller of Tailrace, or some of Apache Kafka, and brokers.

cluster_plan.py   ClusterPlan: nodes, ports, folders, settings
local_cluster.py  LocalCluster: starts and stops the processes in order
process.py        ChildProcess, NodeProcess: one node as a child process
kafka_program.py  runs Apache Kafka's controllers: Java and Kafka's jars
maven.py          downloads the jars once and checks them against `kafka_controller.json`
"""
