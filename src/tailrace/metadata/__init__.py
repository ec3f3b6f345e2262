"""The cluster's metadata: records, image, log, and the controller's decisions. May import log and below.

standalone   request ─► decisions/ ─► records ─► storage/metadata_log.py ─► image/delta.py ─► new image
in a cluster request ─► controller/remote_controller.py ─► active controller; quorum/ follows its log ─► new image

image/        the immutable image, and the deltas that make the next one
decisions/    what the controller decides: a request and an image give records
controller/   the controller as a broker sees it: in the same node, or a quorum of other nodes
storage/      the metadata log and its snapshots on disk
quorum/       following the metadata log as a broker, and serving it as the controller
"""
