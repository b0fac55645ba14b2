"""`python -m kafkacompat` and the `kafkacompat` command."""

from __future__ import annotations

from kafkacompat.cli import main

if __name__ == "__main__":
    main()
