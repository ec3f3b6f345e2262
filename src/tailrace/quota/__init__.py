"""Client quotas: rates, limits and how long a client that exceeds one has to pause. No sockets, no clock."""
