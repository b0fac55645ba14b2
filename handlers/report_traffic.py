"""ReportTraffic (key 10000), v0: a broker reports the traffic of instances, and the controller divides it. This project's own API."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from kafkacompat.handlers.context import Pending, RequestContext, Services
from kafkacompat.wire.apis.report_traffic import ReportTrafficRequest, ReportTrafficResponse


def handle_report_traffic(
    request: ReportTrafficRequest, context: RequestContext, services: Services
) -> Pending[ReportTrafficResponse]:
    """Answer with the broker's shares of all reported instances."""
    return Pending(Deferred.fromCoroutine(services.require_cluster().answers.report_traffic(request)))
