"""The entry that an ACL's record has."""

from __future__ import annotations

from tailrace.model.acls import Acl
from tailrace.protocol import messages


def acl_of(record: messages.AccessControlEntryRecord) -> Acl:
    return Acl(
        record.resource_type,
        record.resource_name,
        record.pattern_type,
        record.principal,
        record.host,
        record.operation,
        record.permission_type,
    )
