"""The codecs of record batches, with bounded decompression.

A few bytes can claim to be gigabytes. Nothing here allocates memory by such a claim: output grows with the codec's output,
and a claim that the codec must allocate at once is checked first.

Only data that every Kafka client can read is accepted; otherwise the broker would return batches that its consumers cannot
read. So no bytes may follow the compressed data, an LZ4 frame has independent blocks, and Snappy data is either one raw
block (as librdkafka writes it) or framed (as Java does).

The compression libraries are imported when first needed.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum

from kafkacompat.wire.primitives import Buffer, MalformedError, read_uvarint

DEFAULT_MAX_BYTES = 100 * 1024 * 1024
# Blocks are read one by one, and an empty one has three bytes. This many bytes of allowed output permit one block.
_BYTES_A_BLOCK = 256
_ALWAYS_ALLOWED_BLOCKS = 16


class Codec(IntEnum):
    """The codec numbers in a batch's attributes, named as in ``compression.type``."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


class TooLargeError(MalformedError):
    """The uncompressed data is larger than the caller allows."""


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress *data*; *level* is the codec's own level, None its default."""
    return _COMPRESS[Codec(codec)](data, level)


def decompress(codec: int, data: Buffer, max_bytes: int = DEFAULT_MAX_BYTES) -> bytes:
    """Decompress all of *data*.

    Raises MalformedError if the data is damaged, has bytes after its end, or the codec is unknown, and TooLargeError if the
    result is larger than *max_bytes*.
    """
    unpack = _DECOMPRESS.get(codec)
    if unpack is None:
        raise MalformedError(f"compression codec {codec} is unknown; use 0 to {max(Codec)}")
    return unpack(data, max_bytes)


def _join_pieces(pieces: Iterator[bytes], max_bytes: int) -> bytes:
    """Join the pieces; raises TooLargeError as soon as they exceed *max_bytes*."""
    taken, size_bytes = [], 0
    for piece in pieces:
        size_bytes += len(piece)
        if size_bytes > max_bytes:
            raise _too_large(max_bytes)
        taken.append(piece)
    return b"".join(taken)


def _too_large(max_bytes: int) -> TooLargeError:
    return TooLargeError(f"compressed records unpack to more than {max_bytes} bytes")


def _max_blocks(max_bytes: int) -> int:
    return _ALWAYS_ALLOWED_BLOCKS + max_bytes // _BYTES_A_BLOCK


def _no_codec_compress(data: Buffer, level: int | None) -> bytes:
    return bytes(data)


def _no_codec_decompress(data: Buffer, max_bytes: int) -> bytes:
    if len(data) > max_bytes:
        raise _too_large(max_bytes)
    return bytes(data)


_GZIP_WINDOW = 31  # zlib's code for a gzip header and trailer around the largest window


def _gzip_compress(data: Buffer, level: int | None) -> bytes:
    packer = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW)
    return packer.compress(data) + packer.flush()


def _gzip_decompress(data: Buffer, max_bytes: int) -> bytes:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    try:
        out = unpacker.decompress(data, max_bytes + 1)
    except zlib.error as problem:
        raise MalformedError(f"not gzip data: {problem}") from None
    if len(out) > max_bytes:
        raise _too_large(max_bytes)
    if not unpacker.eof or unpacker.unused_data:
        raise MalformedError("gzip data is cut off" if not unpacker.eof else "bytes follow the gzip data")
    return out


# Java's framing ("xerial", after its author): this header, then blocks, each after its int32 length.
_SNAPPY_MAGIC = b"\x82SNAPPY\0"
_SNAPPY_HEADER = _SNAPPY_MAGIC + b"\0\0\0\1\0\0\0\1"  # version, oldest version that can read it
_SNAPPY_BLOCK_BYTES = 32 * 1024
_SNAPPY_MAX_RATIO = 32  # the densest element turns 3 bytes into 64


def _snappy_compress(data: Buffer, level: int | None) -> bytes:
    import snappy

    out = bytearray(_SNAPPY_HEADER)
    for start in range(0, len(data), _SNAPPY_BLOCK_BYTES):
        block = snappy.compress(bytes(data[start : start + _SNAPPY_BLOCK_BYTES]))
        out += len(block).to_bytes(4, "big")
        out += block
    return bytes(out)


