"""Authentication of clients, and authorization of their requests.

On a listener with SASL, `guard.py` gets every frame first and passes on the frames of authenticated clients. Handlers
call `permissions.py` to authorize a request.

    guard.py                SaslGuard: authentication of connections (SASL)
    sasl_exchanges.py       PlainExchange, ScramExchange: the broker's side of PLAIN and SCRAM
    oauth_exchange.py       OauthExchange: the broker's side of OAUTHBEARER
    token_credentials.py    TokenCredentials: SCRAM credentials of delegation tokens
    unknown_users.py        fake credentials, so that SCRAM does not reveal which users exist
    token_validators.py     TokenValidator: validates the tokens of a listener with OAUTHBEARER
    bearer_tokens.py        BearerToken and the rules for its claims
    signing_keys.py         SigningKeys: public keys of an identity provider
    key_cache.py            KeyCache: those keys, fetched on another thread
    authorizer.py           Authorizer: the protocol, and AllowAll
    standard_authorizer.py  StandardAuthorizer: decides by ACLs
    permissions.py          Permissions: authorization for the client of a request
    fetch_rights.py         FetchRights: authorization of fetches
    api_rights.py           RIGHTS: the rights that each API checks
"""
