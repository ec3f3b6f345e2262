"""TLS, SASL, tokens and key stores on the client side, configured by Kafka's client settings.

settings ─► security.py ─► tls_socket.py, sasl.py ─► token_login.py (OAUTHBEARER)

security.py          Security: the settings of a connection as one value
tls_settings.py      Tls: the ssl.* settings
tls_socket.py        a TCP connection with TLS
key_stores.py        JKS and PKCS12 files
jks_store.py         the JKS file format
key_entries.py       private keys and certificates from a store, as DER
sasl.py              PLAIN, SCRAM and OAUTHBEARER
oauth_settings.py    OauthLogin: the settings of SASL/OAUTHBEARER
token_login.py       keeps a token fresh
token_retrieval.py   gets a token from an endpoint or a file, or creates an unsigned one
http_exchange.py     one bounded HTTP request to an identity provider
redirects.py         HTTP redirects that never carry credentials to another host
listener_probe.py    finds out which protocol a listener speaks, for a better error message
"""
