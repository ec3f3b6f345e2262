"""Metrics of the broker, and metrics that clients push.

broker_metrics.py        metrics of the broker, under the names that Kafka's dashboards use
replication_metrics.py   metrics of throttled replication and cordoned directories
remote_metrics.py        metrics of tiered storage
share_metrics.py         metrics of share groups
waiting_requests.py      the requests that wait and the fetch sessions, for `tailrace explain waiting`
client_telemetry.py      ClientTelemetry: metrics that clients push (KIP-714)
metrics_subscription.py  MetricsSubscription: the metrics that a client is asked to push
client_series.py         ClientSeries: pushed metrics as Prometheus series
"""
