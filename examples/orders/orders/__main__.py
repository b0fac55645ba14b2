"""``python -m orders localhost:9092``: run the service until Ctrl-C."""

from __future__ import annotations

import argparse
import logging
import signal
import threading

from orders.service import PricingService


def main() -> None:
    """Run the service."""
    parser = argparse.ArgumentParser(prog="orders")
    parser.add_argument("bootstrap_servers", help="addresses of brokers, such as localhost:9092")
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with PricingService(options.bootstrap_servers) as service:
        service.run(stop)


if __name__ == "__main__":
    main()
