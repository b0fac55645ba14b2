"""Requests for everything beside crowds of other tenants' things: each leaves the others their turn."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkacompat.config.instances import Instance
from kafkacompat.handlers.context import Peer, Pending, RequestContext
from kafkacompat.handlers.describe_client_quotas import handle_describe_client_quotas
from kafkacompat.handlers.describe_user_scram_credentials import handle_describe_user_scram_credentials
from kafkacompat.handlers.list_groups import handle_list_groups
from kafkacompat.metadata.client_entities import USER, ClientConfig, make_entity
from kafkacompat.metadata.image import MetadataImage
from kafkacompat.security.scram import ScramCredential, ScramMechanism
from kafkacompat.tenancy.tenant_view import TenantView
from kafkacompat.wire.apis.describe_client_quotas import DescribeClientQuotasRequest
from kafkacompat.wire.apis.describe_user_scram_credentials import DescribeUserScramCredentialsRequest
from kafkacompat.wire.apis.list_groups import ListedGroup, ListGroupsRequest
from tests.fakes.busy_clock import BusyClock
from tests.kafkacompat.metadata.deferreds import outcome

MANY = 5000
CREDENTIAL = ScramCredential(b"salt", b"stored", b"server", 4096)
PEER = Peer("PLAINTEXT", "127.0.0.1", 40_000, "broker-1", 9092)


def test_others_have_their_turn() -> None:
    view = TenantView(Instance("shop", {"cluster.id": "c", "secret": "s"}), lambda _: None)
    config = ClientConfig(quotas={"producer_byte_rate": 1.0}, credentials={ScramMechanism.SHA_256: CREDENTIAL})
    names = [*(f"bank.{number}" for number in range(MANY)), "shop.alice"]
    clients = {make_entity([(USER, name)]): config for name in names}
    groups = SimpleNamespace(list_in_steps=lambda *_: (ListedGroup(group_id=name) for name in names))
    handlers: list[tuple[Any, Any, str, int]] = [
        (handle_describe_client_quotas, DescribeClientQuotasRequest(components=[]), "entries", 1),
        (handle_describe_user_scram_credentials, DescribeUserScramCredentialsRequest(), "results", 1),
        (handle_list_groups, ListGroupsRequest(), "groups", MANY + 1),
    ]
    for handle, request, field, count in handlers:
        clock = BusyClock()
        services: Any = SimpleNamespace(
            clock=clock,
            metadata=SimpleNamespace(image=MetadataImage(clients=clients)),
            coordinators=SimpleNamespace(groups=groups),
        )
        answer = handle(request, RequestContext(0, "client", PEER, tenant=view), services)
        assert isinstance(answer, Pending) and answer.in_order
        assert clock.turns() > MANY / 5
        assert len(getattr(outcome(answer.response), field)) == count
