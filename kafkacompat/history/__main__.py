"""The process of one client of a run."""

from __future__ import annotations

import sys

from kafkacompat.history.client import run_client

if __name__ == "__main__":
    sys.exit(run_client(sys.stdin.read()))
