# SPDX-License-Identifier: MIT
"""kymo convert: formats, and output that appears whole or not at all."""

import csv
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time

import make_trace
import pytest
import random_trace


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    return make_trace.sample(tmp_path_factory.mktemp("convert") / "trace")


def damaged(path):
    """Two events, then one of an unknown class, and a good packet after it."""
    packets = [make_trace.Packet(100 * n, seq=n) for n in range(3)]
    for n, packet in enumerate(packets):
        packet.tick(100 * n + 10, n)
    packets[1].head(9, 120)
    return make_trace.write(path, {"s": packets})


def test_text(kymo, trace, tmp_path):
    out = tmp_path / "out.txt"
    for options in ([], ["--clock-seconds", "--filter", "number > 30"]):
        want = kymo("print", *options, trace).out
        assert kymo("convert", "--to", "text", *options, trace).out == want
        assert not kymo("convert", "--to", "text", *options, "-o", out, trace).out
        assert out.read_text() == want
        assert kymo("convert", "--to", "text", *options, "-o", "-", trace).out == want
    assert os.listdir(tmp_path) == ["out.txt"]


def test_json(kymo, trace):
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    events = [json.loads(line) for line in lines]
    assert len(events) == int(kymo("print", "--count", trace).out)
    data = next(e for e in events if e["event"] == "data")
    assert data["fields"]["point"] == {"x": 0xbeef, "y": 7}
    assert data["fields"]["which"] == {"value": 0, "labels": ["small"]}
    assert data["context"] == {"tid": 1000} and data["packet"] == {"cpu_id": 0}
    assert events[0]["timestamp_ns"] == make_trace.ORIGIN_S * 10**9 + 1000


def test_damage_keeps_what_was_good(kymo, tmp_path):
    path, out = damaged(tmp_path / "t"), tmp_path / "out"
    result = kymo("convert", "--to", "text", "-o", out, path, code=1)
    assert "no event class with id 9" in result.err and "contains the events that could be read" in result.err
    assert len(out.read_text().splitlines()) == 2


def test_nothing_is_left_of_a_failure(kymo, trace, tmp_path):
    out = tmp_path / "d" / "out"
    (tmp_path / "d").mkdir()
    kymo("convert", "--to", "json", "--filter", "nothing > 1", "-o", out, trace, code=2)
    kymo("convert", "--to", "json", "-o", tmp_path / "no" / "out", trace, code=1)
    kymo("convert", "--to", "json", "-o", tmp_path, trace, code=1)
    assert not os.listdir(tmp_path / "d")


def test_old_output_is_replaced_only_in_the_end(kymo, trace, tmp_path):
    out = tmp_path / "out"
    out.write_text("old")
    kymo("convert", "--to", "text", "--filter", "nothing > 1", "-o", out, trace, code=2)
    assert out.read_text() == "old"
    kymo("convert", "--to", "text", "--head", 1, "-o", out, trace)
    assert "tick" in out.read_text()


def test_usage(kymo, trace):
    assert "--to" in kymo("convert", trace, code=2).err
    assert "'xml'" in kymo("convert", "--to", "xml", trace, code=2).err


def test_full_disk(kymo, trace):
    result = kymo("convert", "--to", "text", "-o", "/dev/full", trace, code=1)
    assert "No space left" in result.err


# ---- CTF to CTF ---------------------------------------------------------------------------------

def shared_traces(shared):
    return [f"{shared}/traces/lttng-kernel/kernel", f"{shared}/traces/lttng-ust"]


def warnings(result):
    """What the standard error says of losses, without paths."""
    return [line.split(": ", 3)[3] for line in result.err.splitlines() if "kymo: warning: " in line]


def same_text(kymo, one, other, *options):
    """Both print alike, losses too; returns the text."""
    a, b = kymo("print", *options, one), kymo("print", *options, other)
    assert a.out == b.out and a.out
    assert warnings(a) == warnings(b)
    return a.out


def peers_agree(kymo, peer, original, written):
    """babeltrace 1 and 2 read both alike, and babeltrace 2 as we do."""
    for name in ("babeltrace2", "babeltrace"):
        a, b = peer(name, original), peer(name, written)
        assert a.out == b.out and a.out, (a, b)
        assert b.code == 0, b


