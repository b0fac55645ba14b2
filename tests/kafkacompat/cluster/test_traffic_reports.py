"""A broker's reports to a controller that answers, is gone, or is one of Kafka."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.task import Clock

from kafkacompat.client.errors import ConnectionLostError, RequestNotSentError, UnsupportedRequestError
from kafkacompat.cluster.controller_link import NoControllerError
from kafkacompat.cluster.traffic_reports import TrafficReports
from kafkacompat.tenancy.traffic.control import TrafficControl
from kafkacompat.tenancy.traffic.loans import ARTICLE, SHARED, InstanceLimits
from kafkacompat.tenancy.traffic.metering import Flow
from kafkacompat.tenancy.traffic.static import HOLD_MS
from kafkacompat.wire.apis.report_traffic import DividedTraffic, ReportTrafficRequest, ReportTrafficResponse

LIMIT, INTERVAL_MS = 100_000, 1000
FLOOR = LIMIT * 0.02 / 2


class NoPartitions:
    """Counts nothing: shares are even."""

    def count(self) -> Any:
        return iter(())


class World:
    """A broker of two, with one instance, and a controller that answers what ``answer`` says."""

    def __init__(self, algorithm: str = SHARED) -> None:
        self.clock = Clock()
        self.clock.advance(1000)
        self.control = TrafficControl(1, INTERVAL_MS, self.now_ms(), lambda name: {})
        self.control.set_brokers([1, 2], self.now_ms())
        self.control.configure({"shop": InstanceLimits(LIMIT, -1, algorithm)}, self.now_ms())
        self.requests: list[ReportTrafficRequest] = []
        self.answer: Callable[[], Deferred[Any]] = self.give(50_000.0)
        partitions: Any = NoPartitions()
        self.reports = TrafficReports(1, lambda: 7, self, self.control, partitions, self.clock, INTERVAL_MS)  # type: ignore[arg-type]

    def now_ms(self) -> int:
        return int(self.clock.seconds() * 1000)

    def send(self, request: ReportTrafficRequest, timeout_s: float) -> Deferred[Any]:
        self.requests.append(request)
        return self.answer()

    def give(self, share: float) -> Callable[[], Deferred[Any]]:
        shares = [DividedTraffic(instance="shop", direction=0, share=share)]
        return lambda: succeed(ReportTrafficResponse(shares=shares))

    @property
    def flow(self) -> Flow:
        return self.control.by_name["shop"].produced

    @property
    def share(self) -> float:
        assert self.flow.bucket is not None
        return self.flow.bucket.share

    def advance(self, seconds: float) -> None:
        for _ in range(round(seconds * 20)):
            self.clock.advance(0.05)


def test_an_idle_instance_is_not_in_the_reports() -> None:
    world = World()
    world.answer = lambda: succeed(ReportTrafficResponse())
    world.reports.start()
    world.advance(2.9)
    assert [(request.broker_id, request.broker_epoch, request.traffic) for request in world.requests] == [
        (1, 7, [])
    ] * 3
    assert world.share == FLOOR


def test_by_the_article_every_instance_is_reported() -> None:
    world = World(ARTICLE)
    world.reports.start()
    world.advance(0.1)
    assert [entry.instance for entry in world.requests[0].traffic] == ["shop"]


def test_a_client_that_begins_to_wait_hurries_the_next_report() -> None:
    world = World()
    world.answer = lambda: succeed(ReportTrafficResponse())
    world.reports.start()
    world.advance(0.5)
    assert len(world.requests) == 1
    world.flow.charge(5000, world.now_ms())
    world.answer = world.give(80_000.0)
    world.advance(0.15)
    assert len(world.requests) == 2
    (entry,) = world.requests[1].traffic
    assert entry.instance == "shop" and entry.direction == 0 and entry.held_back > 1 and entry.share == FLOOR
    assert world.share == 80_000


def test_what_is_not_used_is_given_back_with_the_report() -> None:
    world = World()
    world.reports.start()
    world.advance(0.1)
    world.flow.charge(1000, world.now_ms())
    world.advance(1)
    assert world.requests[-1].traffic[0].share < 10_000 < world.share


@pytest.mark.parametrize("problem", [NoControllerError("gone"), RequestNotSentError("refused")])
def test_a_report_that_nobody_got_gives_nothing_back(problem: Exception, caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.reports.start()
    world.advance(0.1)
    world.flow.charge(1000, world.now_ms())
    world.answer = lambda: fail(problem)
    world.advance(5)
    assert world.share == 50_000
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    world.advance(HOLD_MS / 1000 + 15)
    assert world.share == pytest.approx(LIMIT / 2)


def test_a_report_without_an_answer_stays_given_back() -> None:
    world = World()
    world.reports.start()
    world.advance(0.1)
    world.flow.charge(1000, world.now_ms())
    world.answer = lambda: fail(ConnectionLostError("closed"))
    world.advance(1)
    kept = world.share
    assert FLOOR <= kept < 10_000
    world.advance(5)
    assert world.share == kept


def test_a_controller_of_kafka_leaves_the_static_shares_with_one_line(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.answer = lambda: fail(UnsupportedRequestError("no common version"))
    world.reports.start()
    world.advance(5)
    assert world.share == pytest.approx(LIMIT / 2)
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1
    world.answer = world.give(70_000.0)
    world.advance(2)
    assert world.share == 70_000


def test_an_error_of_the_controller_is_as_no_answer() -> None:
    world = World()
    world.answer = lambda: succeed(ReportTrafficResponse(error_code=41))
    world.reports.start()
    world.advance(3)
    assert world.share == FLOOR and len(world.requests) == 3


def test_reports_end_with_the_last_limit_and_when_the_broker_stops() -> None:
    world = World()
    world.answer = lambda: succeed(ReportTrafficResponse())
    world.reports.start()
    world.advance(1.5)
    world.control.configure({"shop": InstanceLimits(-1, -1)}, world.now_ms())
    world.advance(5)
    assert len(world.requests) == 3
    assert not world.clock.getDelayedCalls()
    world.control.configure({"shop": InstanceLimits(LIMIT, -1)}, world.now_ms())
    world.reports.start()
    world.advance(1.5)
    assert len(world.requests) == 5
    world.reports.stop()
    world.reports.start()
    world.advance(5)
    assert len(world.requests) == 5 and not world.clock.getDelayedCalls()
