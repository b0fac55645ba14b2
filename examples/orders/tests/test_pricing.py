"""What orders cost."""

from __future__ import annotations

import json

import pytest

from orders.pricing import OrderError, price_order


def test_the_total_is_added() -> None:
    priced = json.loads(price_order(b'{"customer": "ann", "items": {"tea": 2, "scone": 1}}'))
    assert priced == {"customer": "ann", "items": {"tea": 2, "scone": 1}, "total": 1120}


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        (b'{"items": {"coal": 1}}', "'coal' is missing in the order or has no price"),
        (b"{}", "'items' is missing in the order or has no price"),
        (b"[]", "the order is no JSON object with items"),
        (b"\xff", "the order is no JSON object with items"),
    ],
)
def test_an_order_without_a_price_is_rejected(order: bytes, reason: str) -> None:
    with pytest.raises(OrderError, match=f"^{reason}$"):
        price_order(order)
