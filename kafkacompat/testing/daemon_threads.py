"""A pool of threads that do not keep the process from ending."""

from __future__ import annotations

from functools import partial
from threading import Thread

from twisted.python.threadpool import ThreadPool


class DaemonThreadPool(ThreadPool):
    """A pool of Twisted with daemon threads."""

    threadFactory = staticmethod(partial(Thread, daemon=True))  # type: ignore[assignment]  # noqa: N815 (Twisted's name)
