"""Every right of every API inside an instance: it answers as Apache Kafka 4.3.1 has answered for a cluster of its own.

The questions are those of `compat_tests/test_authorization.py`. Another instance has rules that deny everything, and the operator
has rules that allow everything for the whole cluster: neither changes an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from compat_tests.authorization.asking import ADMIN, Examination, Scenario, list_scenarios
from compat_tests.authorization.differences import find_reason
from kafkacompat.config.resources import ResourceType
from kafkacompat.handlers.tenants.table import TENANT_APIS
from kafkacompat.metadata.config_changes import ConfigOperation, ConfigOperationType, ResourceChange
from kafkacompat.security.acls.model import CLUSTER_NAME, AclOperation, AclPermission, AclResourceType, PatternType
from kafkacompat.security.principals import ANONYMOUS, Principal
from kafkacompat.server.dispatcher import Dispatcher
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from tests.handlers.guards.world import GuardedWorld

KAFKA: dict[str, Any] = json.loads(
    (Path(__file__).parents[3] / "compat_tests" / "authorization" / "kafka-4.3.1.json").read_text()
)
SCENARIOS = [scenario for scenario in list_scenarios() if scenario.question.api_key in TENANT_APIS]
OWN = (ResourceType.TOPIC, ResourceType.GROUP)
NO_FOLLOWERS = {"error_code": 31}


class Tenants:
    """A broker with two instances; its clients belong to the instance that ``acts``, or to none."""

    def __init__(self, world: GuardedWorld) -> None:
        self.world = world
        self._acting: str | None = None
        for name in ("shop", "bank"):
            given = {"cluster.id": f"cluster-{name}", "secret": f"secret of {name}"}
            operations = [ConfigOperation(option, ConfigOperationType.SET, value) for option, value in given.items()]
            world.run(self._create(ResourceChange(ResourceType.INSTANCE, name, operations)))

    async def _create(self, change: ResourceChange) -> None:
        assert await self.world.broker.controller.alter_configs([change]) == [None]

    @contextmanager
    def act(self, name: str | None) -> Iterator[None]:
        """Let all clients belong to an instance."""
        view = self.world.broker.instances.by_name[name] if name else None
        principal = ANONYMOUS if view is None else Principal("User", view.find_physical_user(ANONYMOUS.name))
        dispatch = Dispatcher.dispatch

        def dispatch_for_instance(self: Dispatcher, incoming: Any, context: Any) -> Any:
            return dispatch(self, incoming, context._replace(tenant=view, principal=principal))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Dispatcher, "dispatch", dispatch_for_instance)
            yield

    def rule_everything(self, name: str | None, permission: AclPermission) -> None:
        """Allow or deny the users of an instance everything in it."""
        creations = [
            AclCreation(
                resource_type=kind,
                resource_name=CLUSTER_NAME if kind is AclResourceType.CLUSTER else "allowed",
                resource_pattern_type=PatternType.LITERAL if kind is AclResourceType.CLUSTER else PatternType.PREFIXED,
                principal="User:*",
                host="*",
                operation=AclOperation.ALL,
                permission_type=permission,
            )
            for kind in AclResourceType
        ]
        with self.act(name):
            created = self.world.ask(ADMIN, CreateAclsRequest(creations=creations), 3)
        assert not any(result.error_code for result in created.results), created


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    world = GuardedWorld(tmp_path_factory.mktemp("world"), allow_everyone_if_no_acl_found="true")
    tenants = Tenants(world)
    tenants.rule_everything("bank", AclPermission.DENY)
    tenants.rule_everything(None, AclPermission.ALLOW)
    examination = Examination(world.ask, world.turn_until)
    with tenants.act("shop"):
        examination.prepare()
        answers = dict(examination.ask_everything())
    world.close()
    return answers


def select_own(answer: Any) -> dict[tuple[int, str], Any]:
    """Return the parts of an answer about configurations that concern topics and groups, by resource."""
    results = answer.get("results") or answer.get("responses") or ()
    resources = {(result["resource_type"], result["resource_name"]): result for result in results}
    return {resource: result for resource, result in resources.items() if resource[0] in OWN}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=[scenario.label for scenario in SCENARIOS])
def test_the_answer_is_kafkas(answers: dict[str, Any], scenario: Scenario) -> None:
    label, question = scenario.label, scenario.question.name
    answer, expected = answers[label], KAFKA[label]
    if question == "fetch-of-a-follower":
        assert answer == NO_FOLLOWERS
    elif question in ("describe-configs", "alter-configs", "incremental-alter-configs"):
        # Instances do not configure the brokers.
        assert select_own(answer) == select_own(expected) != {}
    elif find_reason(label) is None:
        assert answer == expected
    else:
        # What is refused and what is not is the same for a difference, too.
        assert ("error_code" in str(answer)) == ("error_code" in str(expected))
