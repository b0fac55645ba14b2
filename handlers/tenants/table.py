"""The one table of the APIs that the clients of instances are served, and of what each needs besides the translation of names.

An API that is not in the table is not served to them: ApiVersions does not list it, and a request for it closes the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, NamedTuple, TypeAlias

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.tenants import acls, bounds, configs, hooks, new_topics, quotas
from kafkacompat.wire.schema import Response

Refusing: TypeAlias = "Generator[None, None, Response | None]"
"""Steps that return a response to refuse a request, or None."""
Check: TypeAlias = "Callable[[Any, RequestContext, Services], Response | Refusing | None]"
"""Sees a request; returns a response to refuse it, steps that do so, or None."""
Narrow: TypeAlias = "Callable[[Any, RequestContext, Services], Response | Refusing | Iterator[None] | None]"
"""Changes a request whose names are physical; returns an iterator of steps, a response to refuse it, or None."""
Show: TypeAlias = "Callable[[Any, RequestContext, Services], None]"
"""Changes a response whose names are physical."""
Finish: TypeAlias = "Callable[[Any, Any, RequestContext, Services], Iterator[None] | None]"
"""Changes a response, given the request; returns an iterator of steps, or None."""


class TenantApi(NamedTuple):
    """What an API needs for instances besides the translation of names.

    ``check`` sees the request with the clients' names, ``narrow`` with physical ones; both may change it. ``show`` sees the response
    with physical names, ``finish`` with the clients' own. ``refuses_empty`` is set where the handler rejects empty ids of groups and
    transactions: these stay empty, as with a prefix they would be accepted.
    """

    check: Check | None = None
    narrow: Narrow | None = None
    show: Show | None = None
    finish: Finish | None = None
    refuses_empty: bool = False


PLAIN = TenantApi()
WITH_ID = TenantApi(refuses_empty=True)


def _finish_api_versions(request: Any, response: Any, context: RequestContext, services: Services) -> None:
    """Leave only the APIs of the table, and an epoch that grows with the features alone.

    The epoch of the brokers grows with each change of the metadata, also with those of other instances.
    """
    response.api_keys = [served for served in response.api_keys if served.api_key in TENANT_APIS]
    if response.finalized_features_epoch > 0:
        response.finalized_features_epoch = sum(
            feature.max_version_level for feature in response.finalized_features or ()
        )


TENANT_APIS: dict[int, TenantApi] = {
    0: PLAIN,  # Produce
    1: TenantApi(check=hooks.refuse_replicas),  # Fetch
    2: PLAIN,  # ListOffsets
    3: TenantApi(narrow=hooks.narrow_metadata, finish=hooks.finish_topics),  # Metadata
    8: PLAIN,  # OffsetCommit
    9: PLAIN,  # OffsetFetch
    10: TenantApi(finish=hooks.finish_coordinators),  # FindCoordinator
    11: WITH_ID,  # JoinGroup
    12: WITH_ID,  # Heartbeat
    13: WITH_ID,  # LeaveGroup
    14: WITH_ID,  # SyncGroup
    15: PLAIN,  # DescribeGroups
    16: PLAIN,  # ListGroups
    17: PLAIN,  # SaslHandshake
    18: TenantApi(finish=_finish_api_versions),  # ApiVersions
    19: TenantApi(  # CreateTopics
        check=new_topics.refuse_long_whitelists,
        narrow=new_topics.narrow_created_topics,
        finish=new_topics.hide_long_names,
    ),
    20: PLAIN,  # DeleteTopics
    21: PLAIN,  # DeleteRecords
    22: WITH_ID,  # InitProducerId
    23: PLAIN,  # OffsetForLeaderEpoch
    24: WITH_ID,  # AddPartitionsToTxn
    25: WITH_ID,  # AddOffsetsToTxn
    26: WITH_ID,  # EndTxn
    27: TenantApi(check=hooks.hold_back_markers),  # WriteTxnMarkers
    28: WITH_ID,  # TxnOffsetCommit
    29: PLAIN,  # DescribeAcls, whose handler knows instances
    30: TenantApi(check=bounds.bound_rules),  # CreateAcls
    31: TenantApi(narrow=acls.narrow_deletions, finish=acls.merge_deletions),  # DeleteAcls
    32: PLAIN,  # DescribeConfigs, whose handler knows instances
    33: TenantApi(check=configs.refuse_foreign_resources, finish=configs.add_refused),  # AlterConfigs
    35: TenantApi(finish=hooks.finish_log_directories),  # DescribeLogDirs
    36: PLAIN,  # SaslAuthenticate
    37: PLAIN,  # CreatePartitions
    38: TenantApi(check=bounds.bound_tokens),  # CreateDelegationToken
    39: PLAIN,  # RenewDelegationToken
    40: PLAIN,  # ExpireDelegationToken
    41: PLAIN,  # DescribeDelegationToken, whose handler knows instances
    42: PLAIN,  # DeleteGroups
    43: TenantApi(narrow=hooks.narrow_elections, finish=hooks.finish_elections),  # ElectLeaders
    44: TenantApi(check=configs.refuse_foreign_resources, finish=configs.add_refused),  # IncrementalAlterConfigs
    46: PLAIN,  # ListPartitionReassignments
    47: WITH_ID,  # OffsetDelete
    48: TenantApi(check=quotas.refuse_described_addresses),  # DescribeClientQuotas, whose handler knows instances
    49: TenantApi(check=quotas.refuse_altered_addresses, finish=quotas.add_refused),  # AlterClientQuotas
    50: PLAIN,  # DescribeUserScramCredentials, whose handler knows instances
    51: TenantApi(check=bounds.bound_users),  # AlterUserScramCredentials
    60: PLAIN,  # DescribeCluster
    61: PLAIN,  # DescribeProducers
    65: TenantApi(show=hooks.show_offsets_topic, refuses_empty=True),  # DescribeTransactions
    66: PLAIN,  # ListTransactions
    68: WITH_ID,  # ConsumerGroupHeartbeat
    69: WITH_ID,  # ConsumerGroupDescribe
    74: PLAIN,  # ListConfigResources, whose handler knows instances
    75: TenantApi(narrow=hooks.narrow_topic_pages, finish=hooks.finish_topics),  # DescribeTopicPartitions
}
"""By API key."""
