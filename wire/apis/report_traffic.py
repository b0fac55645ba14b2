"""ReportTraffic (key 10000): a broker reports the traffic of instances to the controller. It is this project's own API between brokers."""

from __future__ import annotations

from kafkacompat.wire.schema import Request, Response, Struct, array, float64, int8, int16, int32, int64, string


class ReportedTraffic(Struct):
    """What one direction of an instance used on the broker since the last report, in bytes per second."""

    instance: str = string()
    direction: int = int8()  # 0: produced, 1: fetched
    used: float = float64()
    held_back: float = float64()  # above 0 if clients had to wait
    share: float = float64()  # what the broker may use at this moment


class ReportTrafficRequest(Request, api_key=10000, versions="0", flexible="0+"):
    """Report the use of all instances that used anything; the broker has no more than its floor of the others."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    traffic: list[ReportedTraffic] = array(ReportedTraffic)


class DividedTraffic(Struct):
    """What the broker may use of one direction of an instance from now on, in bytes per second."""

    instance: str = string()
    direction: int = int8()
    share: float = float64()


class ReportTrafficResponse(Response, api_key=10000, versions="0", flexible="0+"):
    """The broker's shares of the reported instances."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    shares: list[DividedTraffic] = array(DividedTraffic)