@pytest.mark.parametrize("select", [[], ["--head", 10**9]], ids=["copy", "events"])
def test_there_and_back(kymo, peer, trace, tmp_path, select):
    two, one = tmp_path / "two", tmp_path / "one"
    kymo("convert", "--to", "ctf2", *select, "-o", two, trace)
    kymo("convert", "--to", "ctf1.8", *select, "-o", one, two)
    for options in ([], ["--clock-cycles"], ["--no-delta", "--clock-date"]):
        text = same_text(kymo, trace, two, *options)
        assert text == same_text(kymo, trace, one, *options)
    peers_agree(kymo, peer, trace, one)
    assert "very busy" in text and "lost" in kymo("print", one).err
    assert sorted(os.listdir(one)) == sorted(os.listdir(two)) == [
        "channel_0", "channel_1", "index", "metadata"]


@pytest.mark.parametrize("select", [[], ["--head", 10**9]], ids=["copy", "events"])
def test_there_and_back_lttng(kymo, peer, shared, tmp_path, select):
    for number, trace in enumerate(shared_traces(shared)):
        two, one = tmp_path / f"two-{number}", tmp_path / f"one-{number}"
        kymo("convert", "--to", "ctf2", *select, "-o", two, trace)
        kymo("convert", "--to", "ctf1.8", *select, "-o", one, two)
        same_text(kymo, trace, two)
        same_text(kymo, trace, one)
        peers_agree(kymo, peer, trace, one)


def test_copies_are_exact(kymo, trace, tmp_path):
    out = tmp_path / "out"
    kymo("convert", "--to", "ctf1.8", "-o", out, trace)
    for name in ("metadata", "channel_0", "channel_1"):
        assert (out / name).read_bytes() == (trace / name).read_bytes()
    assert (out / "index" / "channel_0.idx").stat().st_size == 16 + 4 * 72
    assert not kymo("print", "--no-output", out).err.count("index")


SELECTIONS = [
    ["--filter", "number >= 100 && number < 330"],
    ["--filter", "number % 10 == 2"],
    ["--filter", "ratio > 0 && _n_length != 2"],
    ["--event", "data"],
    ["--event", "space*", "--stream", "*_1"],
    ["--begin", "30%", "--end", "60%"],
    ["--head", 77],
    ["--tail", 77],
]


@pytest.mark.parametrize("select", SELECTIONS, ids=lambda words: " ".join(map(str, words)))
@pytest.mark.parametrize("version", ["ctf1.8", "ctf2"])
def test_selected(kymo, peer, trace, tmp_path, select, version):
    out = tmp_path / "out"
    kymo("convert", "--to", version, *select, "-o", out, trace)
    want = kymo("print", "--clock-seconds", *select, trace)
    got = kymo("print", "--clock-seconds", out)
    assert want.out == got.out and want.out
    # Where a packet had to be split, what is missing before it ends with its first part.
    assert [line.split(" and ")[0] for line in warnings(want)] == [
        line.split(" and ")[0] for line in warnings(got)]
    if version == "ctf1.8":
        for name in ("babeltrace2", "babeltrace"):
            result = peer(name, "--clock-seconds", out)
            assert result.code == 0, result
        assert peer("babeltrace2", "--clock-seconds", out).out == want.out


@pytest.mark.parametrize("text", ["tid == 250", "ret < 0", '$event =~ "sched_*" && $cpu == 1'])
def test_selected_lttng(kymo, peer, shared, tmp_path, text):
    trace, out = shared_traces(shared)[0], tmp_path / "out"
    kymo("convert", "--to", "ctf1.8", "--filter", text, "-o", out, trace)
    want = kymo("print", "--clock-gmt", "--filter", text, trace).out
    assert kymo("print", "--clock-gmt", out).out == want and want
    for name in ("babeltrace2", "babeltrace"):
        lines = peer(name, "--clock-gmt", out).out.splitlines()
        assert len(lines) == len(want.splitlines())
        assert [line.split(" ", 1)[0] for line in lines] == [
            line.split(" ", 1)[0] for line in want.splitlines()]


def test_gap_longer_than_a_time_stamp(kymo, peer, tmp_path):
    """Between two events stand others whose time stamps the reader needs."""
    packet = make_trace.Packet(0)
    for i in range(100):
        packet.tick(i * 100_000_000, i)
    trace = make_trace.write(tmp_path / "t", {"s": [packet]})
    out = tmp_path / "out"
    kymo("convert", "--to", "ctf1.8", "--filter", "number % 9 == 4", "-o", out, trace)
    want = kymo("print", "--clock-seconds", "--filter", "number % 9 == 4", trace).out
    result = kymo("print", "--clock-seconds", out)
    assert result.out == want and len(want.splitlines()) == 11
    assert not result.err
    assert peer("babeltrace2", "--clock-seconds", out).out == want


