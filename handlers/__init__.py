"""The one table of served APIs and their versions; `handlers/<name>.py` answers it with ``handle_<name>``.

ApiVersions, the connection's parser and the dispatcher all read this table. A handler and its messages are imported when
the first request for them arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from importlib import import_module
from typing import Any

from kafkacompat.wire.apis import find_api, find_api_name
from kafkacompat.wire.compiler import find_reader, find_stepwise_writer
from kafkacompat.wire.schema import Request, Response, Versions


class Handler:
    """One API: its versions, its messages and its handler."""

    def __init__(self, api_key: int, versions: Versions) -> None:
        self.api_key = api_key
        self.versions = versions

    @cached_property
    def handle(self) -> Callable[..., Any]:
        """The function that answers a request, imported at first use."""
        name = find_api_name(self.api_key)
        function: Callable[..., Any] = getattr(import_module(f"kafkacompat.handlers.{name}"), f"handle_{name}")
        return function

    @cached_property
    def request(self) -> type[Request]:
        """The API's request class."""
        return find_api(self.api_key).request

    @cached_property
    def response(self) -> type[Response]:
        """The API's response class."""
        return find_api(self.api_key).response

    def load(self) -> None:
        """Import the handler and compile its messages for the newest version, as the first request would."""
        _ = self.handle
        find_reader(self.request, self.versions.last)
        find_stepwise_writer(self.response, self.versions.last)


SERVED = {
    0: "0-13",  # Produce
    1: "0-18",  # Fetch
    2: "0-11",  # ListOffsets
    3: "0-13",  # Metadata
    8: "0-10",  # OffsetCommit
    9: "0-10",  # OffsetFetch
    10: "0-6",  # FindCoordinator
    11: "0-9",  # JoinGroup
    12: "0-4",  # Heartbeat
    13: "0-5",  # LeaveGroup
    14: "0-5",  # SyncGroup
    15: "0-6",  # DescribeGroups
    16: "0-5",  # ListGroups
    17: "0-1",  # SaslHandshake
    18: "0-4",  # ApiVersions
    19: "0-7",  # CreateTopics
    20: "0-6",  # DeleteTopics
    21: "0-2",  # DeleteRecords
    22: "0-5",  # InitProducerId; 6 is not released
    23: "0-4",  # OffsetForLeaderEpoch
    24: "0-5",  # AddPartitionsToTxn
    25: "0-4",  # AddOffsetsToTxn
    26: "0-5",  # EndTxn
    27: "0-2",  # WriteTxnMarkers
    28: "0-5",  # TxnOffsetCommit
    29: "0-3",  # DescribeAcls
    30: "0-3",  # CreateAcls
    31: "0-3",  # DeleteAcls
    32: "0-4",  # DescribeConfigs
    33: "0-2",  # AlterConfigs
    34: "0-2",  # AlterReplicaLogDirs
    35: "0-5",  # DescribeLogDirs
    36: "0-2",  # SaslAuthenticate
    37: "0-3",  # CreatePartitions
    38: "0-3",  # CreateDelegationToken
    39: "0-2",  # RenewDelegationToken
    40: "0-2",  # ExpireDelegationToken
    41: "0-3",  # DescribeDelegationToken
    42: "0-2",  # DeleteGroups
    43: "0-2",  # ElectLeaders
    44: "0-1",  # IncrementalAlterConfigs
    45: "0-1",  # AlterPartitionReassignments
    46: "0",  # ListPartitionReassignments
    47: "0",  # OffsetDelete
    48: "0-1",  # DescribeClientQuotas
    49: "0-1",  # AlterClientQuotas
    50: "0",  # DescribeUserScramCredentials
    51: "0",  # AlterUserScramCredentials
    55: "0-2",  # DescribeQuorum
    57: "0-2",  # UpdateFeatures
    60: "0-2",  # DescribeCluster
    61: "0",  # DescribeProducers
    64: "0",  # UnregisterBroker
    65: "0",  # DescribeTransactions
    66: "0-2",  # ListTransactions
    68: "0-1",  # ConsumerGroupHeartbeat
    69: "0-1",  # ConsumerGroupDescribe
    74: "0-1",  # ListConfigResources
    75: "0",  # DescribeTopicPartitions
    80: "0-1",  # AddRaftVoter
    81: "0",  # RemoveRaftVoter
}
HANDLERS = {key: Handler(key, Versions.parse(versions)) for key, versions in SERVED.items()}
"""By API key, in ascending order."""

KRAFT_ONLY = frozenset(
    {
        55,  # DescribeQuorum
        64,  # UnregisterBroker
        80,  # AddRaftVoter
        81,  # RemoveRaftVoter
    }
)
"""APIs that Apache Kafka 3.9 does not serve with ZooKeeper: there is no quorum, and a broker that stops is not registered."""

CLUSTER_HANDLERS = {key: handler for key, handler in HANDLERS.items() if key not in KRAFT_ONLY}
"""What every listener of a broker in a cluster serves, by API key."""

SERVED_BETWEEN_BROKERS = {
    4: "0-7",  # LeaderAndIsr
    5: "0-4",  # StopReplica
    6: "0-8",  # UpdateMetadata
    7: "0-3",  # ControlledShutdown
    56: "0-3",  # AlterPartition
    58: "0",  # Envelope
    67: "0",  # AllocateProducerIds
    10000: "0",  # ReportTraffic, this project's own
    10001: "0",  # ReportStorage, this project's own
}
INTER_BROKER_HANDLERS = {key: Handler(key, Versions.parse(text)) for key, text in SERVED_BETWEEN_BROKERS.items()}
"""What the inter-broker listener of a broker in a cluster serves in addition, by API key."""

SERVED_WITH_TELEMETRY = {
    71: "0",  # GetTelemetrySubscriptions
    72: "0",  # PushTelemetry
}
TELEMETRY_HANDLERS = {key: Handler(key, Versions.parse(text)) for key, text in SERVED_WITH_TELEMETRY.items()}
"""What a broker serves in addition if somebody can read what clients push, by API key."""

ASKED_FIRST = (3, 10, 11, 14, 12, 9, 2, 1, 8)
"""The APIs that a starting consumer calls, in that order."""


def load_consumer_apis() -> Iterator[None]:
    """Load these APIs, one a step, so that the first consumer does not wait for imports."""
    for api_key in ASKED_FIRST:
        HANDLERS[api_key].load()
        yield
