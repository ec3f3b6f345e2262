"""Requests for the comparison with a real broker: ordinary, odd and hostile, in the order in which they are sent.

A case is (name, function that makes the request). The function gets the side, because topic ids differ. Cases change
the state of both brokers alike, so their order matters.
"""
