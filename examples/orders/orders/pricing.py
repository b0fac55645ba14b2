"""What an order costs. Nothing here knows Kafka."""

from __future__ import annotations

import json
from collections.abc import Mapping

PRICES = {"tea": 350, "scone": 420, "jam": 180}
"""Prices in cents, by article."""


class OrderError(ValueError):
    """An order that cannot be priced; one sentence."""


def price_order(order: bytes, prices: Mapping[str, int] = PRICES) -> bytes:
    """Return an order, a JSON object with ``items`` (the number of each article), with its ``total`` in cents.

    Raises OrderError.
    """
    try:
        content = json.loads(order)
        total = sum(prices[article] * number for article, number in content["items"].items())
    except KeyError as problem:
        raise OrderError(f"{problem.args[0]!r} is missing in the order or has no price") from None
    except (ValueError, AttributeError, TypeError):
        raise OrderError("the order is no JSON object with items") from None
    return json.dumps({**content, "total": total}).encode()
