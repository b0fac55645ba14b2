"""`kafkacompat log dump`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import click

from kafkacompat.cli.columns import escape_control_characters, write_columns, write_json
from kafkacompat.cli.decoders import cluster_metadata_decoder, offsets_decoder, transaction_log_decoder
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.files.os_errors import describe_error
from kafkacompat.storage.inspection.dump import dump_file as dump_file
from kafkacompat.storage.inspection.dump import list_known_files
from kafkacompat.storage.inspection.rows import Decoder, DumpOptions, decode_plain_text

EXIT_UNREADABLE = 2

_DECODERS: dict[str, Decoder] = {
    "offsets_decoder": offsets_decoder,
    "transaction_log_decoder": transaction_log_decoder,
    "cluster_metadata_decoder": cluster_metadata_decoder,
    "print_data_log": decode_plain_text,
}


def dump_paths(paths: Sequence[str], *, as_json: bool, max_bytes: int, deep_iteration: bool, **flags: bool) -> int:
    """Dump files and directories; returns the exit code, which is 2 when one cannot be read."""
    decoder = next((decoder for name, decoder in _DECODERS.items() if flags[name]), None)
    remaining = {name: value for name, value in flags.items() if name not in _DECODERS}
    options = DumpOptions(deep_iteration or decoder is not None, decoder, max_bytes=max_bytes, **remaining)
    files = OsFiles(read_only=True)
    return max(_dump_path(files, path, options, as_json) for path in paths)


def _dump_path(files: OsFiles, path: str, options: DumpOptions, as_json: bool) -> int:
    try:
        for file in list_known_files(files, path):
            rows = dump_file(files, file, options)
            if rows is None:
                _print_warning("", f"{file} is not a file of a known kind")
            elif as_json:
                write_json(file, rows, click.echo)
            else:
                click.echo(f"Dumping {escape_control_characters(file)}")
                write_columns(rows, click.echo, partial(_print_warning, f"{file}: "))
    except BrokenPipeError:
        raise  # the reader of the output has closed it; click ends quietly
    except OSError as error:
        _print_warning("kafkacompat: ", describe_error(error))
        return EXIT_UNREADABLE
    return 0


def _print_warning(prefix: str, text: str) -> None:
    click.echo(escape_control_characters(prefix + text), err=True)
