"""Asking one broker every question in every scenario.

A scenario gives a client some of the rights that a question depends on: none, each alone, all, and all but one that is denied. Each
has an address of its own, and all rules are made at once. Clients of ADMIN may do everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from compat_tests.authorization.questions import (
    ALLOWED,
    EXISTING,
    HERE,
    HIDDEN,
    QUESTIONS,
    TO_DELETE,
    Question,
    Right,
    build_request,
    summarize,
)
from kafkacompat.security.acls.model import CLUSTER_NAME, AclPermission, PatternType
from kafkacompat.security.acls.model import AclOperation as Operation
from kafkacompat.security.acls.model import AclResourceType as Kind
from kafkacompat.wire.apis.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkacompat.wire.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkacompat.wire.apis.create_acls import AclCreation, CreateAclsRequest
from kafkacompat.wire.apis.create_topics import CreatableTopic, CreateTopicsRequest
from kafkacompat.wire.apis.describe_acls import DescribeAclsRequest
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataRequestTopic
from kafkacompat.wire.apis.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkacompat.wire.schema import Request

ADMIN = "127.0.0.1"
ANY_CODE = 1
RULES_AT_ONCE = 500
CONSUMER_GROUPS = {"allowed-consumers": HERE, "allowed-hidden-consumers": HIDDEN}

Ask = Callable[[str, Request, int], Any]
"""Sends a request from an address in a version; returns the response, or None if the broker closes the connection."""
Until = Callable[[Callable[[], bool]], object]
"""Waits until a condition holds."""


class Scenario(NamedTuple):
    """A client with some rights, and the label of its answer."""

    question: Question
    number: int
    label: str
    allowed: Sequence[Right]
    denied: Sequence[Right] = ()

    @property
    def name(self) -> str:
        """The part of names that only this scenario uses."""
        return f"s{self.number}"

    @property
    def address(self) -> str:
        """The client's own address."""
        return f"127.1.{self.number // 250}.{self.number % 250 + 1}"


def list_scenarios() -> list[Scenario]:
    """Return every scenario of every question."""
    scenarios: list[Scenario] = []
    for question in QUESTIONS:
        for label, allowed, denied in _vary_rights(question.rights):
            scenarios.append(Scenario(question, len(scenarios), f"{question.name}: {label}", allowed, denied))
    return scenarios


def _vary_rights(rights: Sequence[Right]) -> Iterator[tuple[str, Sequence[Right], Sequence[Right]]]:
    yield "nothing", (), ()
    if len(rights) > 1:
        for right in rights:
            yield f"only {_name(right)}", (right,), ()
    yield "all", rights, ()
    for right in rights:
        yield f"all but {_name(right)} denied", rights, (right,)


def _name(right: Right) -> str:
    return f"{right[0].name} on {right[1].name}"


def _build_rule(address: str, right: Right, permission: AclPermission, name: str, pattern: PatternType) -> AclCreation:
    return AclCreation(
        resource_type=right[1],
        resource_name=CLUSTER_NAME if right[1] is Kind.CLUSTER else name,
        resource_pattern_type=PatternType.LITERAL if right[1] is Kind.CLUSTER else pattern,
        principal="User:ANONYMOUS",
        host=address,
        operation=right[0],
        permission_type=permission,
    )


