"""Authentication of clients, and authorization of their requests.

On a listener with SASL, `guard.py` takes every frame first and passes on those of authenticated clients. Handlers ask
`permissions.py` whether a request's client may do something.

    guard.py                Guard: connections whose clients have to authenticate
    sasl_exchanges.py       PLAIN and SCRAM
    oauth_exchange.py       OauthExchange: OAUTHBEARER
    token_credentials.py    TokenCredentials: SCRAM credentials of delegation tokens
    unknown_users.py        credentials of users that do not exist
    token_validators.py     TokenValidators: accept or refuse the tokens of a listener with OAUTHBEARER
    bearer_tokens.py        claims of a token
    signing_keys.py         SigningKeys: public keys of an identity provider
    key_cache.py            KeyCache: those keys, fetched beside the loop
    authorizer.py           Authorizer: the protocol, and AllowAll
    standard_authorizer.py  StandardAuthorizer: decides by ACLs
    permissions.py          Permissions: the authorizer's answers for the client of a request
    fetch_rights.py         FetchRights: the authorizer's answers for fetches
    api_rights.py           RIGHTS: the rights that each API asks for
"""
