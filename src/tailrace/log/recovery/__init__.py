"""Opening a log after a stop or a crash."""
