"""Replies on their way to sockets.

sender.py            Sender: sends a connection's replies, then closes, pauses or reads on
response_writer.py   ResponseWriter: the unsent replies of one connection
slice_sender.py      SliceSender: file ranges to sockets, by sendfile or pread
"""
