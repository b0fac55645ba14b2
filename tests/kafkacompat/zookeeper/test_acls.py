"""Who may read and change which node."""

from __future__ import annotations

import pytest

from kafkacompat.zookeeper.acls import Access, access_of


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/", Access.READABLE),
        ("/brokers/topics/t", Access.READABLE),
        ("/consumers", Access.OPEN),
        ("/consumers/g", Access.READABLE),
        ("/config/users", Access.PRIVATE),
        ("/config/users/u/clients/c", Access.PRIVATE),
        ("/config/brokers/1", Access.PRIVATE),
        ("/config/instances/shop", Access.PRIVATE),
        ("/config/topics/t", Access.READABLE),
        ("/delegation_token", Access.READABLE),
        ("/delegation_token/tokens/x", Access.PRIVATE),
    ],
)
def test_secrets_are_private_and_consumers_open(path: str, access: Access) -> None:
    assert access_of(path) is access
