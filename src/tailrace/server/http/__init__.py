"""HTTP: the metrics endpoint, and the keys of identity providers.

metrics_endpoint.py   MetricsEndpoint: a small HTTP server on the loop
jwks_endpoint.py      reads an identity provider's keys (JWKS) on a thread
"""
