"""Received bytes, cut into frames.

frame_input.py       FrameInput: received bytes cut into frames
receive_buffers.py   the memory of received requests
"""
