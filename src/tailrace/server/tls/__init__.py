"""TLS on the loop.

listener_tls.py        ListenerTls: a listener's ssl.* configs and OpenSSL context
tls_connection.py      TlsConnection: a connection whose client speaks TLS
tls_stream.py          TlsStream: TLS over a non-blocking socket
handshakes.py          Handshakes: the handshakes that continue at the end of a pass
tls_writer.py          TlsWriter: a ResponseWriter that encrypts
tls_backlog.py         TlsBacklog: connections with received but undecrypted bytes
certificate_names.py   the principal of a client certificate, ssl.principal.mapping.rules
"""
