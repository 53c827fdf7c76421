# SPDX-License-Identifier: MIT
"""Hosts and guests: clocks by the counter that they share, guests' CPUs and the host's threads, stolen time; what NTP says of clocks.

The traces are of a real virtual machine of KVM, recorded on its host and in it (guest_machine.py).
"""

import bisect
import collections
import json
import os
import re
import shutil
import subprocess
import time
import uuid

import pytest

import oracle_figures

S = 10**9
IDLE = 0
QEMU = "qemu-system-x86_64"


@pytest.fixture
def pair(root_dir, tmp_path):
    """Copies of the host's and the guest's trace, without what other tests found about their clocks."""
    found = [shutil.copytree(os.path.join(root_dir, "test", "data", "guests", name), tmp_path / name) for name in ("host", "guest")]
    return [str(path) for path in found]


def edit(trace, *changes):
    """(pattern, function of the number) of the metadata of a trace."""
    for folder, _, files in os.walk(trace):
        if "metadata" not in files:
            continue
        path = os.path.join(folder, "metadata")
        with open(path, encoding="latin-1") as file:
            text = file.read()
        for pattern, change in changes:
            text, n = re.subn(rf'(\b{pattern} = )"?(-?\d+)"?;', lambda found, change=change: f"{found[1]}{change(int(found[2]))};", text)
            assert n, pattern
        with open(path, "w", encoding="latin-1") as file:
            file.write(text)
    return trace


def another(trace):
    """The trace with another UUID: it is not the same one any more."""
    for folder, _, files in os.walk(trace):
        if "metadata" not in files:
            continue
        with open(os.path.join(folder, "metadata"), encoding="latin-1") as file:
            text = re.search(r'uuid = "([0-9a-f-]{36})"', file.read())[1]
        old, new = uuid.UUID(text), uuid.uuid4()
        for name in files:
            path = os.path.join(folder, name)
            with open(path, "rb") as file:
                data = file.read()
            with open(path, "wb") as file:
                file.write(data.replace(old.bytes, new.bytes).replace(str(old).encode(), str(new).encode()))
    return trace


def sync(kymo, *args):
    return json.loads(kymo("sync", "--json", *args).out)


def events(kymo, *traces):
    return oracle_figures.load(kymo("convert", "--to", "json", *traces).out)


def times(kymo, trace):
    return [event.ns for event in events(kymo, trace)]


# ---- clocks ------------------------------------------------------------------------------------------

def test_the_counter_tells_the_guests_clock(kymo, pair):
    host, guest = pair
    result = sync(kymo, host, guest)
    [found] = result["pairs"]
    assert (found["quality"], found["source"], found["in_tree"]) == ("ACCURATE", "tsc", True)
    assert found["bound_ns"] < 2000
    assert found["events_checked"] == found["events_inside"] > 100
    assert "between entry and exit" in kymo("sync", host, guest).out
    # All events of the guest, not only those of the sample, and to all sides of them.
    bound = max(result["machines"][1][name] for name in ("begin_bound_ns", "end_bound_ns"))
    stays = collections.defaultdict(list)
    for event in events(kymo, host):
        if event.name == "kvm_x86_entry":
            stays[event.fields["vcpu_id"]].append([event.ns, None])
        elif event.name == "kvm_x86_exit" and stays[event.fields["vcpu_id"]]:
            stays[event.fields["vcpu_id"]][-1][1] = event.ns
    slack = []
    for event in events(kymo, guest):
        known = [stay for stay in stays[event.cpu] if stay[1]]
        at = bisect.bisect([begin for begin, _ in known], event.ns) - 1
        if 0 <= at < len(known) - 1:
            slack.append((event.ns - known[at][0], known[at][1] - event.ns))
    assert len(slack) > 500
    assert all(before >= -bound and after >= -bound for before, after in slack)
    # A shift of a tenth of a millisecond would show.
    assert min(before for before, _ in slack) < 10**5 and min(after for _, after in slack) < 10**5


def test_other_clocks_of_the_guest_make_no_difference(kymo, pair, tmp_path):
    """The truth is known to the ns: the same events by a clock that is hours off and runs 80 ppm faster."""
    host, guest = pair
    sync(kymo, host, guest)
    true = times(kymo, guest)
    other = edit(shutil.copytree(guest, tmp_path / "other"), ("offset_s", lambda s: s - 7200), (r"\bfreq", lambda hz: hz - 80_000))
    raw = times(kymo, other)
    assert min(abs(a - b) for a, b in zip(raw, true)) > 7000 * S
    [found] = sync(kymo, host, other)["pairs"]
    assert found["source"] == "tsc"
    assert max(abs(a - b) for a, b in zip(times(kymo, other), true)) <= 2


