"""TLS, SASL, tokens and key stores on the client side."""
