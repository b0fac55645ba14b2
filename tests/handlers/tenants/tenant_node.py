"""A node with two instances, shop and bank, whose clients' requests are translated as those of connections are."""

from __future__ import annotations

from typing import Any

from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers import HANDLERS
from kafkacompat.handlers.context import Pending
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.security.principals import Principal
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.tenancy.registry import Instances
from kafkacompat.tenancy.rights import InstanceRights
from kafkacompat.wire import compiler
from kafkacompat.wire.connection import IncomingRequest
from kafkacompat.wire.schema import Request
from tests.handlers.admin_node import AdminNode
from tests.handlers.node import Answer, context_of, reread_response
from tests.kafkacompat.metadata.deferreds import outcome

SHOP, BANK = "shop", "bank"
OPERATOR: Any = None
"""Stands for no instance: a client of the whole cluster."""


class TenantNode(AdminNode):
    """Node 1 with two instances, and with an authorizer if *guarded*; the users called root are super users."""

    def __init__(self, *, guarded: bool = False, **properties: str) -> None:
        super().__init__(**properties)
        self.services.instances = self.instances = Instances()
        self.holder.watch(self.instances.update)
        if guarded:
            authorizer = Authorizer(lambda: self.holder.image.acls, [Principal("User", "root")])
            authorizer.instances = InstanceRights(self.instances)
            self.instances.watchers.append(lambda _: authorizer.forget())
            self.services.authorizer = authorizer
        self.dispatcher = Dispatcher(HANDLERS, self.services)
        for name in (SHOP, BANK):
            self.configure(name, **{"cluster.id": f"cluster-{name}", "secret": f"secret of {name}"})
            self.configure(name, **{"super.users": "User:root"})

    def configure(self, instance: str, **properties: str) -> None:
        """Set properties of an instance."""
        operations = [ConfigOperation(option, ConfigOperationType.SET, text) for option, text in properties.items()]
        change = ResourceChange(ResourceType.INSTANCE, instance, operations)
        assert outcome(self.controller.alter_configs([change])) == [None]

    def ask_as(
        self, instance: str | None, request: Request, answer: type[Answer], version: int, user: str = "root"
    ) -> Answer:
        """Return the response as a client reads it; the user is one of the instance, or of the operator's without one."""
        tenant = None if instance is None else self.instances.by_name[instance]
        principal = Principal("User", user if tenant is None else tenant.find_physical_user(user))
        context = context_of(version)._replace(tenant=tenant, principal=principal)
        body = compiler.decode_message(type(request), compiler.encode_message(request, version), version)
        response = self.dispatcher.dispatch(IncomingRequest(request.API_KEY, version, 1, "test", body, 100), context)
        if isinstance(response, Pending):
            response = outcome(response.response)
        assert response is not None
        return reread_response(response, answer, version)

    def client(self, instance: str | None, user: str = "root") -> InstanceClient:
        """Return a client of an instance, which the helpers of other tests take for a node."""
        return InstanceClient(self, instance, user)


class InstanceClient(AdminNode):
    """The requests of one user of an instance."""

    def __init__(self, node: TenantNode, instance: str | None, user: str) -> None:
        self._node = node
        self._instance = instance
        self._user = user
        self.holder, self.controller, self.services = node.holder, node.controller, node.services

    def ask(self, request: Request, answer: type[Answer], version: int) -> Answer:
        """Return the response as the client reads it."""
        return self._node.ask_as(self._instance, request, answer, version, self._user)
