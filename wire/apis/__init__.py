"""The requests and responses this broker speaks, one module an API."""

from __future__ import annotations

from typing import NamedTuple

from kafkacompat.wire.apis.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkacompat.wire.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kafkacompat.wire.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkacompat.wire.apis.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from kafkacompat.wire.apis.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from kafkacompat.wire.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkacompat.wire.apis.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from kafkacompat.wire.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResponse
from kafkacompat.wire.apis.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafkacompat.wire.apis.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)
from kafkacompat.wire.apis.fetch import FetchRequest, FetchResponse
from kafkacompat.wire.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kafkacompat.wire.apis.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkacompat.wire.apis.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from kafkacompat.wire.apis.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kafkacompat.wire.apis.join_group import JoinGroupRequest, JoinGroupResponse
from kafkacompat.wire.apis.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkacompat.wire.apis.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkacompat.wire.apis.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from kafkacompat.wire.apis.metadata import MetadataRequest, MetadataResponse
from kafkacompat.wire.apis.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from kafkacompat.wire.apis.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkacompat.wire.apis.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse
from kafkacompat.wire.apis.produce import ProduceRequest, ProduceResponse
from kafkacompat.wire.apis.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkacompat.wire.schema import Request, Response


class Api(NamedTuple):
    """The two messages of one API."""

    request: type[Request]
    response: type[Response]


APIS: dict[int, Api] = {
    api.request.API_KEY: api
    for api in (
        Api(ProduceRequest, ProduceResponse),
        Api(FetchRequest, FetchResponse),
        Api(ListOffsetsRequest, ListOffsetsResponse),
        Api(MetadataRequest, MetadataResponse),
        Api(OffsetCommitRequest, OffsetCommitResponse),
        Api(OffsetFetchRequest, OffsetFetchResponse),
        Api(FindCoordinatorRequest, FindCoordinatorResponse),
        Api(JoinGroupRequest, JoinGroupResponse),
        Api(HeartbeatRequest, HeartbeatResponse),
        Api(LeaveGroupRequest, LeaveGroupResponse),
        Api(SyncGroupRequest, SyncGroupResponse),
        Api(DescribeGroupsRequest, DescribeGroupsResponse),
        Api(ListGroupsRequest, ListGroupsResponse),
        Api(ApiVersionsRequest, ApiVersionsResponse),
        Api(CreateTopicsRequest, CreateTopicsResponse),
        Api(DeleteTopicsRequest, DeleteTopicsResponse),
        Api(DeleteRecordsRequest, DeleteRecordsResponse),
        Api(InitProducerIdRequest, InitProducerIdResponse),
        Api(OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse),
        Api(DescribeConfigsRequest, DescribeConfigsResponse),
        Api(CreatePartitionsRequest, CreatePartitionsResponse),
        Api(DeleteGroupsRequest, DeleteGroupsResponse),
        Api(IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse),
        Api(DescribeClusterRequest, DescribeClusterResponse),
        Api(DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse),
    )
}
"""By API key, in ascending order."""
