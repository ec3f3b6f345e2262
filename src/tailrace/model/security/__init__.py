"""Formats of credentials and tokens.

scram.py         SCRAM: keys from passwords, signatures
jaas.py          the text of sasl.jaas.config
pem.py           PEM text in properties files
jwt.py           JSON Web Tokens in compact form
oauthbearer.py   the first client message of SASL/OAUTHBEARER
"""
