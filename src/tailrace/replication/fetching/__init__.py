"""Fetching from leaders: fetchers, sessions and throttles of a follower."""
