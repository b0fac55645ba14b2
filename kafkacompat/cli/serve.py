"""`kafkacompat serve`: from a properties file and overrides to a running process."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from pathlib import Path

from kafkacompat import __version__
from kafkacompat.cli.log_lines import ErrorFlood, LineFormatter
from kafkacompat.cli.process import run
from kafkacompat.config import BrokerConfig, ConfigError

EXIT_BAD_CONFIG = 2

log = logging.getLogger(__name__)


def serve(properties: Path | None, overrides: Mapping[str, str]) -> int:
    """Serve; return the exit code: 2, with nothing created, for a configuration that cannot be used."""
    log_lines = logging.StreamHandler(sys.stderr)
    log_lines.setFormatter(LineFormatter())
    log_lines.addFilter(ErrorFlood())
    logging.basicConfig(level=logging.INFO, handlers=[log_lines])
    try:
        # java.util.Properties reads files as Latin-1; other characters are escaped in them.
        text = properties.read_text(encoding="latin-1") if properties is not None else None
        config = BrokerConfig.load(text, overrides)
    except (ConfigError, OSError) as problem:
        print(f"kafkacompat: {problem}", file=sys.stderr)
        return EXIT_BAD_CONFIG
    _warn(config)
    _log_start()
    return run(config)


def _log_start() -> None:
    from kafkacompat.wire.walk_form import FORM

    log.log(
        logging.WARNING if FORM.is_stale else logging.INFO, "Starting kafkacompat %s, record walk %s", __version__, FORM
    )


def _warn(config: BrokerConfig) -> None:
    if config.unknown:
        log.warning("properties that are not known and have no effect: %s", ", ".join(config.unknown))
    if config.without_effect:
        log.warning("properties that are accepted but have no effect here: %s", ", ".join(config.without_effect))
