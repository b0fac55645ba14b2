"""/v1/test: the clock and the faults of a broker that was started for tests."""

from __future__ import annotations

import logging
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from twisted.web.resource import Resource

from kafkacompat.adjustable_reactor import AdjustableReactor, ClockError
from kafkacompat.faults import FaultError, Faults
from kafkacompat.faults.parsing import FIELDS
from kafkacompat.monitoring.administration.answers import Answer, HttpError
from kafkacompat.monitoring.administration.operations import Operation
from kafkacompat.monitoring.administration.pages import (
    answer_later,
    find_operation,
    make_document_pages,
    read_body,
    read_query,
)
from kafkacompat.monitoring.http import NoPage
from kafkacompat.monitoring.table import Family
from kafkacompat.timers import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric
    from twisted.web.server import Request

    from kafkacompat.monitoring.administration.access import HttpAccess

log = logging.getLogger(__name__)

CLOCK = "/v1/test/clock"
FAULTS = "/v1/test/faults"
FAULT = "/v1/test/faults/{id}"
MAX_BODY_BYTES = 64 * 1024
UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)")


class Controls(NamedTuple):
    """The parts of a broker that tests control; ``clock`` is None without --test-clock."""

    clock: AdjustableReactor | None
    faults: Faults


class ControlCall(NamedTuple):
    """One request: the id in its path, its parsed body and its query."""

    controls: Controls
    id: str
    body: Mapping[str, Any]
    query: Mapping[str, str]


Operate: TypeAlias = Callable[[ControlCall], Awaitable[Answer]]


def _find_clock(call: ControlCall) -> AdjustableReactor:
    if call.controls.clock is None:
        raise HttpError(404, "the clock of this broker is not for tests: start it with --test-clock")
    return call.controls.clock


async def _read_clock(call: ControlCall) -> Answer:
    clock = _find_clock(call)
    return Answer(200, {"now_ms": now_ms(clock), "advanced_ms": round(clock.advanced_s * 1000)})


async def _advance_clock(call: ControlCall) -> Answer:
    clock = _find_clock(call)
    try:
        await clock.advance(_read_duration(call.body))
    except ClockError as problem:
        raise HttpError(400, str(problem)) from None
    return await _read_clock(call)


def _read_duration(body: Mapping[str, Any]) -> float:
    """Return the seconds in a body; raises HttpError."""
    text, duration_ms = body.get("advance"), body.get("advance_ms")
    if (text is None) == (duration_ms is None):
        raise HttpError(400, "give the duration as advance, such as 25h, or as advance_ms")
    if text is not None:
        matched = _DURATION.fullmatch(text) if isinstance(text, str) else None
        if matched is None:
            raise HttpError(400, f"advance={text!r}: it takes a number and a unit of {', '.join(UNITS_S)}, such as 25h")
        return float(matched[1]) * UNITS_S[matched[2]]
    if isinstance(duration_ms, bool) or not isinstance(duration_ms, int | float):
        raise HttpError(400, f"advance_ms={duration_ms!r}: it takes a number of milliseconds")
    try:
        return duration_ms / 1000
    except OverflowError:
        raise HttpError(400, "advance_ms is not valid: it has too many digits") from None


async def _list_faults(call: ControlCall) -> Answer:
    faults = call.controls.faults
    return Answer(200, {"seed": faults.seed, "rules": faults.list()})


async def _add_fault(call: ControlCall) -> Answer:
    faults = call.controls.faults
    number = faults.add(**call.body)
    return Answer(201, next(rule for rule in faults.list() if rule["id"] == number))


async def _clear_faults(call: ControlCall) -> Answer:
    seed = call.query.get("seed")
    if seed is not None and not re.fullmatch(r"-?\d{1,18}", seed):
        raise HttpError(400, f"seed={seed}: it takes a whole number")
    call.controls.faults.clear(None if seed is None else int(seed))
    return await _list_faults(call)


async def _remove_fault(call: ControlCall) -> Answer:
    if not re.fullmatch(r"\d{1,9}", call.id):
        raise HttpError(404, f"there is no rule {call.id}")
    try:
        call.controls.faults.remove(int(call.id))
    except FaultError as problem:
        raise HttpError(404, str(problem)) from None
    return await _list_faults(call)


