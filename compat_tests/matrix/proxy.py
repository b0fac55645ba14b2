"""A TCP proxy between clients and a broker that records the traffic.

The broker advertises the proxy's address, so that a client stays with it after its first question.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Protocol

from compat_tests.matrix.recording import Conversation, Recording

CHUNK_BYTES = 256 * 1024


class Proxy(Protocol):
    """What a programme needs of the proxies between its client and the brokers."""

    recording: Recording

    def hang_up(self) -> None: ...


class RecordingProxy:
    """Listens on ``port`` of 127.0.0.1 and joins each connection to one of its own to ``broker_port``; all on loopback.

    ``recording`` may be replaced at any time: connections made later write into the new one.
    """

    def __init__(self, port: int, broker_port: int, broker_host: str = "127.0.0.1") -> None:
        self.recording = Recording()
        self._broker_address = broker_host, broker_port
        self._listener = socket.create_server(("127.0.0.1", port), backlog=64)
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop listening and close all connections."""
        _hang_up(self._listener)
        self._listener.close()
        self.hang_up()

    def hang_up(self) -> None:
        """End every connection: nothing of an earlier client goes on."""
        with self._lock:
            for connection in self._open:
                _hang_up(connection)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._join, args=(client, self.recording), daemon=True).start()

    def _join(self, client: socket.socket, recording: Recording) -> None:
        try:
            broker = socket.create_connection(self._broker_address, timeout=10)
        except OSError as problem:
            recording.note(f"the broker cannot be reached: {problem}")
            client.close()
            return
        broker.settimeout(None)
        for connection in (client, broker):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open |= {client, broker}
        self._carry(client, broker, Conversation(recording))
        with self._lock:
            self._open -= {client, broker}
        client.close()
        broker.close()

    def _carry(self, client: socket.socket, broker: socket.socket, conversation: Conversation) -> None:
        back = threading.Thread(target=self._carry_back, args=(client, broker, conversation), daemon=True)
        back.start()
        with suppress(OSError):
            while data := client.recv(CHUNK_BYTES):
                conversation.sent(data)
                broker.sendall(data)
        _hang_up(broker)
        back.join()

    def _carry_back(self, client: socket.socket, broker: socket.socket, conversation: Conversation) -> None:
        by_broker = False
        with suppress(OSError):
            while data := broker.recv(CHUNK_BYTES):
                conversation.answered(data)
                client.sendall(data)
            by_broker = True
        if by_broker and not _is_gone(client):
            conversation.hung_up()
        _hang_up(client)


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the peer has closed its side: the next read is the end."""
    try:
        return connection.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
