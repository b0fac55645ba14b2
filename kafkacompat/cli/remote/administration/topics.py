"""Topics: listed, created, described, altered and deleted."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kafkacompat.cli.remote.administration.configs import alter_entity, read_configs, select_configs
from kafkacompat.cli.remote.administration.topic_names import explain_topic
from kafkacompat.cli.remote.cluster import CHANGE_TIMEOUT_MS
from kafkacompat.cli.remote.errors import EXIT_DONE, EXIT_REFUSED
from kafkacompat.cli.remote.outcomes import Outcome, write_outcomes
from kafkacompat.wire.apis.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafkacompat.wire.apis.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse, DeleteTopicState
from kafkacompat.wire.errors import ErrorCode

if TYPE_CHECKING:
    from kafkacompat.cli.remote.cluster import RemoteCluster
    from kafkacompat.cli.remote.output import Output
    from kafkacompat.wire.apis.metadata import MetadataResponsePartition, MetadataResponseTopic

BROKERS_DEFAULT = -1
NO_LEADER = -1
NO_TOPICS = "There are no topics"
STATE_STYLES = {"in sync": "green", "under-replicated": "yellow", "offline": "red"}


class TopicPlan(NamedTuple):
    """A topic to create; None for the brokers' default."""

    partitions: int | None
    replication_factor: int | None
    configs: Mapping[str, str]
    assignment: Sequence[Sequence[int]] | None = None


def parse_assignment(text: str | None) -> list[list[int]] | None:
    """Read the brokers of each partition's replicas, such as ``1:2,2:1``; raises click.UsageError."""
    if text is None:
        return None
    try:
        return [[int(node_id) for node_id in replicas.split(":")] for replicas in text.split(",")]
    except ValueError:
        sentence = (
            f"--replica-assignment {text} is not valid: it takes brokers' ids, such as 1:2,2:1 for two partitions"
        )
        raise click.UsageError(sentence) from None


@dataclass(frozen=True)
class PartitionSelection:
    """Which partitions `describe` shows."""

    with_internal: bool = True
    only_under_replicated: bool = False
    only_offline: bool = False

    def select(self, topic: MetadataResponseTopic) -> list[MetadataResponsePartition]:
        """Return the partitions of a topic that are shown."""
        if topic.is_internal and not self.with_internal:
            return []
        if not self.only_under_replicated and not self.only_offline:
            return topic.partitions
        wanted = {"under-replicated": self.only_under_replicated, "offline": self.only_offline}
        return [partition for partition in topic.partitions if wanted.get(find_state(partition), False)]


def find_state(partition: MetadataResponsePartition) -> str:
    """Return `in sync`, `under-replicated` or `offline`."""
    if partition.leader_id == NO_LEADER:
        return "offline"
    return "under-replicated" if len(partition.isr_nodes) < len(partition.replica_nodes) else "in sync"


# Reading


def list_topics(cluster: RemoteCluster, output: Output, *, with_internal: bool) -> None:
    """Write all topics."""
    topics = [topic for topic in cluster.read_topics() if with_internal or not topic.is_internal]
    rows = [
        {
            "topic": topic.name,
            "partitions": len(topic.partitions),
            "replication_factor": _find_replication_factor(topic),
            "is_internal": topic.is_internal,
        }
        for topic in topics
    ]
    output.write_rows(rows, NO_TOPICS)


def _find_replication_factor(topic: MetadataResponseTopic) -> int:
    return max((len(partition.replica_nodes) for partition in topic.partitions), default=0)


def describe_topics(
    cluster: RemoteCluster, output: Output, names: Sequence[str] | None, selection: PartitionSelection
) -> int:
    """Write partitions and configs of topics; returns the exit code."""
    topics = cluster.read_topics(names)
    refused = [topic for topic in topics if topic.error_code]
    shown = [(topic, partitions) for topic in topics if (partitions := selection.select(topic))]
    configs = _read_set_configs(cluster, [topic.name or "" for topic, _ in shown])
    described = [_describe_topic(topic, partitions, configs) for topic, partitions in shown]
    if output.as_json:
        output.write_json(described)
    else:
        for description in described:
            _write_topic(output, description)
        if not described and not refused:
            output.report("No partition is of this kind" if topics else NO_TOPICS)
    for topic in refused:
        name = topic.name or ""
        output.complain(f"the topic {name} is not shown: {explain_topic(cluster, name, topic.error_code)}")
    return EXIT_REFUSED if refused else EXIT_DONE


def _read_set_configs(cluster: RemoteCluster, names: Sequence[str]) -> dict[str, dict[str, str | None]]:
    """Return the configs that are set on each topic; a topic whose configs are refused is left out."""
    return {
        result.resource_name: {
            entry.name: entry.value for entry in select_configs("topics", result.configs, shows_all=False)
        }
        for result in read_configs(cluster, "topics", names)
        if not result.error_code
    }


