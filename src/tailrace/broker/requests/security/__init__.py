"""Requests about ACLs, SCRAM credentials and delegation tokens, and SASL requests that arrive in the wrong state.

describe_acls.py                    DescribeAcls
create_acls.py                      CreateAcls
delete_acls.py                      DeleteAcls
acl_requests.py                     common code of these three
describe_user_scram_credentials.py  DescribeUserScramCredentials
alter_user_scram_credentials.py     AlterUserScramCredentials
create_delegation_token.py          CreateDelegationToken
renew_delegation_token.py           RenewDelegationToken
expire_delegation_token.py          ExpireDelegationToken
describe_delegation_token.py        DescribeDelegationToken
token_requests.py                   common code of these four
sasl_handshake.py                   SaslHandshake that `broker/security/guard.py` does not expect
sasl_authenticate.py                SaslAuthenticate that `broker/security/guard.py` does not expect
"""
