"""Raw fetch beside a loop that does nothing but sendfile over the same log files: the bound that the kernel sets."""

from __future__ import annotations

import multiprocessing
import os
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from itertools import zip_longest
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import TypeAlias

from bench.load import Load, fetch, produce
from bench.row import Options, Row, Samples
from bench.rows.fetch import PASSES
from bench.rows.produce import PARTITIONS, REQUESTS
from bench.topics import a_topic
from compat_tests.brokers import Broker

REGION_BYTES = 1 << 20
RESPONSE_BYTES = PARTITIONS * REGION_BYTES
SIZE = struct.Struct(">i")

Region: TypeAlias = "tuple[int, int, int]"
"""File descriptor, position, length."""

_CONTEXT = multiprocessing.get_context("spawn")


def measure(broker: Broker, options: Options) -> Samples:
    """Read 800 MB over one connection, by Fetch and by the bare loop in turn, five times each; medians."""
    load = Load.of()
    with a_topic(broker, PARTITIONS) as topic:
        records = produce(broker.port, topic, load, partitions=PARTITIONS, requests=options.count(REQUESTS))
        paths = sorted(broker.data_folder.glob(f"{topic}-*/*.log"))
        fetched, bare = [], []
        for _ in range(PASSES):
            begin = time.monotonic()
            size_bytes = fetch(broker.port, topic, load, partitions=PARTITIONS, until_records=records)
            fetched.append(size_bytes / (time.monotonic() - begin) / 1e6)
            bare.append(bare_rate(paths) / 1e6)
    return {
        "fetch MB/s": median(fetched),
        "bare sendfile MB/s": median(bare),
        "share of bare": median(fetched) / median(bare),
    }


def bare_rate(paths: Sequence[Path]) -> float:
    """Return the bytes a second that a process sends from files with sendfile, one response for each request."""
    receiving, sending = _CONTEXT.Pipe(duplex=False)
    server = _CONTEXT.Process(target=serve_files, args=(paths, sending), daemon=True)
    server.start()
    try:
        with closing(socket.create_connection(("127.0.0.1", receiving.recv()))) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            begin = time.monotonic()
            received = sum(request_responses(connection))
            return received / (time.monotonic() - begin)
    finally:
        server.terminate()
        server.join()


def request_responses(connection: socket.socket) -> Iterator[int]:
    """Request one response after the other until the server closes the connection; yield their sizes in bytes."""
    view = memoryview(bytearray(RESPONSE_BYTES))
    while True:
        connection.sendall(b"?")
        if connection.recv_into(view, SIZE.size, socket.MSG_WAITALL) < SIZE.size:
            return
        (size,) = SIZE.unpack_from(view)
        received = 0
        while received < size:
            received += connection.recv_into(view[received:size], size - received, socket.MSG_WAITALL)
        yield size


def serve_files(paths: Sequence[Path], port: Connection) -> None:
    """Answer one connection's requests with the files' contents (a process of its own)."""
    with ExitStack() as stack:
        files = [stack.enter_context(path.open("rb")) for path in paths]
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        port.send(listener.getsockname()[1])
        connection = stack.enter_context(listener.accept()[0])
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sizes = {file.fileno(): os.fstat(file.fileno()).st_size for file in files}
        for regions in responses_of(sizes):
            connection.recv(1)
            connection.sendall(SIZE.pack(sum(length for _, _, length in regions)))
            for region in regions:
                send_region(connection, region)
        connection.recv(1)


def responses_of(sizes: dict[int, int]) -> Iterator[list[Region]]:
    """Yield what each response holds: the next mebibyte of every file."""
    by_file = [
        [(file, position, min(REGION_BYTES, size - position)) for position in range(0, size, REGION_BYTES)]
        for file, size in sizes.items()
    ]
    for regions in zip_longest(*by_file):
        yield [region for region in regions if region is not None]


def send_region(connection: socket.socket, region: Region) -> None:
    """Let the kernel send a part of a file."""
    file, position, length = region
    end = position + length
    while position < end:
        position += os.sendfile(connection.fileno(), file, position, end - position)


ROWS = [
    Row(
        "sendfile",
        "Raw fetch beside a bare sendfile loop",
        "The load of the fetch row, in turn with a process that knows no protocol and sends the same log files: after each "
        "request of one byte, one mebibyte of each of the six files by `sendfile`, to a client that discards it. A run's figures "
        "are the medians of five passes of each.",
        measure,
        [],
    )
]
