"""A dispatcher that applies the rules of faults to the requests of clients, and leaves all others to the broker's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from kafkacompat.faults.parsing import name_api

if TYPE_CHECKING:
    from kafkacompat.faults.tools import FaultTools
    from kafkacompat.handlers import Handler
    from kafkacompat.handlers.context import RequestContext
    from kafkacompat.server.dispatcher import Answer, Dispatcher
    from kafkacompat.wire.connection import IncomingRequest
    from kafkacompat.wire.schema import Response


class FaultyDispatcher:
    """Stands in front of a listener's dispatcher."""

    def __init__(self, dispatcher: Dispatcher, tools: FaultTools) -> None:
        self._inner = dispatcher
        self._tools = tools

    @property
    def handlers(self) -> Mapping[int, Handler]:
        """See Dispatcher."""
        return self._inner.handlers

    def build_failure_response(self, incoming: IncomingRequest, problem: BaseException) -> Response:
        """See Dispatcher."""
        return self._inner.build_failure_response(incoming, problem)

    def answer_versions(self, incoming: IncomingRequest, context: RequestContext) -> Answer:
        """See Dispatcher. An authentication waits for nothing, so that no rule sees it."""
        return self._inner.answer_versions(incoming, context)

    def dispatch(self, incoming: IncomingRequest, context: RequestContext) -> Answer:
        """See Dispatcher."""
        tools = self._tools
        if tools.pause:
            return tools.pause.answer_afterwards(lambda: self.dispatch(incoming, context), incoming.size_bytes)
        if not tools.faults.concerns(name_api(incoming.api_key)):
            return self._inner.dispatch(incoming, context)
        if incoming.reading is not None:
            # Rules compare the topics of a request, so that it has to be read first; long turns are no harm in a test.
            for _ in incoming.reading:
                pass
            incoming.reading = None
        # Most brokers of tests have no rule.
        from kafkacompat.faults.application import FaultApplication

        declared = self.handlers[incoming.api_key].response
        return FaultApplication(tools, self._inner.dispatch, incoming, context, declared).begin()
