"""Requests for the comparison with a real broker: ordinary, odd and hostile, in the order in which they are sent.

A case is (name, maker of the request); a maker is given the side it is for, because topic ids differ. Cases change the
state of both brokers alike, so the order counts.
"""
