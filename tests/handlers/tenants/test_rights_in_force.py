"""A broker whose instances change: the rights and the quotas of their users follow at once."""

from __future__ import annotations

from pathlib import Path

from kafkacompat.config.resources import ResourceType
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.security.acls.model import AclOperation, AclResourceType
from kafkacompat.security.principals import Principal
from kafkacompat.wire.apis.alter_client_quotas import AlterClientQuotasRequest, EntityData, EntryData, OpData
from tests.handlers.guards.world import GuardedWorld


def configure(world: GuardedWorld, **properties: str) -> None:
    operations = [
        ConfigOperation(option.replace("_", "."), ConfigOperationType.SET, text) for option, text in properties.items()
    ]

    async def change() -> None:
        changes = [ResourceChange(ResourceType.INSTANCE, "shop", operations)]
        assert await world.broker.controller.alter_configs(changes) == [None]

    world.run(change())


def test_rights_and_quotas_follow_the_instances(tmp_path: Path) -> None:
    world = GuardedWorld(tmp_path, allow_everyone_if_no_acl_found="true")
    entity = [EntityData(entity_type="user", entity_name="shop.")]
    entry = EntryData(entity=entity, ops=[OpData(key="producer_byte_rate", value=1000.0)])
    assert world.ask("10.0.0.1", AlterClientQuotasRequest(entries=[entry]), 1).entries[0].error_code == 0
    quotas, services = world.broker.quotas, world.broker._services
    assert quotas.find_uses("shop.alice", "app", 1) is None

    configure(world, cluster_id="c", secret="s")
    uses = quotas.find_uses("shop.alice", "app", 1)
    assert uses is not None and uses.produce is not None and uses.produce.limit == 1000
    assert services.authorizer is not None

    def reason() -> object:
        assert services.authorizer is not None
        principal, kind = Principal("User", "shop.alice"), AclResourceType.TOPIC
        return services.authorizer.decide(principal, "10.0.0.1", AclOperation.READ, kind, "shop.orders").reason

    assert reason() == "DefaultAllow"
    configure(world, super_users="User:alice")
    assert reason() == "SuperUser"
    configure(world, super_users="User:bob")
    assert reason() == "DefaultAllow"
    world.close()
