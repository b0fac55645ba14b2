"""`kafkacompat log`: what it prints and how it ends."""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kafkacompat.cli import main
from kafkacompat.cli.columns import write_columns
from kafkacompat.groups.committed_offset import CommittedOffset
from kafkacompat.groups.offset_records import offset_record, offset_tombstone
from kafkacompat.storage.files.operating_system import OsFiles
from kafkacompat.storage.inspection.rows import DumpRow
from kafkacompat.storage.log.log import Log
from kafkacompat.wire.metadata_records import TopicRecord, write_metadata_record
from kafkacompat.wire.record_batch import NewRecord, build_batch
from tests.storage.inspection.support import write_directory
from tests.storage.support import NOW_MS, Store

END = 48


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(main, ["log", *arguments], input=stdin)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_directory(Store(OsFiles(), str(tmp_path)))
    return tmp_path / "data"


def list_logs(data: Path) -> list[Path]:
    return sorted(data.glob("t-0/*.log"))


def flip_byte(path: Path, position: int) -> None:
    contents = bytearray(path.read_bytes())
    contents[position] ^= 1
    path.write_bytes(contents)


def test_dump_writes_a_table_for_each_file(data: Path) -> None:
    result = run("dump", str(list_logs(data)[0]))
    title, heads, first, *_ = result.output.splitlines()
    assert title == f"Dumping {list_logs(data)[0]}"
    assert heads.split()[:3] == ["baseOffset", "lastOffset", "count"]
    assert first.split()[:5] == ["0", "1", "2", "0", "1"]
    assert result.exit_code == 0


def test_dump_takes_directories_and_kafkas_way_to_name_files(data: Path) -> None:
    everything = run("dump", str(data))
    for name in ("meta.properties", "recovery-point-offset-checkpoint", list_logs(data)[-1].name, "partition.metadata"):
        assert name in everything.output
    named = run("dump", "--files", f"{list_logs(data)[0]},{data / 'meta.properties'}")
    assert named.output.count("Dumping ") == 2


def test_dump_as_json_is_one_object_a_line(data: Path) -> None:
    rows = [
        json.loads(line)
        for line in run("dump", "--json", "--print-data-log", str(list_logs(data)[0])).stdout.splitlines()
    ]
    assert {row["kind"] for row in rows} == {"batch", "record"}
    assert {row["file"] for row in rows} == {str(list_logs(data)[0])}
    assert [row["key"] for row in rows if row["kind"] == "record"][:2] == ["k", "k"]


def test_dump_without_paths_or_of_a_missing_file_exits_with_2(tmp_path: Path) -> None:
    assert run("dump").exit_code == 2
    missing = run("dump", str(tmp_path / "00000000000000000000.log"))
    assert missing.exit_code == 2 and "there is no such file or folder" in missing.output
    (tmp_path / "notes").touch()
    assert "not a file of a known kind" in run("dump", str(tmp_path / "notes")).output


def test_control_characters_of_clients_do_not_reach_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(build_batch([(NOW_MS, b"\x1b[2J", b"a\nb", [])]))
    output = run("dump", "--print-data-log", str(path)).output
    assert "\x1b" not in output and "\\x1b[2J" in output and "a\\nb" in output


def test_decoders(tmp_path: Path) -> None:
    committed = CommittedOffset(17, 3, "m", NOW_MS, -1, bytes(16))
    key, value = offset_record("g", "t", 2, committed)
    path = tmp_path / f"{0:020d}.log"
    records: list[NewRecord] = [
        (NOW_MS, key, value, []),
        (NOW_MS, offset_tombstone("g", "t", 2)[0], None, []),
        (NOW_MS, b"\0\x63", b"", []),
    ]
    path.write_bytes(build_batch(records))
    lines = run("dump", "--json", "--offsets-decoder", "--skip-record-metadata", str(path)).stdout.splitlines()
    rows = [(row["key"], row["payload"]) for row in map(json.loads, lines) if row["kind"] == "record"]
    about = '{"type":"1","data":{"group":"g","topic":"t","partition":2}}'
    said = '{"version":"3","data":{"offset":17,"leaderEpoch":3,"metadata":"m","commitTimestamp":1700000000000}}'
    assert rows[:2] == [(about, said), (about, "<DELETE>")]
    assert rows[2] == ("Unknown record type 99 at offset 2, skipping.", None)
    path.write_bytes(
        build_batch([(NOW_MS, None, write_metadata_record(TopicRecord(name="x", topic_id=bytes(16))), [])])
    )
    assert '"type":"TOPIC_RECORD","version":0' in run("dump", "--cluster-metadata-decoder", str(path)).output


def test_the_decoder_of_the_transaction_log(tmp_path: Path) -> None:
    key = struct.pack(">hh2s", 0, 2, b"id")
    partitions = struct.pack(">ih1sii", 1, 1, b"t", 1, 3)
    value = struct.pack(">hqhib", 0, 7, 1, 60_000, 4) + partitions + struct.pack(">qq", NOW_MS, NOW_MS - 1)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(build_batch([(NOW_MS, key, value, []), (NOW_MS, key, None, [])]))
    lines = run("dump", "--json", "--transaction-log-decoder", str(path)).stdout.splitlines()
    rows = [(row["key"], row["payload"]) for row in map(json.loads, lines) if row["kind"] == "record"]
    about = '{"type":"0","data":{"transactionalId":"id"}}'
    assert rows[1] == (about, "<DELETE>")
    assert (rows[0][0], json.loads(rows[0][1])) == (
        about,
        {
            "version": "0",
            "data": {
                "producerId": 7,
                "producerEpoch": 1,
                "transactionTimeoutMs": 60_000,
                "transactionStatus": 4,
                "transactionPartitions": [{"topic": "t", "partitionIds": [3]}],
                "transactionLastUpdateTimestampMs": NOW_MS,
                "transactionStartTimestampMs": NOW_MS - 1,
            },
        },
    )


