"""The order of the steps in which a request of an instance is answered, and that large ones leave others their turn."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from kafkacompat.config.instances import Instance
from kafkacompat.handlers import HANDLERS
from kafkacompat.handlers.context import Peer, Pending, RequestContext
from kafkacompat.handlers.tenants.table import TENANT_APIS, TenantApi
from kafkacompat.handlers.tenants.translation import TenantRequests
from kafkacompat.security.acls.table import AclTable
from kafkacompat.tenancy.tenant_view import TenantView
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData
from kafkacompat.wire.apis.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from kafkacompat.wire.apis.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from kafkacompat.wire.apis.incremental_alter_configs import AlterConfigsResource, IncrementalAlterConfigsRequest
from kafkacompat.wire.compiler import encode_message
from kafkacompat.wire.connection import EncodedResponse, IncomingRequest, RequestError
from kafkacompat.wire.headers import ResponseHeader
from tests.fakes.busy_clock import BusyClock
from tests.kafkacompat.metadata.deferreds import outcome

DELETE_GROUPS, VERSION = 42, 2
MANY = 20_000
REFUSAL = DeleteGroupsResponse()
PEER = Peer("PLAINTEXT", "127.0.0.1", 40_000, "broker-1", 9092)


class Exchange:
    """One request of an instance, and what the broker's own handler sees of it."""

    def __init__(self, *groups: str) -> None:
        self.clock = BusyClock()
        self.handled: list[str] = []
        self.view = TenantView(Instance("shop", {"cluster.id": "c", "secret": "s"}), lambda _: None)
        self.context = RequestContext(VERSION, "client", PEER, tenant=self.view)
        self.requests = TenantRequests(HANDLERS, SimpleNamespace(clock=self.clock))  # type: ignore[arg-type]
        self.incoming = IncomingRequest(
            DELETE_GROUPS, VERSION, 1, "client", DeleteGroupsRequest(groups_names=list(groups)), 100
        )

    def handle(self, incoming: IncomingRequest, context: RequestContext) -> Any:
        body: Any = incoming.body
        self.handled += body.groups_names
        return DeleteGroupsResponse(results=[DeletableGroupResult(group_id=name) for name in body.groups_names])

    def handle_elsewhere(self, incoming: IncomingRequest, context: RequestContext) -> Any:
        """Return a response that the controller has encoded."""
        response = self.handle(incoming, context)
        header = encode_message(ResponseHeader(correlation_id=1), 1)
        return EncodedResponse(data=header + encode_message(response, VERSION))

    def answer(self, handle: Any = None) -> Any:
        return self.requests.answer(self.incoming, self.context, handle or self.handle)


def names_of(response: Any) -> list[str]:
    return [result.group_id for result in response.results]


def test_a_small_request_is_answered_at_once() -> None:
    exchange = Exchange("a", "b")
    assert names_of(exchange.answer()) == ["a", "b"]
    assert exchange.handled == ["shop.a", "shop.b"]


@pytest.mark.parametrize("kind", ["handle", "handle_elsewhere"])
def test_a_large_request_is_translated_in_turns_and_in_order(kind: str) -> None:
    groups = [f"g{number}" for number in range(MANY)]
    exchange = Exchange(*groups)
    pending = exchange.answer(getattr(exchange, kind))
    assert isinstance(pending, Pending) and pending.in_order
    assert not exchange.handled
    # Each look at the clock takes a quarter of a turn, and there is one for each few names in each direction.
    assert exchange.clock.turns() > 2 * MANY / 64 / 5
    assert names_of(outcome(pending.response)) == groups
    assert exchange.handled == [f"shop.{group}" for group in groups]


