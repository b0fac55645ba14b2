"""Codecs: data of clients is read, and data with a false size takes no memory."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import lz4.frame
import pytest
import snappy
import zstandard

from kafkacompat.wire.compression import Codec, TooLargeError, compress, decompress
from kafkacompat.wire.primitives import MalformedError, encode_uvarint
from tests.wire.random_messages import seeded_random

MEGABYTE = 1024 * 1024
TEXT = b"records repeat themselves, " * 5000
each_codec = pytest.mark.parametrize("codec", Codec)
each_real_codec = pytest.mark.parametrize("codec", [codec for codec in Codec if codec])


@each_codec
@pytest.mark.parametrize("data", [b"", b"x", TEXT, bytes(range(256)) * 300], ids=["empty", "one", "text", "bytes"])
def test_decompress_inverts_compress(codec: Codec, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data
    assert decompress(codec, memoryview(compress(codec, memoryview(data)))) == data


@pytest.mark.parametrize(("codec", "level"), [(Codec.GZIP, 9), (Codec.LZ4, 9), (Codec.ZSTD, 19)])
def test_a_higher_level_packs_more(codec: Codec, level: int) -> None:
    rng = seeded_random()
    data = " ".join(rng.choice(("alpha", "beta", "gamma", "delta", "epsilon")) for _ in range(20000)).encode()
    assert len(compress(codec, data, level)) < len(compress(codec, data, 1))
    assert decompress(codec, compress(codec, data, level)) == data


@each_codec
def test_the_limit_is_exact(codec: Codec) -> None:
    packed = compress(codec, TEXT)
    assert decompress(codec, packed, len(TEXT)) == TEXT
    with pytest.raises(TooLargeError, match=f"more than {len(TEXT) - 1} bytes"):
        decompress(codec, packed, len(TEXT) - 1)


@each_real_codec
def test_cut_off_data_is_refused(codec: Codec) -> None:
    packed = compress(codec, TEXT[:200])
    whole_blocks = {0, 16} if codec is Codec.SNAPPY else set()
    for end in set(range(len(packed))) - whole_blocks:
        with pytest.raises(MalformedError):
            decompress(codec, packed[:end])


@each_real_codec
def test_bytes_after_the_data_are_refused(codec: Codec) -> None:
    with pytest.raises(MalformedError):
        decompress(codec, compress(codec, TEXT) + b"garbage")


@each_real_codec
def test_damaged_data_raises_nothing_but_malformed(codec: Codec) -> None:
    rng = seeded_random()
    packed = compress(codec, TEXT[:300])
    for _ in range(500):
        data = bytearray(packed)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            assert len(decompress(codec, data, MEGABYTE)) <= MEGABYTE
        except MalformedError:
            continue


@pytest.mark.parametrize("codec", [5, 6, 7, -1])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    with pytest.raises(MalformedError, match=f"codec {codec} is unknown; use 0 to 4"):
        decompress(codec, b"")


@contextmanager
def memory_below(limit_bytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < limit_bytes, f"{peak} bytes were taken"


def _compress_zeros(codec: Codec, size_bytes: int) -> bytes:
    return compress(codec, bytes(size_bytes))


@each_real_codec
def test_a_bomb_takes_little_more_memory_than_allowed(codec: Codec) -> None:
    bomb = _compress_zeros(codec, 64 * MEGABYTE)
    with memory_below(4 * MEGABYTE), pytest.raises(TooLargeError):
        decompress(codec, bomb, MEGABYTE)


@pytest.mark.parametrize("claimed", [2**32 - 1, 100 * MEGABYTE, 1000])
@pytest.mark.parametrize("framed", [False, True])
def test_a_snappy_block_is_not_believed(claimed: int, framed: bool) -> None:
    block = encode_uvarint(claimed) + b"\x00abc"
    header = compress(Codec.SNAPPY, b"") + len(block).to_bytes(4, "big")
    with memory_below(MEGABYTE), pytest.raises(MalformedError):
        decompress(Codec.SNAPPY, header + block if framed else block, 200 * MEGABYTE)


def test_a_snappy_frame_is_not_believed_about_the_length_of_a_block() -> None:
    with memory_below(MEGABYTE), pytest.raises(MalformedError, match="ends at byte"):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, b"") + b"\xff\xff\xff\xff\x00", 200 * MEGABYTE)


def test_snappy_blocks_count_together() -> None:
    with pytest.raises(TooLargeError):
        decompress(Codec.SNAPPY, compress(Codec.SNAPPY, bytes(100_000)), 99_999)


def test_raw_snappy_is_read_as_librdkafka_writes_it() -> None:
    assert decompress(Codec.SNAPPY, snappy.compress(TEXT)) == TEXT


def test_framed_snappy_has_the_header_that_java_reads() -> None:
    packed = compress(Codec.SNAPPY, b"abc")
    block = snappy.compress(b"abc")
    assert packed == bytes.fromhex("82534e4150505900" + "00000001" * 2) + len(block).to_bytes(4, "big") + block


def test_lz4_frames_have_independent_blocks() -> None:
    assert lz4.frame.get_frame_info(compress(Codec.LZ4, TEXT))["block_linked"] is False
    with pytest.raises(MalformedError, match="linked blocks"):
        decompress(Codec.LZ4, lz4.frame.compress(TEXT, block_linked=True))


def test_an_lz4_frame_may_have_checksums_and_a_size() -> None:
    packed = lz4.frame.compress(
        TEXT, block_linked=False, content_checksum=True, block_checksum=True, store_size=True, block_size=7
    )
    assert decompress(Codec.LZ4, packed) == TEXT


def _compress_streamed(data: bytes) -> bytes:
    """Without the size in the frame, as Java and librdkafka write it."""
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("pack", [_compress_streamed, zstandard.ZstdCompressor(level=19).compress])
@pytest.mark.parametrize("frames", [1, 3])
def test_zstd_frames_follow_each_other(pack: Callable[[bytes], bytes], frames: int) -> None:
    packed = pack(TEXT) * frames
    assert decompress(Codec.ZSTD, packed) == TEXT * frames
    with pytest.raises(MalformedError):
        decompress(Codec.ZSTD, packed[:-1])


def test_a_zstd_frame_without_its_checksum_is_refused() -> None:
    with pytest.raises(MalformedError, match="checksum"):
        decompress(Codec.ZSTD, _compress_streamed(TEXT)[:-4])


def test_gzip_of_another_writer_is_read() -> None:
    assert decompress(Codec.GZIP, gzip.compress(TEXT)) == TEXT
    with pytest.raises(MalformedError, match="not gzip"):
        decompress(Codec.GZIP, zlib.compress(TEXT))


def _empty_blocks(count: int) -> dict[str, tuple[Codec, bytes]]:
    packer = zstandard.ZstdCompressor().compressobj()
    frame = packer.compress(b"") + packer.flush()
    start = frame[: zstandard.frame_header_size(frame)]
    one_frame = start + bytes(3) * (count - 1) + b"\1\0\0"
    return {
        "zstd blocks": (Codec.ZSTD, one_frame),
        "zstd frames": (Codec.ZSTD, (start + b"\1\0\0") * count),
        "snappy blocks": (Codec.SNAPPY, compress(Codec.SNAPPY, b"") + (b"\0\0\0\1" + snappy.compress(b"")) * count),
    }


@pytest.mark.parametrize("kind", _empty_blocks(1).keys())
def test_many_empty_blocks_are_not_followed_to_their_end(kind: str) -> None:
    assert decompress(*_empty_blocks(10)[kind], 0) == b""
    codec, many = _empty_blocks(10_000)[kind]
    with pytest.raises(TooLargeError):
        decompress(codec, many, 10_000)
    assert decompress(codec, many) == b""