def _describe_topic(
    topic: MetadataResponseTopic,
    partitions: Sequence[MetadataResponsePartition],
    configs: Mapping[str, dict[str, str | None]],
) -> dict[str, Any]:
    name = topic.name or ""
    return {
        "topic": name,
        "topic_id": urlsafe_b64encode(topic.topic_id).decode().rstrip("=") if any(topic.topic_id) else None,
        "is_internal": topic.is_internal,
        "partition_count": len(topic.partitions),
        "replication_factor": _find_replication_factor(topic),
        "configs": configs.get(name),
        "partitions": [
            {
                "partition": partition.partition_index,
                "leader": partition.leader_id,
                "leader_epoch": partition.leader_epoch,
                "replicas": list(partition.replica_nodes),
                "isr": list(partition.isr_nodes),
                "offline_replicas": list(partition.offline_replicas),
                "state": find_state(partition),
            }
            for partition in partitions
        ],
    }


def _write_topic(output: Output, description: Mapping[str, Any]) -> None:
    partitions, replicas = description["partition_count"], description["replication_factor"]
    parts = [f"Topic {description['topic']}", f"partitions {partitions}", f"replication factor {replicas}"]
    if description["topic_id"] is not None:
        parts.append(f"id {description['topic_id']}")
    parts += [f"{name}={value}" for name, value in (description["configs"] or {}).items()]
    output.write_line(", ".join(parts))
    columns = ("partition", "leader", "replicas", "isr", "state")
    rows = [{name: partition[name] for name in columns} for partition in description["partitions"]]
    output.write_rows(rows, "", styles={"state": lambda state: STATE_STYLES[str(state)]})


# Changes


def create_topics(
    cluster: RemoteCluster, output: Output, names: Sequence[str], plan: TopicPlan, *, if_not_exists: bool
) -> int:
    """Create topics alike; returns the exit code."""
    topics = [_plan_topic(name, plan) for name in names]
    request = CreateTopicsRequest(topics=topics, timeout_ms=CHANGE_TIMEOUT_MS)
    outcomes = []
    for result in cluster.request_controller(request, CreateTopicsResponse).topics:
        if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            problem = None if if_not_exists else "it exists already: --if-not-exists accepts that"
            outcomes.append(Outcome(result.name, problem, is_unchanged=True))
        else:
            outcomes.append(_find_outcome(cluster, result.name, result.error_code, result.error_message))
    return write_outcomes(output, "topic", "created", outcomes)


def _plan_topic(name: str, plan: TopicPlan) -> CreatableTopic:
    assignments = [
        CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
        for index, replicas in enumerate(plan.assignment or ())
    ]
    return CreatableTopic(
        name=name,
        num_partitions=plan.partitions or BROKERS_DEFAULT,
        replication_factor=plan.replication_factor or BROKERS_DEFAULT,
        assignments=assignments,
        configs=[CreatableTopicConfig(name=config, value=value) for config, value in plan.configs.items()],
    )


def _find_outcome(cluster: RemoteCluster, name: str, code: int, message: str | None) -> Outcome:
    return Outcome(name, explain_topic(cluster, name, code, message) if code else None)


def alter_topics(
    cluster: RemoteCluster,
    output: Output,
    names: Sequence[str],
    partitions: int | None,
    changes: Mapping[str, str | None],
) -> int:
    """Raise the number of partitions of topics, and change their configs; returns the exit code."""
    outcomes = []
    for name in names:
        outcome = Outcome(name) if partitions is None else _add_partitions(cluster, name, partitions)
        if outcome.problem is None and changes:
            outcome = alter_entity(cluster, "topics", name, changes)
        outcomes.append(outcome)
    return write_outcomes(output, "topic", "altered", outcomes)


def _add_partitions(cluster: RemoteCluster, name: str, partitions: int) -> Outcome:
    topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
    request = CreatePartitionsRequest(topics=[topic], timeout_ms=CHANGE_TIMEOUT_MS)
    (result,) = cluster.request_controller(request, CreatePartitionsResponse).results
    return _find_outcome(cluster, name, result.error_code, result.error_message)


def delete_topics(cluster: RemoteCluster, output: Output, names: Sequence[str], *, if_exists: bool) -> int:
    """Delete topics; returns the exit code."""
    request = DeleteTopicsRequest(
        topics=[DeleteTopicState(name=name) for name in names], topic_names=list(names), timeout_ms=CHANGE_TIMEOUT_MS
    )
    outcomes = []
    for result in cluster.request_controller(request, DeleteTopicsResponse).responses:
        name = result.name or ""
        if if_exists and result.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            outcomes.append(Outcome(name, is_unchanged=True))
        else:
            outcomes.append(_find_outcome(cluster, name, result.error_code, result.error_message))
    return write_outcomes(output, "topic", "deleted", outcomes)
