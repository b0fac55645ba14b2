"""UpdateMetadata (key 6), v0-8: the brokers and partitions of the cluster, from the controller."""

from __future__ import annotations

from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.wire.apis.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse


def handle_update_metadata(
    request: UpdateMetadataRequest, context: RequestContext, services: Services
) -> UpdateMetadataResponse:
    """Take the metadata over."""
    assert services.cluster is not None
    return services.cluster.update_metadata(request)
