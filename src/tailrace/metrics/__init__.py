"""Measuring and exposing: histograms, metric families and the Prometheus text format.

histogram.py    Histogram: buckets and quantiles
families.py     Family: one metric with kind, help and samples
exposition.py   writes families as Prometheus or OpenMetrics text
scrape.py       Scrape: reads that text back
merged.py       the pages of several processes as one
otlp.py         reads OTLP messages, OpenTelemetry's format
"""
