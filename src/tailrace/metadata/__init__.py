"""The cluster's metadata: records, image, log, and the controller's decisions. May import: log and below."""
