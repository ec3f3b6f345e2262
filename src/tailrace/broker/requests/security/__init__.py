"""Requests about ACLs, SCRAM credentials and delegation tokens, and the SASL requests of authenticated clients.

describe_acls.py                    DescribeAcls
create_acls.py                      CreateAcls
delete_acls.py                      DeleteAcls
acl_requests.py                     rules that these three share
describe_user_scram_credentials.py  DescribeUserScramCredentials
alter_user_scram_credentials.py     AlterUserScramCredentials
create_delegation_token.py          CreateDelegationToken
renew_delegation_token.py           RenewDelegationToken
expire_delegation_token.py          ExpireDelegationToken
describe_delegation_token.py        DescribeDelegationToken
token_requests.py                   rules that these four share
sasl_handshake.py                   SaslHandshake where there is nothing to authenticate (`broker/security/guard.py`)
sasl_authenticate.py                SaslAuthenticate where there is nothing to authenticate
"""
