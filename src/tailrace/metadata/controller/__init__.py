"""The controller: inside a lone node, or a quorum of other nodes."""
