"""Coordinators: state machines whose memory is a compacted topic, one per partition of it that is led here.

May import: replication and below. Nothing here knows a clock, a socket or dice.
"""
