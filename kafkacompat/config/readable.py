"""A configuration as checks read it: the interface of `BrokerConfig` for the modules that it uses itself."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from kafkacompat.config.listeners import Listener
    from kafkacompat.config.properties import Property
    from kafkacompat.config.values import Value


class ReadableConfig(Protocol):
    """The properties of one broker by name; see `BrokerConfig` for each member."""

    given: dict[str, str]
    listeners: tuple[Listener, ...]

    @property
    def log_dirs(self) -> tuple[str, ...]: ...

    @property
    def cordoned_log_dirs(self) -> tuple[str, ...]: ...

    def value(self, name: str) -> Value: ...

    def row(self, name: str) -> Property | None: ...

    def int(self, name: str) -> builtins.int: ...

    def string(self, name: str) -> str: ...

    def list(self, name: str) -> builtins.list[str]: ...

    def optional_string(self, name: str) -> str | None: ...
