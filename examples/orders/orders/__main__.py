"""``python -m orders localhost:9092``: run the service until Ctrl-C."""

from __future__ import annotations

import logging
import signal
import sys
import threading

from orders.service import PricingService


def main() -> None:
    """Run the service."""
    logging.basicConfig(level=logging.INFO)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with PricingService(sys.argv[1]) as service:
        service.run(stop)


if __name__ == "__main__":
    main()
