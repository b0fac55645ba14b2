"""Work on the response to a client that may disconnect meanwhile."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from twisted.internet.defer import Deferred

from kafkacompat.server.outgoing import release_regions

if TYPE_CHECKING:
    from twisted.python.failure import Failure


class ClientWork:
    """The work on one response.

    If its client disconnects, the work is cancelled. While ``must_complete`` is set it goes on instead, and its response is released.
    """

    def __init__(self, *, must_complete: bool) -> None:
        self.must_complete = must_complete
        self._work: Deferred[Any] | None = None
        self._response: Deferred[Any] = Deferred(self._cancel)

    @property
    def has_no_client(self) -> bool:
        """Whether the client has disconnected."""
        return self._response.called

    def begin(self, work: Coroutine[Deferred[Any], Any, Any]) -> Deferred[Any]:
        """Begin; return the response, which the connection cancels when its client disconnects."""
        self._work = Deferred.fromCoroutine(work)
        self._work.addCallbacks(self._deliver, self._fail)
        return self._response

    def _cancel(self, _: Deferred[Any]) -> None:
        if self._work is not None and not self.must_complete:
            self._work.cancel()

    def _deliver(self, response: Any) -> None:
        if not self.has_no_client:
            self._response.callback(response)
        elif response is not None:
            release_regions(response)

    def _fail(self, failure: Failure) -> None:
        if not self.has_no_client:
            self._response.errback(failure)
