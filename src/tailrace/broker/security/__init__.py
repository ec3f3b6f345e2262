"""Authentication of clients, and authorization of their requests."""