def losses(path):
    """Packets with losses before the second, the fifth (packets) and the eighth (both)."""
    packets, seq, lost = [], 0, 0
    for number in range(10):
        seq += {4: 3, 7: 2}.get(number, 0)
        lost += {1: 11, 7: 5}.get(number, 0)
        packet = make_trace.Packet(number * 1000, seq, lost)
        seq += 1
        for i in range(3):
            packet.tick(number * 1000 + 10 * i, 10 * number + i)
        packets.append(packet)
    return make_trace.write(path, {"s": packets})


@pytest.mark.parametrize("text", ["number >= 0", "number % 10 == 1", "number in (2, 41, 90)",
                                  "number == 80", "number == 0", "number in (70, 72)"])
def test_losses_stay(kymo, tmp_path, text):
    trace, out = losses(tmp_path / "t"), tmp_path / "out"
    kymo("convert", "--to", "ctf1.8", "--filter", text, "-o", out, trace)
    want, got = kymo("print", "--filter", text, trace), kymo("print", out)
    assert got.out == want.out and want.out
    assert warnings(got) == warnings(want) and len(warnings(want)) == 4


def written_anew(kymo, path, trace):
    """@trace in CTF 2, with an event type whose values CTF 1.8 has other bits for."""
    kymo("convert", "--to", "ctf2", "-o", path, trace)
    leb = {"name": "n", "field-class": {"type": "variable-length-unsigned-integer"}}
    with open(path / "metadata", "a", encoding="utf-8") as file:
        file.write("\x1e" + json.dumps({
            "type": "event-record-class", "id": 99, "name": "never",
            "payload-field-class": {"type": "structure", "member-classes": [leb]}}))
    return path


def packets_of(kymo, path):
    """What `details` says of packets and events, without places and sizes."""
    lines = kymo("convert", "--to", "details", path).out.splitlines()
    lines = lines[next(i for i, line in enumerate(lines) if line.startswith("stream /")):]
    return [re.sub(r"/.*/|byte \d+|[\d.]+ (bytes|bits)|(packet|content)_size: \d+", "", line)
            for line in lines]


@pytest.mark.parametrize("full", [(), (0,), (3,), (9,), (1, 2, 7), range(10)], ids=str)
def test_packets_without_events_stay(kymo, peer, tmp_path, full):
    """Their times, losses and sequence numbers count, also when all is written anew."""
    packets, seq, lost = [], 5, 2
    for number in range(10):
        seq += {4: 3, 7: 2, 9: 1}.get(number, 0)
        lost += {1: 11, 7: 5, 8: 1}.get(number, 0)
        packet = make_trace.Packet(number * 1000, seq, lost)
        seq += 1
        if number in full:
            packet.tick(number * 1000 + 10, number)
        packets.append(packet)
    empty = [make_trace.Packet(0), make_trace.Packet(500)]
    trace = make_trace.write(tmp_path / "t", {"s": packets, "z": empty, "nothing": []})
    trace = written_anew(kymo, tmp_path / "two", trace)
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", trace)
    assert packets_of(kymo, tmp_path / "out") == packets_of(kymo, trace)
    got, want = kymo("print", tmp_path / "out"), kymo("print", trace)
    assert got.out == want.out and warnings(got) == warnings(want) and len(warnings(want)) == 6
    assert sorted(os.listdir(tmp_path / "out")) == sorted(os.listdir(trace))
    assert peer("babeltrace2", tmp_path / "out").code == 0


def test_damage_in_ctf(kymo, tmp_path):
    trace, out = damaged(tmp_path / "t"), tmp_path / "out"
    result = kymo("convert", "--to", "ctf1.8", "-o", out, trace, code=1)
    assert "no event class with id 9" in result.err and "contains the events that could be read" in result.err
    assert kymo("print", out).out == kymo("print", trace, code=1).out


def test_what_ctf_1_8_cannot_say(kymo, root_dir, tmp_path):
    case = f"{root_dir}/test/data/ok/rules/ctf2-role-in-options"
    result = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "out", case, code=1)
    assert "stream.packet.context cannot be described in the other version" in result.err
    assert not os.listdir(tmp_path)


