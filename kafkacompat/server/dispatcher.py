"""From a parsed request to the function that answers it: one look into the table of handlers.

Besides `handlers/per_partition` this is the only place where a `KafkaError` becomes an answer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from kafkacompat.handlers.context import Pending, RequestContext, Services, UnanswerableError
from kafkacompat.wire.errors import ErrorCode, KafkaError
from kafkacompat.wire.schema import Response

if TYPE_CHECKING:
    from kafkacompat.handlers import Handler
    from kafkacompat.wire.connection import IncomingRequest

log = logging.getLogger(__name__)


class Dispatcher:
    """Calls handlers; ``handlers`` is the table of what is served."""

    def __init__(self, handlers: Mapping[int, Handler], services: Services) -> None:
        self.handlers = handlers
        self._services = services

    def dispatch(self, incoming: IncomingRequest, context: RequestContext) -> Response | Pending[Response] | None:
        """Answer one request, now or later; None where the protocol has no answer.

        Raises UnanswerableError when the connection is to be closed instead.
        """
        handler = self.handlers[incoming.api_key]
        try:
            result: Response | Pending[Response] | None = handler.handle(incoming.body, context, self._services)
        except Exception as problem:
            return self.failure(incoming, problem)
        return result

    def failure(self, incoming: IncomingRequest, problem: BaseException) -> Response:
        """The response that carries a failed request's error code.

        Raises UnanswerableError where the response has no place for one.
        """
        handler = self.handlers[incoming.api_key]
        name = handler.request.__name__
        if isinstance(problem, UnanswerableError):
            raise problem
        if isinstance(problem, KafkaError):
            code = problem.code
        else:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            log.error("%s v%d failed", name, incoming.api_version, exc_info=problem)
        field = handler.response.FIELDS.get("error_code")
        if field is None or incoming.api_version not in field.versions:
            raise UnanswerableError(f"{name} v{incoming.api_version} failed: {problem}")
        make: Callable[..., Response] = handler.response
        return make(error_code=int(code))
