"""ReportStorage (key 10001), v0: a broker reports what instances store on it, and the controller adds it up. This project's own API."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.report_storage import ReportStorageRequest, ReportStorageResponse


def handle_report_storage(
    request: ReportStorageRequest, context: RequestContext, services: Services
) -> Pending[ReportStorageResponse]:
    """Answer with the totals of the reported instances."""
    return Pending(Deferred.fromCoroutine(services.require_cluster().answers.report_storage(request)))