def test_a_large_response_to_a_small_request_is_translated_in_turns() -> None:
    exchange = Exchange("a")
    results = [DeletableGroupResult(group_id=f"{prefix}.g") for _ in range(MANY // 2) for prefix in ("shop", "bank")]
    pending = exchange.answer(lambda incoming, context: DeleteGroupsResponse(results=results))
    assert isinstance(pending, Pending)
    assert exchange.clock.turns() > MANY / 64 / 5
    assert names_of(outcome(pending.response)) == ["g"] * (MANY // 2)


def test_a_response_that_the_controller_has_encoded_is_translated() -> None:
    exchange = Exchange("a")
    assert names_of(exchange.answer(exchange.handle_elsewhere)) == ["a"]


def test_hooks_see_the_names_of_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[str]]] = []

    def narrow(request: Any, *_: Any) -> Iterator[None]:
        yield
        seen.append(("narrow", list(request.groups_names)))

    def finish(request: Any, response: Any, *_: Any) -> Iterator[None]:
        yield
        seen.append(("finish", names_of(response)))

    api = TenantApi(
        check=lambda request, *_: seen.append(("check", list(request.groups_names))),
        narrow=narrow,
        show=lambda response, *_: seen.append(("show", names_of(response))),
        finish=finish,
    )
    monkeypatch.setitem(TENANT_APIS, DELETE_GROUPS, api)
    assert names_of(Exchange("a").answer()) == ["a"]
    assert seen == [("check", ["a"]), ("narrow", ["shop.a"]), ("show", ["shop.a"]), ("finish", ["a"])]


@pytest.mark.parametrize("api", [TenantApi(check=lambda *_: REFUSAL), TenantApi(narrow=lambda *_: REFUSAL)])
def test_a_hook_may_refuse_a_request(monkeypatch: pytest.MonkeyPatch, api: TenantApi) -> None:
    monkeypatch.setitem(TENANT_APIS, DELETE_GROUPS, api)
    exchange = Exchange("a")
    assert exchange.answer() is REFUSAL
    assert not exchange.handled


def test_an_api_that_is_not_in_the_table_is_not_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(TENANT_APIS, DELETE_GROUPS)
    exchange = Exchange("a")
    with pytest.raises(RequestError, match="is not served"):
        exchange.answer()
    assert not exchange.handled


def make_large_requests() -> list[Any]:
    """Return large requests: the instance refuses either all items of one, or none."""
    loggers = [AlterConfigsResource(resource_type=8, resource_name="1", configs=[]) for _ in range(MANY)]
    addresses = [EntryData(entity=[EntityData(entity_type="ip", entity_name="::")], ops=[]) for _ in range(MANY)]
    users = [ComponentData(entity_type="user", match_type=2, match=None) for _ in range(MANY)]
    rules = [
        DeleteAclsFilter(
            resource_type_filter=2,
            resource_name_filter="orders",
            pattern_type_filter=3,
            principal_filter=None,
            host_filter=None,
            operation=1,
            permission_type=1,
        )
        for _ in range(MANY)
    ]
    return [
        IncrementalAlterConfigsRequest(resources=loggers),
        AlterClientQuotasRequest(entries=addresses),
        DescribeClientQuotasRequest(components=users),
        DeleteAclsRequest(filters=rules),
    ]


@pytest.mark.parametrize("index", range(4))
def test_a_large_request_is_checked_in_turns(index: int) -> None:
    request = make_large_requests()[index]
    clock = BusyClock()
    image = SimpleNamespace(acls=AclTable())
    services: Any = SimpleNamespace(clock=clock, metadata=SimpleNamespace(image=image))
    view = TenantView(Instance("shop", {"cluster.id": "c", "secret": "s"}), lambda _: None)
    version = request.VERSIONS.last
    incoming = IncomingRequest(request.API_KEY, version, 1, "client", request, 100)
    answer = TenantRequests(HANDLERS, services).answer(
        incoming, RequestContext(version, "client", PEER, tenant=view), lambda *_: None
    )
    assert isinstance(answer, Pending)
    assert clock.turns() > MANY / 64 / 5
    response = outcome(answer.response)
    if index < 2:
        assert len(response.responses if index == 0 else response.entries) == MANY