def test_dump_reads_no_more_than_it_shall(tmp_path: Path) -> None:
    path = tmp_path / f"{0:020d}.log"
    batches = [build_batch([(NOW_MS, b"k", b"v", [])], base_offset=offset) for offset in range(3)]
    path.write_bytes(b"".join(batches))

    def offsets(max_bytes: int) -> list[int]:
        lines = run("dump", "--json", "--max-bytes", str(max_bytes), str(path)).stdout.splitlines()
        return [json.loads(line)["baseOffset"] for line in lines]

    two = len(batches[0] + batches[1])
    assert (offsets(two + 1), offsets(two), offsets(two - 1)) == ([0, 1], [0, 1], [0])


def test_the_exit_code_of_verify_says_if_there_are_findings(data: Path, tmp_path: Path) -> None:
    sound = run("verify", str(data))
    assert sound.exit_code == 0 and sound.stdout == "" and "1 partitions" in sound.output
    flip_byte(list_logs(data)[1], 80)
    result = run("verify", str(data))
    assert result.exit_code == 1 and "WRONG" in result.stdout and str(list_logs(data)[1]) in result.stdout
    (finding,) = [json.loads(line) for line in run("verify", "--json", str(data)).stdout.splitlines()]
    assert (finding["path"], finding["position"], finding["note"]) == (str(list_logs(data)[1]), 0, False)
    assert list(finding) == ["path", "what", "note", "position", "first_offset", "last_offset"]
    assert run("verify", str(tmp_path / "absent")).exit_code == 2
    assert run("verify").exit_code == 2


def test_repair_shows_before_it_does_and_asks_before_it_takes_away(data: Path) -> None:
    flip_byte(list_logs(data)[1], 80)
    before = {path: path.read_bytes() for path in data.rglob("*") if path.is_file()}
    left = run("repair", str(data))
    assert left.exit_code == 1 and "--truncate cuts it" in left.output
    shown = run("repair", "--truncate", "--dry-run", str(data))
    assert shown.exit_code == 1 and "lost offsets" in shown.output and ".removed" in shown.output
    refused = run("repair", "--truncate", str(data), stdin="n\n")
    assert refused.exit_code == 1
    assert {path: path.read_bytes() for path in data.rglob("*") if path.is_file()} == before
    done = run("repair", "--truncate", str(data), stdin="y\n")
    assert done.exit_code == 0 and "nothing is wrong" in done.output
    assert run("verify", str(data)).exit_code == 0


def test_repair_refuses_while_a_broker_runs(tmp_path: Path) -> None:
    directory, log = write_directory(Store(OsFiles(), str(tmp_path)), close=False)
    assert isinstance(log, Log)
    refused = run("repair", str(tmp_path / "data"))
    assert refused.exit_code == 2
    assert refused.output == f"kafkacompat: {tmp_path}/data is in use by a broker or another repair: stop it first\n"
    directory.close([log])
    assert run("repair", str(tmp_path / "data")).exit_code == 0


def test_repair_takes_several_folders_of_one_directory(data: Path) -> None:
    shutil.copytree(data / "t-0", data / "t-1")
    done = run("repair", str(data / "t-0"), str(data / "t-1"), str(data))
    assert done.exit_code == 0 and done.output.count("nothing is wrong") == 3


def test_one_long_text_does_not_widen_a_thousand_lines(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    records: list[NewRecord] = [(NOW_MS, b"k" * 100_000, b"v", []), *((NOW_MS, b"k", b"v", []) for _ in range(500))]
    path.write_bytes(build_batch(records))
    assert len(run("dump", "--print-data-log", str(path)).output) < 300_000


def test_much_text_is_not_gathered_for_one_table() -> None:
    taken = []

    def rows() -> Iterator[DumpRow]:
        for number in range(100):
            taken.append(number)
            yield DumpRow("record", {"key": "k", "payload": "v" * 100_000})

    most = 0

    def write(line: str) -> None:
        nonlocal most
        most = max(most, len(taken) - written.count(1))
        written.append(int(line.startswith("k ")))

    written: list[int] = []
    write_columns(rows(), write, write)
    assert sum(written) == 100 and most < 20


@pytest.mark.parametrize("hostile", ["\x1b[2J", "\u202e", "\u2066", "\x9b"])
def test_control_characters_do_not_reach_the_terminal(tmp_path: Path, hostile: str) -> None:
    folder = tmp_path / f"a{hostile}b"
    folder.mkdir()
    path = folder / "00000000000000000000.log"
    path.write_bytes(build_batch([(NOW_MS, hostile.encode(), None, [(hostile, None)])]) + b"garbage")
    result = run("dump", "--print-data-log", str(path))
    assert hostile not in result.output
    assert repr(hostile)[1:-1] in result.output


def test_a_name_that_is_no_text_is_shown(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    folder.mkdir()
    (folder / "00000000000000000000.log").write_bytes(build_batch([(NOW_MS, b"k", b"v", [])]) + b"garbage")
    result = run("dump", str(tmp_path))
    assert result.exit_code == 0 and "\\udcff/00000000000000000000.log" in result.output


def test_links_that_lead_back_are_not_followed(data: Path) -> None:
    without = run("dump", str(data)).output
    for name in ("a", "b"):
        (data / name).symlink_to(data)
        (data / "t-0" / name).symlink_to(data)
    result = run("dump", str(data))
    assert (result.exit_code, result.output) == (0, without)