def test_written_in_other_bits(kymo, root_dir, shared, tmp_path):
    """LEB128, UTF-16, alignment of arrays: the values, where CTF 1.8 has other bits for them."""
    case = f"{shared}/conformance/ctf-2/philo"
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "philo", case)
    assert values_as_ctf1(kymo, tmp_path / "philo") == values_as_ctf1(kymo, case)
    case = f"{root_dir}/test/data/ok/rules/ctf2-texts"
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "texts", case)
    out = kymo("convert", "--to", "json", tmp_path / "texts").out
    fields = json.loads(out.splitlines()[0])["fields"]
    assert [fields[f"utf_{bits}"] for bits in ("8", "16be", "16le", "32be", "32le")] == ["hé😀"] * 5
    assert fields["wide"] == "gh"


def test_several_traces(kymo, trace, tmp_path):
    make_trace.sample(tmp_path / "in" / "a" / "one", packets=1)
    make_trace.sample(tmp_path / "in" / "b", packets=2)
    out = tmp_path / "out"
    kymo("convert", "--to", "ctf2", "-o", out, tmp_path / "in")
    assert sorted(os.listdir(out)) == ["a", "b"]
    same_text(kymo, tmp_path / "in", out)


def test_output_must_be_empty(kymo, trace, tmp_path):
    (tmp_path / "out").mkdir()
    kymo("convert", "--to", "ctf2", "-o", tmp_path / "out", trace)
    result = kymo("convert", "--to", "ctf2", "-o", tmp_path / "out", trace, code=2)
    assert "not an empty directory" in result.err
    assert "directory" in kymo("convert", "--to", "ctf2", trace, code=2).err


def test_own_traces(kymo, root_dir, tmp_path):
    """Good and damaged: what can be read of the one can be read of the other."""
    compared = 0
    for kind in ("ok", "bad"):
        base = os.path.join(root_dir, "test", "data", kind, "traces")
        for name in sorted(os.listdir(base)):
            case = os.path.join(base, name)
            want = kymo("print", case, code=None)
            if not os.path.isdir(case) or (want.code and not want.out):
                continue
            for version in ("ctf1.8", "ctf2"):
                for select in ([], ["--head", 10**9]):
                    out = tmp_path / f"{kind}-{name}-{version}-{len(select)}"
                    kymo("convert", "--to", version, *select, "-o", out, case, code=want.code)
                    assert kymo("print", out).out == want.out, (case, version, select)
                    compared += 1
    assert compared > 40


def as_ctf1(value):
    """A value of the JSON output, as far as CTF 1.8 can say it."""
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        members = dict(value)
        if "bits_0_63" in members:
            return random_trace.words_of(members)
        if "labels" not in members:
            return [(re.sub(r"[^0-9A-Za-z]", "_", name).rstrip("_"), as_ctf1(member))
                    for name, member in random_trace.without_copies(value)]
        if members["labels"] in (["true"], ["false"]):
            return members["labels"] == ["true"]
        return members["value"]
    if isinstance(value, list):
        items = [as_ctf1(item) for item in value]
        if items and all(isinstance(item, int) and 0 <= item < 256 for item in items):
            return bytes(items).hex()
        return items or None
    return value or None if value == "" else value


def values_as_ctf1(kymo, trace, *options):
    out = kymo("convert", "--to", "json", *options, trace).out
    events = [json.loads(line, object_pairs_hook=lambda pairs: pairs or None)
              for line in out.splitlines()]
    return [as_ctf1(event) for event in events]


def test_conformance_traces(kymo, shared, tmp_path):
    """Every good trace of the suites: both versions, copied and rebuilt event by event."""
    cases = [os.path.join(shared, "conformance", part, name)
             for part in ("ctf-1.8/metadata/pass", "ctf-1.8/stream/pass", "ctf-2")
             for name in sorted(os.listdir(os.path.join(shared, "conformance", part)))]
    compared = 0
    refusals = ("cannot describe", "end inside a byte")
    for number, case in enumerate(cases):
        for select in ([], ["--head", 10**9], ["--tail", 3]):
            want = kymo("print", "--no-delta", *select, case, code=None)
            if want.code:
                break
            for version in ("ctf1.8", "ctf2"):
                out = tmp_path / f"{number}-{version}-{len(select) and select[0]}"
                done = kymo("convert", "--to", version, *select, "-o", out, case, code=None)
                if done.code:
                    assert any(text in done.err for text in refusals), done
                    continue
                compared += 1
                if version == "ctf2" or "ctf-2" not in case:
                    assert kymo("print", "--no-delta", out).out == want.out, (case, version, select)
                else:
                    assert values_as_ctf1(kymo, case, *select) == values_as_ctf1(kymo, out), case
    assert compared > 300


