"""The one table of the APIs that only the controller of a cluster carries out, and how each rejects a whole request.

Other brokers forward their requests (`server.forwarding`). Most of these APIs have no error code for the whole request: each of
its items gets the error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

from kafkacompat.wire.apis import alter_client_quotas as quotas
from kafkacompat.wire.apis import alter_configs as configs
from kafkacompat.wire.apis import alter_partition_reassignments as reassignments
from kafkacompat.wire.apis import alter_user_scram_credentials as scram
from kafkacompat.wire.apis import create_acls, delete_acls
from kafkacompat.wire.apis import create_partitions as partitions
from kafkacompat.wire.apis import create_topics as creations
from kafkacompat.wire.apis import delete_topics as deletions
from kafkacompat.wire.apis import elect_leaders as elections
from kafkacompat.wire.apis import incremental_alter_configs as changes
from kafkacompat.wire.apis.create_delegation_token import CreateDelegationTokenResponse
from kafkacompat.wire.apis.expire_delegation_token import ExpireDelegationTokenResponse
from kafkacompat.wire.apis.list_partition_reassignments import ListPartitionReassignmentsResponse
from kafkacompat.wire.apis.renew_delegation_token import RenewDelegationTokenResponse
from kafkacompat.wire.apis.update_features import UpdateFeaturesResponse
from kafkacompat.wire.errors import KafkaError
from kafkacompat.wire.schema import Request, Response


class _Error(TypedDict):
    """The error of a request or of one of its items."""

    error_code: int
    error_message: str | None


_Refuse = Callable[[Any, _Error], Response]
"""Rejects a request as a whole."""


def build_refusal(request: Request, problem: KafkaError) -> Any:
    """Return the response to a request, of an API in `CONTROLLER_APIS`, that fails as a whole."""
    error = _Error(error_code=int(problem.code), error_message=problem.detail or None)
    return CONTROLLER_APIS[request.API_KEY](request, error)


def _refuse_creations(request: creations.CreateTopicsRequest, error: _Error) -> Response:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return creations.CreateTopicsResponse(topics=[creations.CreatableTopicResult(name=name, **error) for name in names])


def _refuse_deletions(request: deletions.DeleteTopicsRequest, error: _Error) -> Response:
    wanted = [*((name, None) for name in request.topic_names), *((topic.name, topic) for topic in request.topics)]
    return deletions.DeleteTopicsResponse(
        responses=[
            deletions.DeletableTopicResult(name=name, **error)
            if topic is None
            else deletions.DeletableTopicResult(name=name, topic_id=topic.topic_id, **error)
            for name, topic in wanted
        ]
    )


def _refuse_partitions(request: partitions.CreatePartitionsRequest, error: _Error) -> Response:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return partitions.CreatePartitionsResponse(
        results=[partitions.CreatePartitionsTopicResult(name=name, **error) for name in names]
    )


def _refuse_resources(response: Callable[..., Response], result: Callable[..., Any]) -> _Refuse:
    """Return the function that rejects a request about the configs of resources."""

    def refuse(request: Any, error: _Error) -> Response:
        return response(
            responses=[
                result(resource_type=resource.resource_type, resource_name=resource.resource_name, **error)
                for resource in request.resources
            ]
        )

    return refuse


def _refuse_elections(request: elections.ElectLeadersRequest, error: _Error) -> Response:
    return elections.ElectLeadersResponse(
        error_code=error["error_code"],
        replica_election_results=[
            elections.ReplicaElectionResult(
                topic=topic.topic,
                partition_result=[elections.PartitionResult(partition_id=index, **error) for index in topic.partitions],
            )
            for topic in request.topic_partitions or []
        ],
    )


def _refuse_reassignments(request: reassignments.AlterPartitionReassignmentsRequest, error: _Error) -> Response:
    return reassignments.AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        responses=[
            reassignments.ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    reassignments.ReassignablePartitionResponse(partition_index=wanted.partition_index, **error)
                    for wanted in topic.partitions
                ],
            )
            for topic in request.topics
        ],
        **error,
    )


def _refuse_quotas(request: quotas.AlterClientQuotasRequest, error: _Error) -> Response:
    return quotas.AlterClientQuotasResponse(
        entries=[quotas.EntryResult(entity=entry.entity, **error) for entry in request.entries]
    )


def _refuse_credentials(request: scram.AlterUserScramCredentialsRequest, error: _Error) -> Response:
    deleted = [deletion.name for deletion in request.deletions]
    users = dict.fromkeys(deleted + [upsertion.name for upsertion in request.upsertions])
    return scram.AlterUserScramCredentialsResponse(
        results=[scram.AlterUserScramCredentialsResult(user=user, **error) for user in users]
    )


def _refuse_acls(request: create_acls.CreateAclsRequest, error: _Error) -> Response:
    return create_acls.CreateAclsResponse(results=[create_acls.AclCreationResult(**error)] * len(request.creations))


def _refuse_acl_deletions(request: delete_acls.DeleteAclsRequest, error: _Error) -> Response:
    result = delete_acls.DeleteAclsFilterResult(**error)
    return delete_acls.DeleteAclsResponse(filter_results=[result] * len(request.filters))


CONTROLLER_APIS: dict[int, _Refuse] = {
    19: _refuse_creations,
    20: _refuse_deletions,
    30: _refuse_acls,
    31: _refuse_acl_deletions,
    33: _refuse_resources(configs.AlterConfigsResponse, configs.AlterConfigsResourceResponse),
    37: _refuse_partitions,
    38: lambda request, error: CreateDelegationTokenResponse(error_code=error["error_code"]),
    39: lambda request, error: RenewDelegationTokenResponse(error_code=error["error_code"], expiry_timestamp_ms=-1),
    40: lambda request, error: ExpireDelegationTokenResponse(error_code=error["error_code"], expiry_timestamp_ms=-1),
    43: _refuse_elections,
    44: _refuse_resources(changes.IncrementalAlterConfigsResponse, changes.AlterConfigsResourceResponse),
    45: _refuse_reassignments,
    46: lambda request, error: ListPartitionReassignmentsResponse(**error),
    49: _refuse_quotas,
    51: _refuse_credentials,
    57: lambda request, error: UpdateFeaturesResponse(**error),
}
"""By API key. The list is that of `maybeForwardToController` in Apache Kafka 3.9, with the changes of configurations, which Kafka
forwards only to KRaft controllers: here the controller writes them, too."""

CARRIED_OUT_ANYWHERE = frozenset({30, 31, 33, 38, 39, 40, 44, 49})
"""The APIs among them that any broker of a release with ZooKeeper carries out, so that its clients send them anywhere."""
