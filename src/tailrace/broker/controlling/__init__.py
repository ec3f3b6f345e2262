"""The controller listener of a node that is the controller of other brokers.

controller_listener.py   ControllerListener: the requests that arrive there, and those inside an Envelope
observer_fetch.py        a Fetch of the metadata log that waits for news
"""
