"""Descriptions of thousands of ACLs or quotas pause, so that other clients are served in between."""

from __future__ import annotations

from dataclasses import replace

from tailrace.metadata.decisions.acls import describe_acls, filter_of, match_acls
from tailrace.metadata.decisions.client_quotas import describe_client_quotas
from tailrace.metadata.image.image import EMPTY_IMAGE
from tailrace.model.steps import ITEMS_PER_STEP, Steps
from tailrace.protocol import messages as m

MANY = 4 * ITEMS_PER_STEP
ACLS = {
    b"%016d" % number: m.AccessControlEntryRecord(
        id=b"%016d" % number,
        resource_type=2,
        resource_name=f"topic-{number}",
        pattern_type=3,
        principal="User:alice",
        host="*",
        operation=3,
        permission_type=3,
    )
    for number in range(MANY)
}
ANY = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}


def _pauses_of(steps: Steps[object]) -> int:
    return sum(1 for _ in steps)


def test_a_description_of_many_acls_pauses() -> None:
    image = replace(EMPTY_IMAGE, acls=ACLS)
    request = m.DescribeAclsRequest(resource_name_filter=None, principal_filter=None, host_filter=None, **ANY)
    assert _pauses_of(describe_acls(image, filter_of(request))) == 4


def test_a_filter_that_matches_many_acls_pauses() -> None:
    image = replace(EMPTY_IMAGE, acls=ACLS)
    wanted = m.DeleteAclsRequest.DeleteAclsFilter(
        resource_name_filter=None, principal_filter=None, host_filter=None, **ANY
    )
    assert _pauses_of(match_acls(image, [wanted])) == 5


def test_a_description_of_many_quotas_pauses() -> None:
    quotas = {(("user", f"user-{number}"),): {"producer_byte_rate": 1.0} for number in range(MANY)}
    image = replace(EMPTY_IMAGE, client_quotas=quotas)
    request = m.DescribeClientQuotasRequest(components=[], strict=False)
    assert _pauses_of(describe_client_quotas(image, request)) == 4
