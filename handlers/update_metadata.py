"""UpdateMetadata (key 6), v0-8: the controller sends brokers and partitions to answer Metadata from.

v1     several listeners of a broker, by their protocols; from v3 by their names
v2     racks
v4     offline replicas
v5     partitions by topic; the broker's epoch
v6     flexible
v7     topic ids
v8     KRaft controllers during a migration (KIP-866), which are not supported
"""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def handle_update_metadata(
    request: UpdateMetadataRequest, context: RequestContext, services: Services
) -> UpdateMetadataResponse:
    """Take over what the controller sends."""
    return services.require_cluster().update_metadata(request)
