"""The process of one client of a run."""

from __future__ import annotations

import sys

from kafkacompat.history.client import main

if __name__ == "__main__":
    sys.exit(main(sys.stdin.read()))
