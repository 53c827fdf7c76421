# SPDX-License-Identifier: MIT
"""perf.data: copied stacks are unwound, AUX data are kept; perf judges."""

import collections
import json
import os
import re
import shutil
import subprocess

import pytest

import foreign_files
from test_import import brief, events_of, needs_root, perf_record

PROGRAM = r"""
volatile long sum;
__attribute__((noinline)) long leaf(long n) { for (long i = 0; i < n; i++) sum += i; return sum; }
__attribute__((noinline)) long middle(long n) { return leaf(n) + 1; }
__attribute__((noinline)) long outer(long n) { return middle(n) + 1; }
int main(void) { for (int i = 0; i < 3000; i++) outer(100000); return 0; }
"""
STACK = ["leaf", "middle", "outer", "main"]


@pytest.fixture(scope="module")
def deep(tmp_path_factory):
    """A program without frame pointers, and perf's copies of its stack: as a file, and as what perf writes to a pipe."""
    place = tmp_path_factory.mktemp("deep")
    (place / "deep.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-O2", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", place / "deep", place / "deep.c"], check=True)
    if not shutil.which("perf"):
        pytest.skip("perf is not installed: tools/install-deps test")
    for name in ("file", "pipe"):
        options = ["perf", "record", "-q", "--call-graph", "dwarf,2048", "-F", "499", "-e", "cpu-clock", "-o"]
        for _ in range(5):
            with open(place / "pipe", "wb") as pipe:
                done = subprocess.run([*options, "-" if name == "pipe" else place / name, "--", place / "deep"],
                                      stdout=pipe, stderr=subprocess.PIPE, check=False)
            if done.returncode == 0:
                break
        if done.returncode:
            pytest.skip(f"perf cannot record here: {done.stderr[-300:]}")
    return place


def stacks(kymo, path):
    """{names of the program's functions, the innermost first: how many samples}"""
    found = collections.Counter()
    for line in kymo("print", "--symbols", "--event", "sample", path).out.splitlines():
        chain = re.search(r" callstack_user = \[(.*?) \], ?\}? ?,? ?\{? ?source|callstack_user = \[(.*)\] \}, \{", line)
        found[tuple(name for name in re.findall(r"\((\w+)", chain[0]) if name in STACK)] += 1
    return found


@needs_root
@pytest.mark.parametrize("name", ["file", "pipe"])
def test_copied_stacks_are_unwound(kymo, peer, deep, name):
    ours = stacks(kymo, deep / name)
    whole = ours[tuple(STACK)]
    assert whole > 0.8 * sum(ours.values()) > 8, ours
    done = peer("perf", "script", "-F", "ip,sym", "-i", deep / name)
    if done.code == 0:
        theirs = len(re.findall(r" leaf\n.* middle\n.* outer\n.* main\n", done.out))
        assert whole >= 0.9 * theirs > 0, (whole, theirs)


@needs_root
def test_stacks_of_another_program_are_not_unwound(kymo, deep):
    """The file at the path is another one by now: its build ID says so. The sample's own address is left."""
    kept = (deep / "deep").read_bytes()
    os.rename(deep / "deep", deep / "kept")
    try:
        subprocess.run(["gcc", "-O0", "-o", deep / "deep", deep / "deep.c"], check=True)
        lengths = collections.Counter(len(event["context"]["callstack_user"]) for event in events_of(kymo, deep / "file")
                                      if event["event"] == "sample")
        # Others are of the loader, whose file is the same.
        assert lengths[1] > 0.8 * sum(lengths.values()) > 8
    finally:
        os.rename(deep / "kept", deep / "deep")
    assert (deep / "deep").read_bytes() == kept


def test_a_device_is_no_build_id(kymo, tmp_path):
    """Linux says that mappings have build IDs to all who record, as soon as one of them wants such."""
    perf = foreign_files.Perf()
    perf.attr(1, 0, foreign_files.IDENTIFIER | foreign_files.TID | foreign_files.TIME | foreign_files.CPU, "cpu-clock")
    pack = perf.order.pack
    perf.record(10, 1 << 14 | 2, pack("IIQQQ", 30, 30, 0x1000, 0x2000, 0) + pack("IIQQ", 8, 1, 77, 0) + pack("II", 5, 2) + b"/bin/cat".ljust(16, b"\0") +
                perf.trailer(30, 5000, 1))
    perf.finish_round()
    event, = events_of(kymo, perf.write(tmp_path / "made.data"))
    assert event["fields"]["build_id"] == "" and event["fields"]["filename"] == "/bin/cat" and event["fields"]["end"] == 0x3000


@pytest.mark.parametrize("big", [False, True], ids=["little-endian", "big-endian"])
def test_aux_data_is_kept(kymo, peer, tmp_path, big):
    perf, data = foreign_files.Perf(big), bytes(n * 7 & 255 for n in range(10000))
    perf.attr(1, 9, foreign_files.IDENTIFIER | foreign_files.TID | foreign_files.TIME | foreign_files.CPU, "dummy:u")
    pack = perf.order.pack
    perf.record(70, 0, pack("IIQ", 1, 0, 0))
    perf.record(11, 0, pack("QQQ", 0x1000, len(data), 1) + perf.trailer(30, 5000, 1))
    perf.finish_round()
    perf.record(71, 0, pack("QQQIIII", len(data), 0x1000, 77, 3, 30, 1, 0))
    perf.records.append(data)
    path = perf.write(tmp_path / "aux.data")
    events = events_of(kymo, path)
    aux, head, *pieces = [event for event in events if event["event"].startswith("perf_aux")]
    assert (aux["event"], aux["timestamp_ns"], aux["fields"]) == ("perf_aux", 5000, {"offset": 0x1000, "size": 10000, "flags": 1})
    assert head["fields"] == {"kind": "intel_pt", "index": 3, "offset": 0x1000, "size": 10000, "reference": 77}
    assert head["context"]["tid"] == 30 and head["packet"]["cpu_id"] == 1
    assert [piece["fields"]["offset"] for piece in pieces] == [0x1000, 0x2000, 0x3000]
    assert bytes(byte for piece in pieces for byte in piece["fields"]["data"]) == data
    # perf shows what it reads, but wants to know more of the hardware than these files say.
    perf.records.pop(0)
    dump = peer("perf", "script", "-D", "-i", perf.write(tmp_path / "without-kind.data")).out
    assert "PERF_RECORD_AUXTRACE size: 0x2710  offset: 0x1000  ref: 0x4d  idx: 3  tid: 30  cpu: 1" in dump
    del perf.records[-2:]
    dump = peer("perf", "script", "-D", "-i", perf.write(tmp_path / "without-data.data")).out
    assert "PERF_RECORD_AUX offset: 0x1000 size: 0x2710" in dump
    kymo("convert", path, "-o", tmp_path / "trace")
    assert kymo("print", "--count", "--event", "perf_auxtrace*", tmp_path / "trace").out == "4\n"


def perf_of_rounds(path, late):
    """Six rounds of two CPUs, 3000 records of each. Interrupts put some before others; @late: later rounds have two rings of CPU 1."""
    perf = foreign_files.Perf()
    leave = perf.attr(2, 399, foreign_files.IDENTIFIER | foreign_files.IP | foreign_files.TID | foreign_files.TIME | foreign_files.CPU |
                      foreign_files.PERIOD | foreign_files.RAW, "raw_syscalls:sys_exit")
    expected = collections.defaultdict(list)
    for number in range(6):
        for cpu in (0, 1):
            times = [1_000_000_000_000 + number * 10_000_000 + cpu + i * 1000 for i in range(3000)]
            expected[cpu] += times
            for i in range(0, 2900, 100):
                times[i], times[i + 1:i + 41] = times[i + 40], times[i:i + 40]
            if cpu and late and number > 2:
                times = times[::2] + times[1::2]
            for ns in times:
                perf.sample(leave, 10 + cpu, ns, cpu, foreign_files.raw_exit(perf.order, 10 + cpu, 1, ns % 1000003))
        perf.comm(10, f"round-{number}", 1_000_000_000_000 + number * 10_000_000 + 1500)
        perf.finish_round()
    return perf.write(path), expected


@pytest.mark.parametrize("late", [False, True], ids=["a ring a CPU", "two rings a CPU"])
def test_records_out_of_order(kymo, tmp_path, late):
    path, expected = perf_of_rounds(tmp_path / "rounds.data", late)
    done = kymo("convert", "--to", "json", path)
    events = [json.loads(line) for line in done.out.splitlines()]
    calls = [event for event in events if event["event"].startswith("syscall_exit")]
    for cpu in (0, 1):
        found = [(event["timestamp_ns"], event["fields"]["ret"]) for event in calls if event["packet"]["cpu_id"] == cpu]
        assert found == [(ns, ns % 1000003) for ns in expected[cpu]]
    assert sorted(event["timestamp_ns"] for event in events) == [event["timestamp_ns"] for event in events]
    assert sum(event["event"] == "perf_comm" for event in events) == 6
    assert not done.err


@needs_root
def test_what_perf_data_convert_writes(kymo, tmp_path):
    """perf's own conversion to CTF is read, and has the events of the import at the same times and places."""
    path = perf_record(tmp_path / "perf.data", "-F", "997", "-e", "cpu-clock", "-e", "sched:sched_switch", "-a")
    for _ in range(5):
        shutil.rmtree(tmp_path / "ctf", ignore_errors=True)
        done = subprocess.run(["perf", "data", "convert", f"--to-ctf={tmp_path / 'ctf'}", "-i", path], capture_output=True, text=True, check=False)
        if done.returncode >= 0:
            break
    if done.returncode:
        pytest.skip(f"perf cannot write CTF here: {done.stderr[-300:]}")
    names = {"cpu-clock": "sample", "sched:sched_switch": "sched_switch"}
    theirs = collections.Counter((ns, cpu, names[name]) for ns, cpu, name in map(brief, events_of(kymo, tmp_path / "ctf")))
    assert theirs == collections.Counter(one for one in map(brief, events_of(kymo, path)) if one[2] in names.values())
    assert {name for _, _, name in theirs} == set(names.values())


BARE = foreign_files.IDENTIFIER | foreign_files.TID | foreign_files.TIME | foreign_files.CPU


def bare_sample(perf, ns, cpu=0, counter=1, tid=30):
    """40 bytes of a counter with BARE."""
    perf.record(9, 1, perf.order.pack("QIIQII", counter, tid, tid, ns, cpu, 0))


def bare_perf(*records):
    """cpu-clock alone; @records: (ns, cpu), or None for the end of a round."""
    perf = foreign_files.Perf()
    perf.attr(1, 0, BARE, "cpu-clock")
    for record in records:
        if record is None:
            perf.finish_round()
        else:
            bare_sample(perf, *record)
    return perf


def part(*records):
    return b"".join(bare_perf(*records).records)


def times(done):
    return [int(json.loads(line)["timestamp_ns"]) for line in done.out.splitlines()]


def directory(place, parts):
    """What `perf record --threads` writes; a part may be bytes, or what makes something else of its path."""
    place.mkdir()
    bare_perf((1000, 0), None).write(place / "data")
    for number, content in parts.items():
        if callable(content):
            content(place / f"data.{number}")
        else:
            (place / f"data.{number}").write_bytes(content)
    return place


@pytest.mark.parametrize("bad,why", [(os.mkfifo, "data.0: a part of the recording is not a regular file"),
                                     (os.mkdir, "data.0: a part of the recording is not a regular file"),
                                     (lambda path: os.symlink("nowhere", path), "data.0: cannot read: No such file"),
                                     (None, "data.0: a part of the recording is missing"),
                                     (bytes(16), r"data.0: a record has no length \(at byte 0\)")],
                         ids=["fifo", "directory", "dangling", "missing", "damaged"])
def test_a_bad_part_of_a_directory(kymo, tmp_path, bad, why):
    """The other parts are read."""
    parts = {0: bad, 1: part((2000, 1), None, (3000, 1)), 2: part((2500, 2), None), 3: part((2600, 3))}
    if bad is None:
        del parts[0]
    path = directory(tmp_path / "parts", parts)
    done = kymo("convert", "--to", "json", path, code=1)
    assert times(done) == [1000, 2000, 2500, 2600, 3000]
    assert re.search(why, done.err), done.err


def test_two_bad_parts(kymo, tmp_path):
    path = directory(tmp_path / "parts", {0: bytes(16), 1: part((2000, 1)), 2: os.mkfifo, 4: part((3000, 2))[:-1]})
    done = kymo("convert", "--to", "json", path, code=1)
    assert times(done) == [1000, 2000]
    assert re.search(r"data.0: a record has no length\n(.|\n)*data.4: the last record is cut\n(.|\n)*data.2: a part of the recording is not a regular file\n", done.err), done.err


def test_a_missing_part_between_others(kymo, tmp_path):
    path = directory(tmp_path / "parts", {number: part((2000 + number, number)) for number in (0, 1, 3)})
    (path / "data.old").write_bytes(b"no part")
    (path / "data.04").write_bytes(b"no part")
    done = kymo("convert", "--to", "json", path, code=1)
    assert times(done) == [1000, 2000, 2001, 2003] and "data.2: a part of the recording is missing" in done.err
    (path / "data.2").write_bytes(part((2002, 2)))
    assert times(kymo("convert", "--to", "json", path)) == [1000, 2000, 2001, 2002, 2003]


def test_features_that_are_cut(kymo, tmp_path):
    """They stand behind the records, which are read all the same; with the descriptions of their events, if those are whole."""
    whole = foreign_files.perf_example(tmp_path / "made.data").read_bytes()
    order = foreign_files.Order(False)
    n_whole = int(kymo("print", "--count", tmp_path / "made.data").out)
    end = sum(int.from_bytes(whole[at:at + 8], "little") for at in (40, 48))
    described = whole.index(foreign_files.tracing_data(order)) + len(foreign_files.tracing_data(order))
    for size in (end, end + 5, end + 100, described - 1, described, described + 3, len(whole) - 300, len(whole) - 1):
        (tmp_path / "cut").write_bytes(whole[:size])
        done = kymo("print", "--no-delta", tmp_path / "cut", code=1)
        assert re.search(r"cut: .*cut.*\(at byte \d+\)", done.err), (size, done.err)
        assert len(done.out.splitlines()) == n_whole if size >= described else done.out, size


def zstd_blocks(*blocks):
    """One stream of blocks that are not compressed, and never ended, as perf writes it."""
    return b"\x28\xb5\x2f\xfd\0\x58" + b"".join((len(block) << 3).to_bytes(3, "little") + block for block in blocks)


def packed(stream):
    return foreign_files.Order(False).pack("IHH", 81, 0, 8 + len(stream)) + stream


@pytest.mark.parametrize("in_part", [False, True], ids=["file", "part"])
@pytest.mark.parametrize("missing", [0, 1, 20, 39, 40, 41, 50])
def test_a_compressed_stream_that_ends_too_early(kymo, tmp_path, in_part, missing):
    first, second = part((2000, 0)), part((3000, 0))
    stream = zstd_blocks(first, second)
    record = packed(stream[:len(stream) - missing])
    perf = bare_perf((1000, 0), None)
    if in_part:
        path = directory(tmp_path / "packed", {0: record, 1: part((2500, 1))})
    else:
        perf.records.append(record)
        path = perf.write(tmp_path / "packed")
    good = [1000, 2000] + ([] if missing else [3000]) + ([2500] if in_part else [])
    # A block is unpacked when it is whole; where it is missing with its head, nothing tells of it.
    done = kymo("convert", "--to", "json", path, code=1 if missing else 0)
    if missing > 43:
        good.remove(2000)
    assert times(done) == sorted(good)
    assert not missing or re.search(r"the compressed records are cut: .*\(at byte \d+\)", done.err), done.err


def test_rounds_of_many_cpus(kymo, tmp_path):
    """A round costs what it has: no CPU is looked at that has no record."""
    perf = bare_perf(*((1000 + cpu, cpu) for cpu in range(4096)))
    perf.records.append(part(None) * 2000000)
    assert kymo("print", "--count", perf.write(tmp_path / "rounds.data"), timeout=30).out == "4096\n"


def test_a_part_that_is_far_behind(kymo, tmp_path):
    """What waits is not sorted again with each round."""
    n, late = 50000, 10**9
    ahead = b"".join(part((late - i, 0), None) for i in range(n))
    path = directory(tmp_path / "parts", {0: ahead, 1: part((1, 1)) + part(None) * n})
    assert kymo("print", "--count", path, timeout=60).out == f"{n + 2}\n"
    (path / "data.1").write_bytes(b"".join(part((2000 + i, 1), None) for i in range(n)))
    found = times(kymo("convert", "--to", "json", path, timeout=120))
    assert found == [1000, *range(2000, 2000 + n), *range(late - n + 1, late + 1)]


def test_records_of_a_queue_are_merged(kymo, tmp_path):
    """What comes later, and earlier, than what waits; those of one time in the order of their arrival."""
    ahead = [(ns, 0, 1, 100 + i) for i, ns in enumerate((9000, 5000, 7000, 5000, 8000, 7000, 9600, 9400))]
    behind = [(ns, 1) for ns in (2000, 4000, 5500, 6500, 9500)]
    path = directory(tmp_path / "parts", {number: b"".join(part(one, None) for one in records) for number, records in enumerate((ahead, behind))})
    events = [json.loads(line) for line in kymo("convert", "--to", "json", path).out.splitlines()]
    assert [event["timestamp_ns"] for event in events] == sorted([1000] + [one[0] for one in ahead + behind])
    assert [event["context"]["tid"] for event in events if event["context"]["tid"] >= 100] == [one[3] for one in sorted(ahead)]


def test_many_attributes_of_one_event(kymo, tmp_path, monkeypatch):
    perf, n = foreign_files.Perf(), 2000
    for _ in range(n):
        perf.attr(2, 399, BARE | foreign_files.RAW, "raw_syscalls:sys_exit")
    raw = foreign_files.raw_exit(perf.order, 30, 1, 5)
    perf.record(9, 1, perf.order.pack("QIIQIII", n, 30, 30, 1000, 1, 0, len(raw) + 4) + raw + bytes(4))
    data = foreign_files.tracing_data(perf.order, events=(("raw_syscalls", (foreign_files.RAW_EXIT,) * n),))
    monkeypatch.setattr(foreign_files, "tracing_data", lambda order: data)
    event, = events_of(kymo, perf.write(tmp_path / "many.data"))
    assert event["event"] == "syscall_exit_write" and event["fields"]["ret"] == 5


@pytest.mark.parametrize("kind", ["hardware", "tracepoint", "tracepoint with a stack"])
def test_a_cpu_above_the_limit(kymo, tmp_path, kind):
    """The sample is left out and told; the others are there."""
    perf = foreign_files.Perf()
    sample_type = BARE | foreign_files.IP | foreign_files.PERIOD
    chain = None
    if kind == "hardware":
        perf.attr(1, 0, sample_type, "cpu-clock")
    elif kind == "tracepoint":
        perf.attr(2, 399, sample_type | foreign_files.RAW, "raw_syscalls:sys_exit")
    else:
        perf.attr(2, 399, sample_type | foreign_files.RAW | foreign_files.CHAIN, "raw_syscalls:sys_exit")
        chain = [0x401000]
    raw = None if kind == "hardware" else foreign_files.raw_exit(perf.order, 30, 1, 5)
    for ns, cpu in ((1000, 1), (2000, 5000), (3000, 2)):
        perf.sample(1, 30, ns, cpu, raw, chain=chain)
    path = perf.write(tmp_path / "cpus.data")
    done = kymo("convert", "--to", "json", path, code=1)
    assert [(event["timestamp_ns"], event["packet"]["cpu_id"]) for event in map(json.loads, done.out.splitlines())] == [(1000, 1), (3000, 2)]
    at = path.read_bytes().index(perf.records[1])
    assert re.search(rf"cpus.data: CPU 5000 is above the limit of 4096 CPUs \(at byte {at}\)", done.err), done.err


def test_tracepoints_without_their_record(kymo, tmp_path):
    perf = bare_perf((1000, 0))
    perf.attr(2, 399, BARE, "raw_syscalls:sys_exit")
    bare_sample(perf, 2000, counter=2)
    bare_sample(perf, 3000, counter=2)
    done = kymo("convert", "--to", "json", perf.write(tmp_path / "bare.data"))
    assert times(done) == [1000] and "2 samples of tracepoints lack the tracepoint's record" in done.err


@pytest.mark.parametrize("big", [False, True])
def test_files_of_the_first_versions(kymo, tmp_path, big):
    """perf before Linux 3.3 wrote another magic number, which is a text in either byte order."""
    path = tmp_path / "perf.data"
    foreign_files.perf_example(path, big)
    expected = list(map(brief, events_of(kymo, path)))
    data = path.read_bytes()
    path.write_bytes(b"PERFFILE" + data[8:])
    assert expected and list(map(brief, events_of(kymo, path))) == expected


@needs_root
def test_time_before_the_first_event_is_unknown(kymo, tmp_path):
    """perf reads /proc before it begins, and these records have earlier times: no thread ran all that time."""
    path = tmp_path / "perf.data"
    perf_record(path, "-a", "-e", "sched:sched_switch")
    switches = [event for event in events_of(kymo, path) if event["event"] == "sched_switch"]
    first = {}
    for event in switches:
        first.setdefault(event["packet"]["cpu_id"], event["timestamp_ns"])
    recorded = sum(switches[-1]["timestamp_ns"] - begin for begin in first.values())
    tables = json.loads(kymo("report", "cpu", "--json", "--limit", "0", path).out)["reports"][0]["tables"]
    ran = sum(row["cpu_time"] for table in tables if table["name"] == "threads" for row in table["rows"])
    assert ran <= recorded


@pytest.mark.parametrize("kind, fill", [(66, 0), (0x8009, 0), (0x8009, 80000)])
def test_descriptions_of_simpleperf(kymo, tmp_path, kind, fill):
    """Android's simpleperf writes the descriptions of tracepoints into a record: perf's, or one of its own, which may be longer than 64 KiB."""
    perf = foreign_files.Perf()
    perf.has_tracing = False
    base = foreign_files.IDENTIFIER | foreign_files.IP | foreign_files.TID | foreign_files.TIME | foreign_files.CPU | foreign_files.PERIOD
    switches = perf.attr(2, 316, base | foreign_files.RAW, "sched:sched_switch")
    descriptions = foreign_files.tracing_data(perf.order, texts=b"0xffffffff81000000 : \"x\"\n" * (fill // 26))
    assert len(descriptions) > (65536 if fill else 0)
    perf.record(kind, 0, perf.order.pack("I", len(descriptions)) + descriptions)
    for ns in (1000, 2000):
        perf.sample(switches, 10, ns, 0, foreign_files.switch(perf.order, ("one", 10), ("two", 20)))
    found = [event for event in events_of(kymo, perf.write(tmp_path / "perf.data")) if event["event"] == "sched_switch"]
    assert [(event["timestamp_ns"], event["fields"]["next_comm"]) for event in found] == [(1000, "two"), (2000, "two")]
