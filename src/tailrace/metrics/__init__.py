"""Measuring and exposing: histograms, metric families, Prometheus' text format.

histogram.py    Histogram: buckets and quantiles
families.py     Family: one metric with kind, help and samples
exposition.py   families as Prometheus or OpenMetrics text
scrape.py       Scrape: that text read back
otlp.py         reads OTLP messages, OpenTelemetry's format
"""
