"""Who may read and change which node."""

from __future__ import annotations

import pytest

from kafkacompat.zookeeper.acls import NodeAccess, access_of


@pytest.mark.parametrize(
    ("path", "access"),
    [
        ("/", NodeAccess.READABLE),
        ("/brokers/topics/t", NodeAccess.READABLE),
        ("/consumers", NodeAccess.OPEN),
        ("/consumers/g", NodeAccess.READABLE),
        ("/config/users", NodeAccess.PRIVATE),
        ("/config/users/u/clients/c", NodeAccess.PRIVATE),
        ("/config/brokers/1", NodeAccess.PRIVATE),
        ("/config/instances/shop", NodeAccess.PRIVATE),
        ("/config/topics/t", NodeAccess.READABLE),
        ("/delegation_token", NodeAccess.READABLE),
        ("/delegation_token/tokens/x", NodeAccess.PRIVATE),
    ],
)
def test_secrets_are_private_and_consumers_open(path: str, access: NodeAccess) -> None:
    assert access_of(path) is access
