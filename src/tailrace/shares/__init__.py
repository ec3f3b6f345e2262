"""Share groups (KIP-932): share partitions, acquisition, acknowledgement, sessions, persisted state."""
