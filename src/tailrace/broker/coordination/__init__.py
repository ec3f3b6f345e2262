"""The coordinators that run on this broker, and how they reach their topics."""
