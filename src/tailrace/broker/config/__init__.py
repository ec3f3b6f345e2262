"""The broker's settings: server.properties, listeners, security, what may change at run time."""
