"""The one table of what is served: API -> who answers it, with which messages, in which versions.

What ApiVersions says, what the connection parses and what the dispatcher calls all come from here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kafkacompat.handlers.api_versions import handle_api_versions
from kafkacompat.handlers.create_partitions import handle_create_partitions
from kafkacompat.handlers.create_topics import handle_create_topics
from kafkacompat.handlers.delete_groups import handle_delete_groups
from kafkacompat.handlers.delete_records import handle_delete_records
from kafkacompat.handlers.delete_topics import handle_delete_topics
from kafkacompat.handlers.describe_cluster import handle_describe_cluster
from kafkacompat.handlers.describe_configs import handle_describe_configs
from kafkacompat.handlers.describe_groups import handle_describe_groups
from kafkacompat.handlers.describe_topic_partitions import handle_describe_topic_partitions
from kafkacompat.handlers.fetch import handle_fetch
from kafkacompat.handlers.find_coordinator import handle_find_coordinator
from kafkacompat.handlers.heartbeat import handle_heartbeat
from kafkacompat.handlers.incremental_alter_configs import handle_incremental_alter_configs
from kafkacompat.handlers.init_producer_id import handle_init_producer_id
from kafkacompat.handlers.join_group import handle_join_group
from kafkacompat.handlers.leave_group import handle_leave_group
from kafkacompat.handlers.list_groups import handle_list_groups
from kafkacompat.handlers.list_offsets import handle_list_offsets
from kafkacompat.handlers.metadata import handle_metadata
from kafkacompat.handlers.offset_commit import handle_offset_commit
from kafkacompat.handlers.offset_fetch import handle_offset_fetch
from kafkacompat.handlers.offset_for_leader_epoch import handle_offset_for_leader_epoch
from kafkacompat.handlers.produce import handle_produce
from kafkacompat.handlers.sync_group import handle_sync_group
from kafkacompat.wire.apis import APIS
from kafkacompat.wire.schema import Request, Response, Versions


@dataclass(frozen=True, slots=True)
class Handler:
    """How one API is served."""

    handle: Callable[..., Any]
    request: type[Request]
    response: type[Response]
    versions: Versions


def _handlers(table: dict[int, Callable[..., Any]]) -> dict[int, Handler]:
    return {
        key: Handler(handle, APIS[key].request, APIS[key].response, APIS[key].request.VERSIONS)
        for key, handle in table.items()
    }


HANDLERS = _handlers(
    {
        0: handle_produce,
        1: handle_fetch,
        2: handle_list_offsets,
        3: handle_metadata,
        8: handle_offset_commit,
        9: handle_offset_fetch,
        10: handle_find_coordinator,
        11: handle_join_group,
        12: handle_heartbeat,
        13: handle_leave_group,
        14: handle_sync_group,
        15: handle_describe_groups,
        16: handle_list_groups,
        18: handle_api_versions,
        19: handle_create_topics,
        20: handle_delete_topics,
        21: handle_delete_records,
        22: handle_init_producer_id,
        23: handle_offset_for_leader_epoch,
        32: handle_describe_configs,
        37: handle_create_partitions,
        42: handle_delete_groups,
        44: handle_incremental_alter_configs,
        60: handle_describe_cluster,
        75: handle_describe_topic_partitions,
    }
)