def _snappy_decompress(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    if view[: len(_SNAPPY_MAGIC)] != _SNAPPY_MAGIC:
        return _snappy_block(view, max_bytes, max_bytes)
    if len(view) < len(_SNAPPY_HEADER):
        raise MalformedError("the header of framed snappy data is cut off")
    return _join_pieces(_snappy_blocks(view[len(_SNAPPY_HEADER) :], max_bytes), max_bytes)


def _snappy_blocks(view: memoryview, max_bytes: int) -> Iterator[bytes]:
    left, left_blocks = max_bytes, _max_blocks(max_bytes)
    while len(view):
        end = 4 + int.from_bytes(view[:4], "big")
        if end > len(view):
            raise MalformedError(f"a snappy block ends at byte {end} of {len(view)}")
        piece = _snappy_block(view[4:end], left, max_bytes)
        left -= len(piece)
        left_blocks -= 1
        if left_blocks < 0:
            raise _too_large(max_bytes)
        view = view[end:]
        yield piece


def _snappy_block(block: memoryview, left_bytes: int, max_bytes: int) -> bytes:
    """Decompress one block to at most *left_bytes*; the library would trust the claimed size (CVE-2023-34455)."""
    import snappy

    claimed, _ = read_uvarint(block, 0)
    if claimed > left_bytes:
        raise _too_large(max_bytes)
    if claimed > _SNAPPY_MAX_RATIO * len(block):
        raise MalformedError(f"a snappy block of {len(block)} bytes claims to hold {claimed}")
    try:
        out: bytes = snappy.decompress(block)
    except snappy.UncompressError:
        raise MalformedError(f"a snappy block of {len(block)} bytes is damaged") from None
    return out


_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS = 0x20
_PIECE_BYTES = 1024 * 1024


def _lz4_compress(data: Buffer, level: int | None) -> bytes:
    import lz4.frame

    # Java writes blocks of 64 KiB by default; a reader allocates one block of the declared size.
    out: bytes = lz4.frame.compress(
        data,
        compression_level=0 if level is None else level,
        block_size=lz4.frame.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return out


def _lz4_decompress(data: Buffer, max_bytes: int) -> bytes:
    view = memoryview(data)
    if view[:4] != _LZ4_MAGIC or len(view) < 5:
        raise MalformedError("not an LZ4 frame")
    if not view[4] & _LZ4_INDEPENDENT_BLOCKS:
        raise MalformedError("an LZ4 frame has linked blocks; Kafka clients read independent blocks only")
    return _join_pieces(_lz4_pieces(view, min(_PIECE_BYTES, max_bytes + 1)), max_bytes)


def _lz4_pieces(view: memoryview, piece_bytes: int) -> Iterator[bytes]:
    import lz4.frame

    context, ended = lz4.frame.create_decompression_context(), False
    while not ended:
        try:
            piece, consumed, ended = lz4.frame.decompress_chunk(context, view, max_length=piece_bytes)
        except RuntimeError as problem:
            raise MalformedError(f"an LZ4 frame is damaged: {problem}") from None
        view = view[consumed:]
        if not (piece or consumed or ended):
            raise MalformedError("an LZ4 frame is cut off")
        yield piece
    if len(view):
        raise MalformedError(f"{len(view)} bytes follow an LZ4 frame")


_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_MAX_FRAME_HEADER_BYTES = 18
_ZSTD_DESCRIPTOR_POSITION, _ZSTD_HAS_CHECKSUM = 4, 0x04
_ZSTD_RUN_BLOCK, _ZSTD_RESERVED_BLOCK = 1, 3


def _zstd_compress(data: Buffer, level: int | None) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor(level=3 if level is None else level).compress(data)


def _zstd_decompress(data: Buffer, max_bytes: int) -> bytes:
    import zstandard

    view = memoryview(data)
    try:
        _check_zstd_frames(view, max_bytes)
        stream = zstandard.ZstdDecompressor().stream_reader(view, read_across_frames=True)
        piece_bytes = min(_PIECE_BYTES, max_bytes + 1)
        return _join_pieces(iter(lambda: stream.read(piece_bytes), b""), max_bytes)
    except zstandard.ZstdError as problem:
        raise MalformedError(f"zstd data is damaged: {problem}") from None


def _check_zstd_frames(view: memoryview, max_bytes: int) -> None:
    """Check that whole frames fill *view*: the library reads a cut one without complaint (RFC 8878, 3.1.1)."""
    left_blocks = _max_blocks(max_bytes)
    while True:
        size_bytes, blocks = _zstd_frame(view, left_blocks)
        view = view[size_bytes:]
        left_blocks -= blocks
        if left_blocks < 0:
            raise _too_large(max_bytes)
        if not len(view):
            return


def _zstd_frame(view: memoryview, max_blocks: int) -> tuple[int, int]:
    """The bytes and blocks of the first frame; it is not followed beyond *max_blocks*."""
    import zstandard

    if view[:4] != _ZSTD_MAGIC:
        raise MalformedError("not a zstd frame")
    position, last, blocks = zstandard.frame_header_size(view[:_ZSTD_MAX_FRAME_HEADER_BYTES]), 0, 0
    while not last and blocks <= max_blocks:
        blocks += 1
        header = int.from_bytes(view[position : position + 3], "little")
        last, kind, size_bytes = header & 1, header >> 1 & 3, header >> 3
        position += 3 + (1 if kind == _ZSTD_RUN_BLOCK else size_bytes)
        if position > len(view) or kind == _ZSTD_RESERVED_BLOCK:
            raise MalformedError(f"a zstd block ends at byte {position} of {len(view)}")
    if view[_ZSTD_DESCRIPTOR_POSITION] & _ZSTD_HAS_CHECKSUM:
        position += 4
    if position > len(view):
        raise MalformedError("the checksum of a zstd frame is cut off")
    return position, blocks


_COMPRESS: dict[Codec, Callable[[Buffer, int | None], bytes]] = {
    Codec.NONE: _no_codec_compress,
    Codec.GZIP: _gzip_compress,
    Codec.SNAPPY: _snappy_compress,
    Codec.LZ4: _lz4_compress,
    Codec.ZSTD: _zstd_compress,
}
_DECOMPRESS: dict[int, Callable[[Buffer, int], bytes]] = {
    Codec.NONE: _no_codec_decompress,
    Codec.GZIP: _gzip_decompress,
    Codec.SNAPPY: _snappy_decompress,
    Codec.LZ4: _lz4_decompress,
    Codec.ZSTD: _zstd_decompress,
}
