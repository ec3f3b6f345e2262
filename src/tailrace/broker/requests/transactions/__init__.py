"""Requests of transactional producers, and about transactions."""