# ---- tables, details ----------------------------------------------------------------------------

def json_events(kymo, trace, *options):
    out = kymo("convert", "--to", "json", *options, trace).out
    return [json.loads(line) for line in out.splitlines()]


def cell(value):
    """A value of the JSON output as the CSV output writes it."""
    if value is None:
        return ""
    if isinstance(value, dict) and "labels" in value:
        return value["labels"][0] if value["labels"] else str(value["value"])
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return str(value)


def flat(prefix, fields):
    for name, value in fields.items():
        if isinstance(value, dict) and "labels" not in value:
            yield from flat(f"{prefix}{name}.", value)
        else:
            yield prefix + name, cell(value)


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_csv_directory(kymo, trace, tmp_path):
    out = tmp_path / "out"
    kymo("convert", "--to", "csv", "-o", out, trace)
    names = {"tick": "tick.csv", "data": "data.csv",
             'space, quote" and/slash': 'space, quote" and_slash.csv'}
    assert sorted(os.listdir(out)) == sorted(names.values())
    events = json_events(kymo, trace)
    for name, file in names.items():
        want = [{"timestamp_ns": str(e["timestamp_ns"]), "stream": e["stream"],
                 "cpu": str(e["packet"]["cpu_id"]), **dict(flat("ctx.", e["context"])),
                 **dict(flat("", e["fields"]))} for e in events if e["event"] == name]
        assert rows((out / file).read_text()) == want and want


def test_csv_files_of_one_name(kymo, tmp_path):
    """Two traces: the same event in one file, a different one of that name in another."""
    packet = make_trace.Packet(0)
    packet.odd(10)
    renamed = make_trace.METADATA.replace('name = "tick"', 'name = "x"').replace(
        'name = "space, quote\\" and/slash"', 'name = "tick"')
    make_trace.write(tmp_path / "in" / "a", {"s": [packet]}, renamed)
    make_trace.sample(tmp_path / "in" / "b", packets=1)
    make_trace.sample(tmp_path / "in" / "c", packets=1)
    kymo("convert", "--to", "csv", "--event", "tick", "-o", tmp_path / "out", tmp_path / "in")
    assert sorted(os.listdir(tmp_path / "out")) == ["tick-2.csv", "tick.csv"]
    count = int(kymo("print", "--count", "--event", "tick", tmp_path / "in").out)
    lines = [len(rows((tmp_path / "out" / name).read_text())) for name in ("tick-2.csv", "tick.csv")]
    assert min(lines) == 1 and sum(lines) == count


def test_csv_table(kymo, trace, tmp_path):
    fields = ["$time", "$event", "$cpu", "$stream", "text", "point.x", "n", "$ctx.tid",
              "$payload.comm", "state"]
    options = ("--to", "csv", "--fields", ", ".join(fields), "--filter", "tid == 1001")
    text = kymo("convert", *options, trace).out
    kymo("convert", *options, "-o", tmp_path / "out.csv", trace)
    assert (tmp_path / "out.csv").read_text() == text
    got = rows(text)
    events = json_events(kymo, trace, "--filter", "tid == 1001")
    assert len(got) == len(events) and list(got[0]) == fields
    for row, event in zip(got, events):
        inner = event["fields"]
        assert row == {
            "$time": str(event["timestamp_ns"]), "$event": event["event"],
            "$cpu": str(event["packet"]["cpu_id"]), "$stream": event["stream"],
            "text": inner.get("text", ""), "point.x": cell(inner.get("point", {}).get("x")),
            "n": cell(inner.get("n")), "$ctx.tid": str(event["context"]["tid"]),
            "$payload.comm": inner.get("comm", ""), "state": cell(inner.get("state"))}


def test_csv_mistakes(kymo, trace, tmp_path):
    def err(*options):
        return kymo("convert", "--to", *options, trace, code=2).err

    assert "no event has a field 'txt'" in err("csv", "--fields", "txt")
    assert "'$events' is no field" in err("csv", "--fields", "$events")
    assert "directory" in err("csv")
    assert "--fields needs --to csv or --to text" in err("json", "--fields", "text")
    assert not os.listdir(tmp_path)


