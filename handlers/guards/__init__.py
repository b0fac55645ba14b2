"""The rights that each API asks for (ACLs). With an authorizer a guard answers each request before its handler.

A guard lets the handler answer the part of a request that its client may make, and answers the rest itself. So handlers
know no rights, but for Fetch, and a broker without an authorizer pays nothing for them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

from kafkacompat.handlers import Handler
from kafkacompat.handlers.context import RequestContext, Services
from kafkacompat.handlers.guards.access import Access, Guard
from kafkacompat.handlers.guards.table import FREE, TABLE
from kafkacompat.security.acls.authorizer import Authorizer
from kafkacompat.wire.headers import FETCH_KEY


class GuardedHandler(Handler):
    """A handler that answers only what the authorizer allows."""

    def __init__(self, handler: Handler, authorizer: Authorizer, guard: Guard) -> None:
        super().__init__(handler.api_key, handler.versions)
        self._handler = handler
        self._authorizer = authorizer
        self._guard = guard

    @cached_property
    def handle(self) -> Callable[..., Any]:
        """The function that answers a request."""
        inner, authorizer, guard, api_key = self._handler.handle, self._authorizer, self._guard, self.api_key

        def answer(request: Any, context: RequestContext, services: Services) -> Any:
            access = Access(authorizer, api_key, context, services)
            return guard(request, access, lambda rest: inner(rest, context, services))

        return answer


def guard_handlers(handlers: Mapping[int, Handler], authorizer: Authorizer) -> dict[int, Handler]:
    """Return the handlers with their guards; raises KeyError for an API that is not in the table."""
    return {
        key: handler if key == FETCH_KEY or key in FREE else GuardedHandler(handler, authorizer, TABLE[key].guard)
        for key, handler in handlers.items()
    }