def _operation(operate: Operate, summary: str, *details: Any) -> Operation:
    untyped: Any = operate
    return Operation(untyped, summary, *details)


_DURATIONS = {
    "advance": {"type": "string", "description": "a number and a unit: ms, s, m, h or d"},
    "advance_ms": {"type": "number", "description": "milliseconds"},
}
_RULE = {name: {"description": kind.takes} for name, kind in FIELDS.items()}
_SEED = {"seed": {"type": "integer", "description": "the seed of random shares from now on"}}

OPERATIONS: dict[str, dict[str, Operation]] = {
    CLOCK: {
        "GET": _operation(_read_clock, "Show the time of the broker, and by how much it was advanced"),
        "POST": _operation(
            _advance_clock, "Advance the clock, and wait until the work that became due is done", _DURATIONS
        ),
    },
    FAULTS: {
        "GET": _operation(_list_faults, "List the rules of faults with their counts"),
        "POST": _operation(_add_fault, "Add a rule after the others", _RULE, {}, 201),
        "DELETE": _operation(_clear_faults, "Remove all rules", None, _SEED),
    },
    FAULT: {"DELETE": _operation(_remove_fault, "Remove one rule")},
}
"""By path and method."""


class ControlPage(Resource):
    """/v1/test and all below it. Where users can log in, requests need a login."""

    isLeaf = True  # noqa: N815 (Twisted's name)

    def __init__(self, controls: Controls, access: HttpAccess | None) -> None:
        super().__init__()
        self._controls = controls
        self._access = access

    def render(self, request: Request) -> Any:
        """Twisted: answer, once the broker has."""
        return answer_later(request, self._answer(request))

    async def _answer(self, request: Request) -> Answer:
        method = request.method.decode("ascii", "replace")
        parts = ["test", *(part.decode("utf-8", "replace") for part in request.postpath or ())]
        operation, name = find_operation(OPERATIONS, method, parts)
        if request.getHeader(b"origin") is not None:
            # Browsers send it with every request that changes something, also to a name that leads here by a trick.
            raise HttpError(403, "a page in a browser must not control this broker: use a client without Origin")
        if self._access is not None:
            await self._access.authenticate(request.getHeader(b"authorization"), request.getClientAddress().host)
        call: Any = ControlCall(self._controls, name, read_body(request, operation), read_query(request.args or {}))
        try:
            answer = await operation.operate(call)
        except FaultError as problem:
            raise HttpError(400, str(problem)) from None
        if method not in ("GET", "HEAD"):
            log.info("%s of /v1/%s over HTTP from %s", method, "/".join(parts), request.getClientAddress().host)
        return answer


class VersionOne(Resource):
    """/v1: the pages for tests, and *rest* for every other path."""

    def __init__(self, tests: ControlPage, rest: Resource) -> None:
        super().__init__()
        self._rest = rest
        self.putChild(b"test", tests)  # type: ignore[arg-type]  # zope's interfaces have no types

    def getChild(self, path: bytes, request: Any) -> Resource:
        """Twisted: return the page of a path that has none."""
        request.postpath.insert(0, request.prepath.pop())
        return self._rest

    def render(self, request: Request) -> Any:
        """Twisted: answer a request for /v1 itself."""
        return self._rest.render(request)


def make_test_pages(controls: Controls, access: HttpAccess | None, rest: Resource | None) -> dict[str, Resource]:
    """Return the pages of a broker for tests, by path; *rest* is the page of /v1 without them, if there is one."""
    page = VersionOne(ControlPage(controls, access), rest or NoPage())
    return {"v1": page, **make_document_pages(OPERATIONS, with_instances=rest is not None)}


def collect_tests(controls: Controls) -> Iterator[Metric]:
    """Yield the metrics of a broker for tests."""
    mode = Family("kafkacompat_test_mode")
    mode.add(1, feature="faults")
    if controls.clock is not None:
        mode.add(1, feature="clock")
    yield mode.metric
    applied = Family("kafkacompat_faults_applied")
    for number, counts in controls.faults.counts.items():
        applied.add(counts.applied, rule=str(number))
    yield applied.metric
