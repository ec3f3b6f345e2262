"""TLS on the loop."""