def test_a_machine_that_is_no_guest(kymo, pair, tmp_path):
    """Its counter is another one: its events are not between entries and exits."""
    host, guest = pair
    other = edit(shutil.copytree(guest, tmp_path / "other"), ("clock_(?:begin|end)_tsc", lambda tsc: tsc + 100_000_000))
    done = kymo("sync", host, other)
    assert "ABSENT" in done.out and "stay as they are" in done.err
    # Of both, the right one.
    result = sync(kymo, host, other, guest)
    assert [(one["a"], one["b"]) for one in result["pairs"]] == [(result["machines"][0]["machine"], result["machines"][2]["machine"])]


def test_hostile_statements(kymo, pair):
    host, guest = pair
    for change in (lambda n: -n, lambda n: 2**63 - 1, lambda n: -2**63):
        for what in ("tsc", "cycles", "tsc_error_ns", "wall_ns", "utc_error_ns", "utc_synchronized"):
            edit(guest, (f"clock_begin_{what}", change), (f"clock_end_{what}", change))
        result = sync(kymo, host, guest)
        assert not any(one["source"] == "tsc" for one in result["pairs"])


def test_utc_by_ntp(kymo, pair, tmp_path):
    """What NTP says at begin and end: the difference, with the sum of both errors, where nothing better is known."""
    host, guest = pair
    machines = [host]
    for number, (ahead_s, error_ns) in enumerate(((0, 3_000_000), (5, 4_000_000), (-3, 9_000_000), (40, 1_000_000))):
        trace = host if not number else shutil.copytree(host, tmp_path / f"machine{number}")
        edit(trace, ("clock_(?:begin|end)_utc_synchronized", lambda _: 1), ("clock_(?:begin|end)_utc_error_ns", lambda _, e=error_ns: e),
             ("offset_s", lambda s, a=ahead_s: s + a))
        machines += [str(trace)] if number else []
    edit(machines[3], ("clock_(?:begin|end)_utc_synchronized", lambda _: 0))
    result = sync(kymo, "--mark", "none:none", *machines)
    found = {one["b"]: one for one in result["pairs"]}
    assert set(found) == {machines[1], machines[2]} or len(found) == 2
    for number, (ahead_s, error_ns) in ((1, (5, 4_000_000)), (2, (-3, 9_000_000))):
        machine = result["machines"][number]
        assert (machine["quality"], found[machine["machine"]]["source"]) == ("APPROXIMATE", "utc")
        assert abs(machine["shift_ns"] + ahead_s * S) < 100_000
        assert 3_000_000 + error_ns <= found[machine["machine"]]["bound_ns"] < 3_000_000 + error_ns + 200_000
    assert result["machines"][3]["quality"] == "ABSENT"
    assert "by UTC" in kymo("sync", *machines).out
    # The guest follows its host, which follows a machine that only knows UTC.
    far = edit(another(shutil.copytree(guest, tmp_path / "far")), ("clock_(?:begin|end)_tsc_error_ns", lambda _: 1 << 62),
               ("clock_(?:begin|end)_utc_synchronized", lambda _: 1), ("clock_(?:begin|end)_utc_error_ns", lambda _: 1_000_000))
    result = sync(kymo, far, host, guest)
    names = [machine["machine"] for machine in result["machines"]]
    assert [machine.get("by") for machine in result["machines"]] == [None, names[0], names[1]]
    assert [machine["quality"] for machine in result["machines"]] == ["ACCURATE", "APPROXIMATE", "APPROXIMATE"]