class Examination:
    """One broker that is asked; ``answers`` are summaries by the labels of the scenarios."""

    def __init__(self, ask: Ask, until: Until) -> None:
        self._ask = ask
        self._until = until
        self._members: dict[str, tuple[str, int]] = {}
        self._topic_ids: dict[str, bytes] = {}
        self.scenarios = list_scenarios()
        self.answers: dict[str, Any] = {}

    def _admin(self, request: Request, version: int) -> Any:
        return self._ask(ADMIN, request, version)

    def prepare(self) -> None:
        """Create what the questions are about, and the rules."""
        self._create_topics()
        self._create_groups()
        self._open_transaction()
        admin = [
            _build_rule(ADMIN, (Operation.ALL, kind), AclPermission.ALLOW, "*", PatternType.LITERAL) for kind in Kind
        ]
        self._create_rules(admin)
        rules = [
            _build_rule(scenario.address, right, permission, ALLOWED, PatternType.PREFIXED)
            for scenario in self.scenarios
            for permission, rights in ((AclPermission.ALLOW, scenario.allowed), (AclPermission.DENY, scenario.denied))
            for right in dict.fromkeys(rights)
        ]
        for start in range(0, len(rules), RULES_AT_ONCE):
            self._create_rules(rules[start : start + RULES_AT_ONCE])
        self._until(lambda: self._count_rules() == len(admin) + len(rules))

    def _create_topics(self) -> None:
        deletable = [
            TO_DELETE.format(scenario=scenario.name) for scenario in self.scenarios if scenario.question.api_key == 20
        ]
        names = [*EXISTING, *deletable]
        topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
        created = self._admin(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
        assert not any(topic.error_code for topic in created.topics), created
        self._topic_ids = {topic.name: topic.topic_id for topic in created.topics}
        wanted = MetadataRequest(
            topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        self._until(lambda: not any(topic.error_code for topic in self._admin(wanted, 12).topics))

    def _create_groups(self) -> None:
        for key_type, key in ((0, "allowed-group"), (1, "allowed-transaction")):
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            self._until(lambda request=request: not self._admin(request, 4).coordinators[0].error_code)  # type: ignore[misc]
        for group in ("allowed-group", "hidden-group", "allowed-group-all"):
            self._until(lambda group=group: self._commit(group))  # type: ignore[misc]
        for group in CONSUMER_GROUPS:
            self._join(group)

    def _commit(self, group: str) -> bool:
        topics = [
            OffsetCommitRequestTopic(
                name=name,
                partitions=[OffsetCommitRequestPartition(partition_index=0, committed_offset=0, committed_metadata="")],
            )
            for name in EXISTING
        ]
        answer = self._admin(OffsetCommitRequest(group_id=group, topics=topics), 8)
        return not any(partition.error_code for topic in answer.topics for partition in topic.partitions)

    def _join(self, group: str) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group,
            member_id=f"member-of-{group}",
            member_epoch=0,
            rebalance_timeout_ms=60_000,
            subscribed_topic_names=[CONSUMER_GROUPS[group]],
            topic_partitions=[],
        )
        joined = self._admin(request, 1)
        assert not joined.error_code, joined
        self._members[group] = joined.member_id, joined.member_epoch

    def _keep_members(self) -> None:
        for group, (member_id, epoch) in self._members.items():
            request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch)
            answer = self._admin(request, 1)
            if answer.error_code:
                self._join(group)
            else:
                self._members[group] = member_id, answer.member_epoch

    def _open_transaction(self) -> None:
        for name in ("allowed-transaction", "hidden-transaction", "allowed-open"):
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=900_000)
            self._until(lambda request=request: not self._admin(request, 4).error_code)  # type: ignore[misc]
        producer = self._admin(request, 4)
        added = self._admin(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id="allowed-open",
                v3_and_below_producer_id=producer.producer_id,
                v3_and_below_producer_epoch=producer.producer_epoch,
                v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in EXISTING],
            ),
            3,
        )
        assert "error_code=0" in repr(added.results_by_topic_v3_and_below[0]), added

    def _create_rules(self, rules: Sequence[AclCreation]) -> None:
        created = self._admin(CreateAclsRequest(creations=list(rules)), 3)
        assert not any(result.error_code for result in created.results), created

    def _count_rules(self) -> int:
        everything = DescribeAclsRequest(
            resource_type_filter=ANY_CODE,
            resource_name_filter=None,
            pattern_type_filter=ANY_CODE,
            principal_filter=None,
            host_filter=None,
            operation=ANY_CODE,
            permission_type=ANY_CODE,
        )
        return sum(len(resource.acls) for resource in self._admin(everything, 3).resources)

    def ask_everything(self) -> Mapping[str, Any]:
        """Ask every question in every scenario; returns the answers."""
        names = {topic_id: name for name, topic_id in self._topic_ids.items()}
        for scenario in self.scenarios:
            if scenario.question.api_key in (16, 69):
                self._keep_members()
            request = build_request(scenario.question, scenario.name, self._topic_ids)
            answer = self._ask(scenario.address, request, scenario.question.version)
            summary = "closed" if answer is None else summarize(answer, names)
            self.answers[scenario.label] = _without_scenario(summary, scenario.name)
        return self.answers


def _without_scenario(summary: Any, name: str) -> Any:
    if isinstance(summary, dict):
        return {key: _without_scenario(value, name) for key, value in summary.items()}
    if isinstance(summary, list):
        return [_without_scenario(item, name) for item in summary]
    return summary.removesuffix(name) if isinstance(summary, str) and summary.endswith(f"-{name}") else summary
