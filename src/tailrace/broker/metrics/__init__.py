"""Metrics of the broker, and metrics that clients push.

broker_metrics.py        families of the broker, under the names that Kafka's dashboards know
replication_measures.py  families of throttled replication and cordoned directories
share_measures.py        families of share groups
client_telemetry.py      ClientTelemetry: clients that push their metrics (KIP-714)
metrics_subscription.py  what a client is asked to push
client_series.py         ClientSeries: pushed metrics as series
"""