def ptp(root_dir, name, ns, *changes, more=()):
    """What ptp4l said, at other times: one line each 100 ms from @ns on."""
    with open(os.path.join(root_dir, "test", "data", "ptp", name + ".log"), encoding="ascii") as file:
        lines = [line.split(" ", 1)[1].rstrip("\n") for line in file] + [f"{name} {line}" for line in more]
    text = "\n".join(lines)
    for pattern, change in changes:
        text, n = re.subn(pattern, change, text)
        assert n, pattern
    times = [ns + number * S // 10 for number in range(len(lines))]
    return "".join(f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(at // S))}.{at % S // 1000:06d}Z {line}\n"
                   for at, line in zip(times, text.split("\n")))


def test_logs_of_ptp(kymo, pair, root_dir, tmp_path):
    """What a real ptp4l wrote (test/data/ptp): the true offset is 0, or what the clocks were moved by."""
    web, db = str(tmp_path / "web.log"), str(tmp_path / "db.log")

    def logs(*args, **options):
        for path, name in ((web, "web"), (db, "db")):
            with open(path, "w", encoding="ascii") as file:
                file.write(ptp(root_dir, name, 1795000000 * S, *(args if name == "db" else ()), **(options if name == "db" else {})))
        result = sync(kymo, web, db)
        return result["machines"][1], result["pairs"]

    def is_known(machine, pairs, ns, most=20_000):
        assert (machine["quality"], pairs[0]["source"]) == ("APPROXIMATE", "ptp")
        assert abs(machine["shift_ns"] - ns) <= pairs[0]["bound_ns"] < most

    def behind(found):
        return f"master offset {int(found[1]) + 3 * S}"

    is_known(*logs(), 0)
    is_known(*logs((r"master offset +(-?\d+)", behind)), -3 * S)
    is_known(*logs(more=["ptp4l: [1.0] rms  261 max 9476 freq    -36 +/- 105 delay  2238 +/- 166"]), 0, 40_000)
    # Before a step of the clock, it was another one.
    step = "ptp4l: [1.0] master offset 5000000000 s1 freq +1 path delay 2000"
    is_known(*logs(more=["ptp4l: [1.0] master offset 5000000000 s0 freq +1 path delay 2000", step, step.replace("5000000000 s1", "70 s2")]), 0, 3000)
    # Of a network card's clock, until phc2sys tells how far the system's clock is from it.
    card = "ptp4l: [1.0] selected /dev/ptp0 as PTP clock"
    assert logs(more=[card])[0]["quality"] == "ABSENT"
    is_known(*logs(more=[card, "phc2sys: [1.0] CLOCK_REALTIME phc offset 1000000 s2 freq -12 delay 512"]), -1_000_000)
    is_known(*logs(more=[card, "phc2sys: [1.0] eth0 sys offset -1000000 s2 freq -12 delay 512"]), -1_000_000)
    is_known(*logs(more=[card, "phc2sys: [1.0] CLOCK_REALTIME rms 200 max 900 freq -1 +/- 2 delay 512 +/- 9"]), 0, 40_000)
    # Of another grandmaster; and lines that nobody wrote.
    assert logs((r"selected best master clock \S+", "selected best master clock 001122.fffe.334455"))[0]["quality"] == "ABSENT"
    for number in ("99999999999999999999", "-9223372036854775808", "4611686018427387904", "", "x"):
        machine, _ = logs(more=[f"ptp4l: master offset {number} s2 freq 1 path delay {number}", f"ptp4l: rms {number} max {number} freq 1 +/- 1 delay {number}",
                                f"phc2sys: CLOCK_REALTIME phc offset {number} s2 freq 1 delay {number}"])
        assert machine["quality"] in ("ABSENT", "APPROXIMATE")

    # Beside recordings, whose clocks are not the system's: that of the second one is 5 s ahead of it, and it is 2 s ahead of the grandmaster.
    machines = []
    begin = events(kymo, pair[0])[0].ns
    for name, args in (("web", ()), ("db", ((r"master offset +(-?\d+)", lambda found: f"master offset {int(found[1]) + 2 * S}"),))):
        machine = tmp_path / name
        trace = shutil.copytree(pair[0], machine / "trace")
        if args:
            edit(another(trace), ("offset_s", lambda s: s + 5))
        (machine / "ptp.log").write_text(ptp(root_dir, name, begin, *args), encoding="ascii")
        machines += [str(machine), str(machine / "ptp.log")]
    result = sync(kymo, "--mark", "none:none", *machines)
    assert len(result["machines"]) == 2
    is_known(result["machines"][1], result["pairs"], -7 * S, 600_000)
    assert "by PTP" in kymo("sync", *machines).out


# ---- the report --------------------------------------------------------------------------------------

class Thread:
    """Of the host: when it was off its CPU, from its switches and wake-ups."""

    def __init__(self, tid, host):
        self.waited, self.blocked = [], []
        off = ready = early = None
        for event in host:
            fields = event.fields
            if event.name == "sched_switch" and fields["prev_tid"] == tid:
                off, ready = event.ns, event.ns if oracle_figures.number(fields["prev_state"]) in (0, 256) else None
            elif event.name == "sched_waking" and fields["tid"] == tid and not off:
                early = event  # in time, unless it ran on and a later one wakes it
            elif event.name == "sched_waking" and fields["tid"] == tid and not ready:
                ready = event.ns
                self.blocked.append((off, ready))
            elif event.name == "sched_switch" and fields["next_tid"] == tid:
                if ready or (early and off):
                    self.waited.append((ready or off, event.ns, event.cpu))
                off = ready = early = None


class Guest:
    """What its CPUs ran: [(ns, tid)]."""

    def __init__(self, found):
        self.runs = collections.defaultdict(list)
        for event in found:
            if event.name == "sched_switch":
                if not self.runs[event.cpu]:  # what ran before it
                    self.runs[event.cpu].append((found[0].ns, event.fields["prev_tid"]))
                self.runs[event.cpu].append((event.ns, event.fields["next_tid"]))

    def running(self, cpu, ns):
        """None where it is not known."""
        at = bisect.bisect(self.runs[cpu], (ns, 1 << 40)) - 1
        return self.runs[cpu][at][1] if at >= 0 else None

    def busy(self, cpu, begin, end):
        runs = self.runs[cpu] + [(end, IDLE)]
        return sum(max(0, min(b[0], end) - max(a[0], begin)) for a, b in zip(runs, runs[1:]) if a[1] != IDLE)


def test_stolen_time(kymo, pair):
    host, guest = pair
    sync(kymo, host, guest)
    report = oracle_figures.tables(kymo("report", "guests", "--json", "--limit", "0", "-t", "cpus", "-t", "instead", "-t", "top", "-t", "log",
                                        host, guest), "guests")
    found = events(kymo, host)
    inner = Guest(events(kymo, guest))
    assert [row["cpu"] for row in report["cpus"]] == [0, 1]
    stolen_of = {}
    for row in report["cpus"]:
        thread = Thread(row["thread"]["tid"], found)
        sums = collections.Counter()
        for begin, end, _cpu in thread.waited:
            running = inner.running(row["cpu"], begin)
            sums["waited"] += end - begin
            sums["unknown" if running is None else "stolen" if running != IDLE else "late"] += end - begin
        for begin, end in thread.blocked:
            sums["blocked"] += (end - begin) * (inner.running(row["cpu"], begin) not in (None, IDLE))
        assert row["guest"] == "guest" and row["host"] == "host"
        assert (row["waited"], row["stolen"], row["blocked"], row["late"]) == \
            (sums["waited"], sums["stolen"], sums["blocked"], sums["late"])
        assert row["stolen"] > S // 10 and row["longest"] <= row["stolen"]
        stolen_of[row["cpu"]] = sums["stolen"]
        entries = [event for event in found if event.name in ("kvm_x86_entry", "kvm_x86_exit") and event.fields["vcpu_id"] == row["cpu"]]
        assert row["exits"] == sum(event.name == "kvm_x86_exit" for event in entries)
        assert row["in_guest"] == sum(b.ns - a.ns for a, b in zip(entries, entries[1:]) if b.name == "kvm_x86_exit")
        # A CPU's record begins a bit before the first event of all.
        busy = inner.busy(row["cpu"], found[0].ns, found[-1].ns)
        assert abs(row["busy"] - busy) <= 0.02 * busy and oracle_figures.close(row["share"], row["stolen"] / row["busy"])
    instead = collections.Counter()
    for row in report["instead"]:
        assert row["guest"] == "guest" and 0 <= row["stolen"] <= row["time"]
        instead[row["cpu"]] += row["stolen"]
    # Switches take their time, and a CPU is idle for a moment before it takes up a thread.
    for cpu, stolen in stolen_of.items():
        assert 0.9 * stolen <= instead[cpu] <= stolen
    assert "hog" in [row["process"]["name"] for row in sorted(report["instead"], key=lambda row: -row["time"])[:6]]
    check_single(report, inner)


def check_single(report, inner):
    """Each single time."""
    log = report["log"]
    for row in log:
        assert row["guest"] == "guest" and row["running"]["tid"] == inner.running(row["cpu"], row["begin"])
        assert (row["instead"] is None) == (row["instead_time"] is None) and (row["why"] == "stolen" or row["instead"] is None)
        assert (row["instead_time"] or 0) <= row["duration"]
    for row in report["cpus"]:
        of_cpu = [one for one in log if one["cpu"] == row["cpu"]]
        assert sum(one["duration"] for one in of_cpu if one["why"] == "stolen") == row["stolen"]
        assert sum(one["duration"] for one in of_cpu if one["why"] == "blocked") == row["blocked"]
        assert max(one["duration"] for one in of_cpu if one["why"] == "stolen") == row["longest"]
    assert [row["duration"] for row in report["top"]] == sorted((row["duration"] for row in log), reverse=True)


def test_sql(kymo, pair, tmp_path):
    """Tables vcpu and vcpu_off have the report's figures; who ran instead follows from cpu_state."""
    host, guest = pair
    sync(kymo, host, guest)
    report = oracle_figures.tables(kymo("report", "guests", "--json", "--limit", "0", "-t", "cpus", "-t", "instead", "-t", "log", host, guest), "guests")

    def query(statement, *traces):
        return json.loads(kymo("query", "--json", *(traces or (host, guest)), statement).out)

    names = ("in_guest", "exits", "busy", "stolen", "blocked", "late", "waited")
    rows = query("SELECT * FROM vcpu ORDER BY guest_cpu")
    for row, wanted in zip(rows, report["cpus"], strict=True):
        assert (row["guest"], row["guest_cpu"], row["host"], row["tid"]) == ("guest", wanted["cpu"], "host", wanted["thread"]["tid"])
        assert [row[name] for name in names] == [wanted[name] for name in names]
    rows = query("SELECT * FROM vcpu_off WHERE why IN ('stolen', 'blocked') ORDER BY time, guest_cpu")
    logs = sorted(report["log"], key=lambda row: (row["begin"], row["cpu"]))
    for row, wanted in zip(rows, logs, strict=True):
        assert (row["time"], row["duration"], row["guest_cpu"], row["why"]) == tuple(wanted[name] for name in ("begin", "duration", "cpu", "why"))
        assert row["guest_tid"] == wanted["running"]["tid"] and row["who_duration"] == wanted["instead_time"]
        assert row["who_tid"] == (wanted["instead"] and wanted["instead"]["tid"]) and row["end"] - row["time"] == row["duration"]
    sums = query("SELECT guest_cpu, sum(duration) FILTER (WHERE why = 'late') AS late, sum(duration) FILTER (WHERE cpu IS NOT NULL) AS waited "
                 "FROM vcpu_off GROUP BY guest_cpu ORDER BY guest_cpu")
    assert [(row["late"], row["waited"]) for row in sums] == [(row["late"], row["waited"]) for row in report["cpus"]]
    found = query("""SELECT o.guest_cpu AS cpu, s.tid AS tid, sum(overlap(o.time, o."end", s.time, s."end")) AS ns FROM vcpu_off o JOIN cpu_state s
                     ON s.host = o.host AND s.cpu = o.cpu AND s.time < o."end" AND s."end" > o.time WHERE o.why = 'stolen' AND s.tid != o.tid
                     GROUP BY o.guest_cpu, s.tid""")
    assert {(row["cpu"], row["tid"]): row["ns"] for row in found} == \
        {(row["cpu"], row["process"]["tid"]): row["stolen"] for row in report["instead"] if row["stolen"]}
    # A condition on the host keeps the guest's trace; without that trace, guests have no name.
    assert len(query("SELECT * FROM vcpu WHERE host = 'host' AND guest = 'guest'")) == 2
    assert [(row["guest"], row["stolen"]) for row in query("SELECT * FROM vcpu", host)] == 2 * [(None, None)]
    assert not query("SELECT * FROM vcpu_off", guest)
    store = str(tmp_path / "fleet")
    kymo("fleet", "load", "--to", store, "-t", "vcpu*", host)
    [row] = json.loads(kymo("query", "--json", "--fleet", store, "SELECT count(*) AS n, sum(duration) AS ns FROM vcpu_off").out)
    assert row == query("SELECT count(*) AS n, sum(duration) AS ns FROM vcpu_off", host)[0] and row["n"] > 100


def test_trace_cmds_pairs(kymo, pair, tmp_path):
    """trace-cmd's files of host and guest have one clock already."""
    host, guest = pair
    sync(kymo, host, guest)
    files = [str(tmp_path / "host.dat"), str(tmp_path / "guest.dat")]
    for trace, file in zip((host, guest), files):
        kymo("convert", "--to", "trace.dat", "-o", file, trace)
    wanted, found = (oracle_figures.tables(kymo("report", "guests", "--json", *traces), "guests")["cpus"] for traces in ((host, guest), files))
    assert len(found) == 2 and all(row["guest"] for row in found)
    for a, b in zip(wanted, found):
        assert (a["cpu"], a["thread"]["tid"], a["exits"]) == (b["cpu"], b["thread"]["tid"], b["exits"])
        assert (a["stolen"], a["waited"], a["in_guest"]) == (b["stolen"], b["waited"], b["in_guest"])


def test_a_part_and_what_is_missing(kymo, pair):
    host, guest = pair
    sync(kymo, host, guest)
    whole = oracle_figures.tables(kymo("report", "guests", "--json", host, guest), "guests")["cpus"]
    half = oracle_figures.tables(kymo("report", "guests", "--json", "--begin", "-2s", host, guest), "guests")["cpus"]
    assert all(0 < b["exits"] < a["exits"] and b["waited"] <= a["waited"] and b["busy"] < a["busy"] for a, b in zip(whole, half))
    one = kymo("report", "guests", "--json", "--cpu", "1", host, guest)
    assert [row["cpu"] for row in oracle_figures.tables(one, "guests")["cpus"]] == [1]
    alone = kymo("report", "guests", host)
    assert "the guest's trace of 2 CPUs is not known" in alone.out and "Waited" in alone.out
    apart = kymo("report", "guests", "--no-sync", host, guest)
    assert "its clock is not the host's" in apart.out
    assert "no thread runs a CPU of a virtual machine" in kymo("report", "guests", guest).out


# ---- a machine that is there ------------------------------------------------------------------------

@pytest.fixture
def paused_vm(needs_root_tracefs):
    """A virtual machine that never runs: KVM has its CPUs, and the kernel tells of them."""
    if not os.access("/dev/kvm", os.R_OK | os.W_OK) or not shutil.which(QEMU):
        pytest.skip(f"needs /dev/kvm and {QEMU}")
    with subprocess.Popen([QEMU, "-accel", "kvm", "-cpu", "qemu64", "-smp", "2", "-m", "32", "-S", "-display", "none", "-nodefaults",
                           "-no-user-config"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as qemu:
        until = time.monotonic() + 60
        while not (seen := [name for name in os.listdir("/sys/kernel/debug/kvm")
                            if name.startswith(f"{qemu.pid}-") and os.path.isdir(f"/sys/kernel/debug/kvm/{name}/vcpu1")]
                   if os.path.isdir("/sys/kernel/debug/kvm") else []):
            if qemu.poll() is not None or time.monotonic() > until:
                qemu.kill()
                pytest.skip(f"no virtual machine here, or no debugfs: {qemu.stdout.read().decode()}")
            time.sleep(0.05)
        assert len(seen) == 1
        yield qemu.pid
        qemu.kill()


def test_the_state_dump_knows_guests(kymo, paused_vm, tmp_path):
    """By the same counter, a copy of the trace is a guest's: with the offset that KVM has for this machine, its truth is known."""
    host = tmp_path / "host"
    kymo("record", "-o", host, "-k", "sched_switch", "--clock", "tsc", "--", "true")
    dumped = [event.fields for event in events(kymo, host) if event.name == "lttng_statedump_kvm_vcpu" and event.fields["vm"] == paused_vm]
    assert sorted(fields["vcpu_id"] for fields in dumped) == [0, 1]
    assert dumped[0]["tsc_offset"] == dumped[1]["tsc_offset"] and dumped[0]["tsc_ratio_bits"] in range(64)
    # The guest's events: with its offset, of another wall clock. Nothing checks them here.
    offset = dumped[0]["tsc_offset"]
    guest = edit(another(shutil.copytree(host, tmp_path / "guest")), ("offset_s", lambda s: s + 3), (r"\boffset", lambda n: n - offset))
    true = times(kymo, host)
    [found] = sync(kymo, host, guest)["pairs"]
    assert (found["quality"], found["source"], found["events_checked"]) == ("APPROXIMATE", "tsc", 0)
    if dumped[0]["tsc_ratio"] == 1 << dumped[0]["tsc_ratio_bits"] and offset == 0:
        assert max(abs(a - b) for a, b in zip(times(kymo, guest), true)) <= 4