def test_csv_of_a_kernel_trace(kymo, shared, tmp_path):
    trace, out = shared_traces(shared)[0], tmp_path / "out"
    kymo("convert", "--to", "csv", "-o", out, trace)
    events = json_events(kymo, trace)
    assert {name[:-4] for name in os.listdir(out)} == {e["event"] for e in events}
    switches = [e for e in events if e["event"] == "sched_switch"]
    table = rows((out / "sched_switch.csv").read_text())
    assert [(r["prev_comm"], r["next_tid"]) for r in table] == [
        (e["fields"]["prev_comm"], str(e["fields"]["next_tid"])) for e in switches]


def test_details(kymo, trace, shared):
    text = kymo("convert", "--to", "details", trace).out
    for part in ('event class 1 "data"', "value: variant, selected by '_which' of event.fields",
                 "sequence number 4", 'hostname = "lab"', "discarded events so far: 7",
                 "lost in channel_0: 7 events discarded, 0 packets missing",
                 'text: "ttt"', '"very busy" = 4'):
        assert part in text
    assert len([line for line in text.splitlines() if line.startswith("event ")]) == 400
    for path in shared_traces(shared):
        assert "stream class 0" in kymo("convert", "--to", "details", "--head", 10, path).out


# ---- what goes wrong on the way ---------------------------------------------------------------

FORMATS = ("ctf1.8", "ctf2", "json", "text", "csv", "perfetto")


@pytest.fixture(scope="module")
def long_trace(tmp_path_factory):
    """Some MiB: more than any pipe or buffer holds."""
    return make_trace.sample(tmp_path_factory.mktemp("long") / "trace", packets=240,
                             per_packet=250)


@pytest.mark.parametrize("jobs", (1, 4))
@pytest.mark.parametrize("to", ("ctf1.8", "ctf2", "csv", "json"))
def test_jobs_give_the_same_bytes(kymo, long_trace, tmp_path, to, jobs):
    for out, n in (("one", 1), ("several", jobs)):
        kymo("convert", "--to", to, "--jobs", n, "-o", tmp_path / out, long_trace)
    subprocess.run(["diff", "-r", tmp_path / "one", tmp_path / "several"], check=True)


@pytest.mark.parametrize("to", FORMATS)
def test_file_size_limit(kymo_bin, long_trace, tmp_path, to):
    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    done = subprocess.run([kymo_bin, "convert", "--to", to, "-o", tmp_path / "out", long_trace],
                          preexec_fn=limit, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert done.stderr.count(b"kymo: ") == 1 + done.stderr.count(b"warning")
    assert b"File too large" in done.stderr
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("jobs", (1, 3))
def test_an_interrupt_leaves_nothing(kymo_bin, long_trace, tmp_path, to, jobs):
    """Whenever it comes: all of the output is there, or nothing."""
    child = subprocess.Popen([kymo_bin, "convert", "--to", to, "--jobs", str(jobs),
                              "-o", tmp_path / "out", long_trace], stderr=subprocess.PIPE)
    while not os.listdir(tmp_path) and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGINT)
    errors = child.communicate()[1]
    left = os.listdir(tmp_path)
    assert (child.returncode, left) in ((0, ["out"]), (1, [])), errors
    assert b"Sanitizer" not in errors


@pytest.mark.parametrize("options", (["--jobs", "1"], ["--jobs", "4"]), ids=" ".join)
@pytest.mark.parametrize("command", (["print"], ["convert", "--to", "json"]), ids=" ".join)
def test_a_file_that_is_cut_while_it_is_read(kymo_bin, long_trace, tmp_path, command, options):
    """The pipe is full and the program waits; then most of what it has mapped goes."""
    trace = tmp_path / "t"
    shutil.copytree(long_trace, trace)
    child = subprocess.Popen([kymo_bin, *command, *options, trace], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE)
    child.stdout.read(1)
    os.truncate(trace / "channel_1", 5000)
    out, errors = child.communicate()
    assert child.returncode == 1, errors
    assert b"channel_1: the file was cut while it was read: it had " in errors
    assert errors.count(b"kymo: ") == 1 + errors.count(b"warning"), errors
    assert out
