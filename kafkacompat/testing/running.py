"""Brokers as tests use them: objects whose methods wait, callable from any thread."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from kafkacompat.testing.node import Node

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafkacompat.broker import Broker
    from kafkacompat.testing.reactor_thread import ReactorThread


class RunningBroker:
    """A broker that runs in this process until `stop`, or until the end of its ``with`` block.

    ``bootstrap_servers`` is its address.
    """

    def __init__(self, thread: ReactorThread, node: Node) -> None:
        self._thread = thread
        self._node = node
        self.call(node.start)
        self.bootstrap_servers: str = node.find_address()

    @property
    def broker(self) -> Broker:
        """The broker itself, to be used by functions that `call` runs, and nowhere else."""
        return self._node.broker

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run *function* in the thread of the brokers and return its result; a Deferred or a coroutine is waited for.

        Raises what the function raises, and BrokerError if the thread has ended.
        """
        return self._thread.call(function, *arguments)

    def stop(self) -> None:
        """Stop the broker and forget its data, unless they are in a folder. A second call does nothing."""
        self.call(self._node.end)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
