"""Requests that this broker makes to itself for a user of HTTP: as if a client had sent them, so that the controller gets them too."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.context import Peer, RequestContext
from kafkacompat.monitoring.administration.answers import HttpError, check_code
from kafkacompat.server.direct_requests import answer_directly
from kafkacompat.tenancy.instance_messages import decode_properties, encode_changes
from kafkacompat.timers import Clock, next_turn
from kafkacompat.wire.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kafkacompat.wire.apis.incremental_alter_configs import (
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkacompat.wire.apis.list_config_resources import ListConfigResourcesRequest

if TYPE_CHECKING:
    from kafkacompat.metadata.config_changes import ConfigOperation
    from kafkacompat.security.principals import Principal
    from kafkacompat.server.dispatcher import Dispatcher
    from kafkacompat.tenancy.tenant_view import TenantView
    from kafkacompat.wire.schema import Request

LISTENER = "HTTP"
CLIENT_ID = "http"

Properties = dict[str, str]


class InternalRequests:
    """Sends the requests of one user of HTTP through the dispatcher; its authorizer decides. Raises HttpError for refusals.

    *tenant* is the instance of the user; None for a user of the whole cluster. *listener* is the one whose addresses are shown.
    With a *clock* each request has a turn of its own, for work that takes many of them.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        principal: Principal,
        host: str,
        tenant: TenantView | None = None,
        listener: str = LISTENER,
        clock: Clock | None = None,
    ) -> None:
        self._clock = clock
        self._dispatcher = dispatcher
        self._principal = principal
        self._tenant = tenant
        self._peer = Peer(listener, host, 0, "", 0)

    async def list_names(self) -> list[str]:
        """Return the names of all instances."""
        response = await self.send(ListConfigResourcesRequest(resource_types=[ResourceType.INSTANCE]))
        check_code(response.error_code, None)
        return [resource.resource_name for resource in response.config_resources]

    async def describe(self, names: Iterable[str]) -> dict[str, Properties]:
        """Return the properties of instances by name, without secrets; those that do not exist are left out."""
        resources = [
            DescribeConfigsResource(resource_type=ResourceType.INSTANCE, resource_name=name, configuration_keys=None)
            for name in names
        ]
        response = await self.send(DescribeConfigsRequest(resources=resources))
        described: dict[str, Properties] = {}
        for result in response.results:
            try:
                check_code(result.error_code, result.error_message)
            except HttpError as problem:
                if problem.status == 404:
                    continue
                raise
            described[result.resource_name] = decode_properties(result.configs)
        return described

    async def alter(self, name: str, changes: Iterable[ConfigOperation]) -> None:
        """Change an instance, all changes together or none."""
        configs = encode_changes(changes)
        resource = AlterConfigsResource(resource_type=ResourceType.INSTANCE, resource_name=name, configs=configs)
        response = await self.send(IncrementalAlterConfigsRequest(resources=[resource]))
        (result,) = response.responses
        check_code(result.error_code, result.error_message)

    async def send(self, request: Request, version: int | None = None) -> Any:
        """Return the response to a request, by default in the newest version that is served."""
        if self._clock is not None:
            await next_turn(self._clock)
        if version is None:
            version = self._dispatcher.handlers[request.API_KEY].versions.last
        context = RequestContext(version, CLIENT_ID, self._peer, principal=self._principal, tenant=self._tenant)
        return await answer_directly(self._dispatcher, request, context)
