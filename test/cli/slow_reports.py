# SPDX-License-Identifier: MIT
"""Reports computed a second time, in plain Python, from `kymo convert --to json`.

Shares nothing with src/analysis, and keeps every duration, so that percentiles are exact. The rules
are those of docs/reports; it is written to be read, not to be fast.
"""

import collections
import json
import math
import re
import statistics

Event = collections.namedtuple("Event", "ns cpu name context fields")


def load(text):
    """Events of JSON lines."""
    found = []
    for line in text.splitlines():
        event = json.loads(line)
        context = dict(event.get("stream_context") or {})
        context.update(event.get("context") or {})
        found.append(Event(event["timestamp_ns"], (event.get("packet") or {}).get("cpu_id"),
                           event["event"], context, event.get("fields") or {}))
    return found


def tables(result, report):
    """{table name: rows} of one report of `kymo report --json`."""
    reports = {r["name"]: r for r in json.loads(result.out)["reports"]}
    return {t["name"]: t["rows"] for t in reports[report]["tables"]}


def close(a, b, relative=1e-9):
    return abs(a - b) <= relative * max(abs(a), abs(b), 1e-300)


def percentile(durations, percent):
    """Nearest-rank."""
    ordered = sorted(durations)
    return ordered[max(math.ceil(percent * len(ordered) / 100 - 1e-9), 1) - 1]


def check_stats(row, durations):
    """The columns that all statistics have."""
    assert row["count"] == len(durations)
    if not durations:
        assert row["total"] is None and row["p50"] is None
        return
    assert row["total"] == sum(durations)
    assert (row["min"], row["max"]) == (min(durations), max(durations))
    assert close(row["avg"], statistics.fmean(durations))
    if len(durations) > 1:
        assert close(row["stdev"], statistics.stdev(durations), 1e-7)
    else:
        assert row["stdev"] is None
    for name, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9)):
        want = percentile(durations, percent)
        if len(durations) <= 32:
            assert row[name] == want
        else:
            assert abs(row[name] - want) <= want / 128 + 1


def steps(durations):
    """{(from, to): count} in steps of 1, 2 and 5 times powers of ten, without the empty ones."""
    found = collections.Counter()
    for duration in durations:
        if duration == 0:
            found[0, 1] += 1
            continue
        power = 10 ** (len(str(duration)) - 1)
        low = max(part for part in (1, 2, 5) if part * power <= duration)
        found[low * power, {1: 2, 2: 5, 5: 10}[low] * power] += 1
    return found


def check_freq(rows, durations):
    assert {(row["from"], row["to"]): row["count"] for row in rows if row["count"]} == \
        steps(durations)
    assert [row["from"] for row in rows] == sorted(row["from"] for row in rows)
    for row in rows:
        assert close(row["share"], row["count"] / len(durations))


def number(value):
    """Enumerations are told as {"value": ...} or as numbers."""
    return value["value"] if isinstance(value, dict) else value


# ---- waiting for a CPU -------------------------------------------------------------------------

Wait = collections.namedtuple("Wait", "begin end kind tid cpu prio waker")


class Running:
    """What runs on the CPUs, as far as events tell."""

    def __init__(self):
        self.current = {}      # cpu -> tid, 0: idle
        self.missing = set()   # CPUs of which a switch is known to be missing

    def see(self, event):
        """Conclude from an event's context. Returns the thread that was found to run, or None.

        A context counts where the CPU is unknown, for system calls, and once switches are missing;
        a state dump's does not, as a recorder may write it on its own.
        """
        tid, cpu = event.context.get("tid"), event.cpu
        if event.name == "sched_switch":
            tid = event.fields["prev_tid"]
        elif event.name.startswith("lttng_statedump_") or cpu in self.current and \
                cpu not in self.missing and not event.name.startswith("syscall_"):
            return None
        if tid is None or self.current.get(cpu) == tid:
            return None
        if cpu in self.current:
            self.missing.add(cpu)
        self.current[cpu] = tid
        return tid


class Wakings:
    """sched_wakeup follows the sched_waking that began it, where those are recorded: else that was lost."""

    def __init__(self):
        self.any, self.announced = False, set()

    def is_whole(self, event):
        tid, announced = event.fields["tid"], event.fields["tid"] in self.announced
        self.announced.discard(tid)
        if event.name == "sched_waking":
            self.any = True
            self.announced.add(tid)
        return event.name != "sched_wakeup" or announced or not self.any


def waits(events):
    """Waits for a CPU, in the order of their ends."""
    running, wakings, waiting, found = Running(), Wakings(), {}, []
    for event in events:
        fields, cpu = event.fields, event.cpu
        waiting.pop(running.see(event), None)
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            woken, whole = fields["tid"], wakings.is_whole(event)
            if woken not in running.current.values() and woken not in waiting:
                waiting[woken] = (event.ns, "woken", event.context.get("tid") or None) if whole else None
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            waiting.pop(prev, None)
            running.current[cpu] = following
            if prev and number(fields["prev_state"]) & 0xff == 0:
                waiting[prev] = (event.ns, "preempted", None)
            wait = waiting.pop(following, None)
            if wait:
                begin, kind, waker = wait
                found.append(Wait(begin, event.ns, kind, following, cpu, fields["next_prio"],
                                  waker))
    return found


def check_sched(report, events):
    found = waits(events)
    by_tid = collections.defaultdict(list)
    for wait in found:
        by_tid[wait.tid].append(wait)
    rows = {row["process"]["tid"]: row for row in report["threads"]}
    if len(rows) == len(report["threads"]):  # no id was used twice
        assert set(rows) == set(by_tid)
        for tid, row in rows.items():
            check_stats(row, [w.end - w.begin for w in by_tid[tid] if w.kind == "woken"])
            off = [w.end - w.begin for w in by_tid[tid] if w.kind == "preempted"]
            assert (row["preempted"], row["preempted_time"]) == (len(off), sum(off))
    for row in report["total"]:
        durations = [w.end - w.begin for w in found if w.kind == row["kind"]]
        check_stats(row, durations)
        check_freq([r for r in report["freq"] if r["kind"] == row["kind"]], durations)
    for row in report["cpus"]:
        there = [w for w in found if w.cpu == row["cpu"]]
        assert row["waits"] == len(there)
        assert row["total"] == sum(w.end - w.begin for w in there)
        assert row["preempted"] == sum(w.kind == "preempted" for w in there)
        assert close(row["mean_queue"], row["total"] / (events[-1].ns - events[0].ns))
    assert [as_wait(row) for row in report["log"]] == found
    longest = sorted(found, key=lambda w: w.begin - w.end)[:10]
    assert [as_wait(row) for row in report["top"]] == longest


def as_wait(row):
    assert row["duration"] == row["end"] - row["begin"]
    return Wait(row["begin"], row["end"], row["kind"], row["process"]["tid"], row["cpu"],
                row["prio"], row["waker"] and row["waker"]["tid"])


# ---- interrupts ----------------------------------------------------------------------------------

Run = collections.namedtuple("Run", "raised begin end cpu kind nr name nested")
SOFTIRQS = "HI TIMER NET_TX NET_RX BLOCK IRQ_POLL TASKLET SCHED HRTIMER RCU".split()


def irq_event(event):
    """(kind, number, name, what) of an interrupt's event, or None."""
    match = re.fullmatch(r"irq_handler_(entry|exit)", event.name)
    if match:
        return "hard", event.fields["irq"], event.fields.get("name"), match.group(1)
    match = re.fullmatch(r"(?:irq_)?softirq_(raise|entry|exit)", event.name)
    if match:
        vec = event.fields["vec"]
        return "soft", vec, SOFTIRQS[vec], match.group(1)
    match = re.fullmatch(r"x86_irq_vectors_(.*)_(entry|exit)", event.name)
    if match:
        return "vector", None, match.group(1), match.group(2)
    return None


class Stacks:
    """The interrupts that run on each CPU."""

    def __init__(self):
        self.stacks = collections.defaultdict(list)
        self.raised, self.names = {}, {}

    def see(self, event):
        """The run that this event ends, if it does and its beginning was seen."""
        what = irq_event(event)
        if not what:
            return None
        kind, nr, name, action = what
        if kind == "hard":
            name = self.names[nr] = name or self.names.get(nr, "")
        stack = self.stacks[event.cpu]
        if action == "raise":
            self.raised.setdefault((event.cpu, nr), event.ns)
        elif action == "entry":
            first = self.raised.pop((event.cpu, nr), None) if kind == "soft" else None
            stack.append((kind, nr, name, event.ns, first))
        else:
            at = max((i for i, e in enumerate(stack) if e[:3] == (kind, nr, name)), default=None)
            if at is not None:
                _, _, _, begin, first = stack[at]
                del stack[at:]
                nested = any((e[0] == "soft") == (kind == "soft") for e in stack)
                return Run(first, begin, event.ns, event.cpu, kind, nr, name, nested)
        return None


def interrupts(events):
    """Runs of interrupts, in the order of their ends."""
    stacks = Stacks()
    return [run for run in map(stacks.see, events) if run]


def check_interrupts(report, events, table, soft):
    found = [run for run in interrupts(events) if (run.kind == "soft") == soft]
    by_line = collections.defaultdict(list)
    for run in found:
        by_line[run.kind, run.nr, run.name].append(run)
    rows = {line(row): row for row in report[table]}
    assert set(rows) == set(by_line)
    for key, runs in by_line.items():
        durations = [run.end - run.begin for run in runs]
        check_stats(rows[key], durations)
        assert rows[key]["cpus"] == {str(cpu): n for cpu, n in
                                     collections.Counter(run.cpu for run in runs).items()}
        check_freq([row for row in report["freq"] if line(row) == key], durations)
    for row in report["cpus"]:
        there = [run for run in found if run.cpu == row["cpu"]]
        assert row["count"] == len(there)
        assert row["total"] == sum(run.end - run.begin for run in there if not run.nested)
        assert close(row["share"], row["total"] / (events[-1].ns - events[0].ns))
    assert [as_run(row) for row in report["log"]] == [run[:7] for run in found]
    longest = sorted(found, key=lambda run: run.begin - run.end)[:10]
    assert [as_run(row) for row in report["top"]] == [run[:7] for run in longest]
    if not soft:
        return
    rows = {line(row): row for row in report["latency"]}
    for key, runs in by_line.items():
        latencies = [run.begin - run.raised for run in runs if run.raised is not None]
        if latencies:
            check_stats(rows.pop(key), latencies)
            check_freq([row for row in report["latency_freq"] if line(row) == key], latencies)
    assert not rows


def line(row):
    return row["irq"]["kind"], row["irq"]["nr"], row["irq"]["name"]


def as_run(row):
    assert row["duration"] == row["end"] - row["begin"]
    assert row["latency"] == (row["raise"] and row["begin"] - row["raise"])
    return (row["raise"], row["begin"], row["end"], row["cpu"], *line(row))


# ---- I/O -----------------------------------------------------------------------------------------

KINDS = {
    "open": "open openat openat2 creat socket dup dup2 dup3",
    "read": "read pread64 readv preadv preadv2 recv recvfrom recvmsg recvmmsg",
    "write": "write pwrite64 writev pwritev pwritev2 send sendto sendmsg sendmmsg vmsplice",
    "sync": "fsync fdatasync sync syncfs sync_file_range sync_file_range2 msync",
    "copy": "sendfile sendfile64 splice tee copy_file_range",
}
KIND_OF = {call: kind for kind, calls in KINDS.items() for call in calls.split()}
SPECIAL = """eventfd eventfd2 signalfd signalfd4 timerfd_create epoll_create epoll_create1 inotify_init
inotify_init1 fanotify_init memfd_create userfaultfd perf_event_open io_uring_setup pidfd_open""".split()
CLOEXEC = 0o2000000
Io = collections.namedtuple("Io", "begin end call kind tid ret bytes file to fd")


def file_kind(name):
    if name.startswith("socket:"):
        return "unknown"
    if name.startswith("pipe:"):
        return "pipe"
    other = ("/dev/", "/proc/", "/sys/", "anon_inode:", "/memfd:", "[", "inotify", "/[aio]")
    return "other" if name.startswith(other) else "disk"


def address(fields):
    """The peer that connect() names."""
    octets = fields.get("v4addr") or []
    if len(octets) == 4:
        return ".".join(map(str, octets)) + f":{fields['dport']}"
    octets = fields.get("v6addr") or []
    if len(octets) == 16:
        words = [f"{octets[i] << 8 | octets[i + 1]:x}" for i in range(0, 16, 2)]
        return f"[{':'.join(words)}]:{fields['dport']}"
    return None


class Files:
    """Descriptors of processes: {fd: (name, closed by exec)}; kinds by name."""

    def __init__(self):
        self.pids, self.tables, self.dumped, self.kinds = {}, {}, {}, {}
        self.called = {}
        self.calls = []

    def file(self, name, kind):
        self.kinds.setdefault(name, kind)
        return name

    def table(self, tid):
        return self.tables.setdefault(self.pids.get(tid, tid), {})

    def get(self, tid, fd):
        if not 0 <= fd < 2**31:
            return None
        table = self.table(tid)
        if fd not in table:
            table[fd] = (self.file(f"fd {fd} of {self.pids.get(tid, tid)}", "unknown"), False)
        return table[fd][0]

    def see(self, event):
        fields, tid = event.fields, event.context.get("tid")
        if tid and event.context.get("pid") is not None:
            self.pids.setdefault(tid, event.context["pid"])
        if event.name == "lttng_statedump_process_state":
            self.pids[fields["tid"]] = fields["pid"]
            at = fields.get("file_table_address")
            if at and fields["tid"] == fields["pid"]:
                self.tables[fields["pid"]] = self.dumped.setdefault(at, {})
        elif event.name == "lttng_statedump_file_descriptor":
            name, at = fields["filename"], fields.get("file_table_address")
            table = self.dumped.setdefault(at, {}) if at else self.table(fields["pid"])
            table[fields["fd"]] = (self.file(name, file_kind(name)),
                                   bool(fields["flags"] & CLOEXEC))
        elif event.name == "sched_process_fork":
            child, pid = fields["child_tid"], fields["child_pid"]
            self.pids[child] = pid
            if pid == child:
                self.tables[pid] = dict(self.table(fields["parent_tid"]))
        elif event.name == "sched_process_exec":
            table = self.table(fields["tid"])
            for fd in [fd for fd, (_name, cloexec) in table.items() if cloexec]:
                del table[fd]
        elif event.name == "sched_process_exit":
            if self.pids.get(fields["tid"]) == fields["tid"]:
                self.tables.pop(fields["tid"], None)
            self.called.pop(fields["tid"], None)
        elif tid and event.name.startswith("syscall_entry_"):
            self.enter(tid, event.name[14:], event)
        elif tid and event.name.startswith("syscall_exit_"):
            self.leave(tid, event.name[13:], event)

    def path(self, name):
        """A text that could not be read is told as its address."""
        if not isinstance(name, str) or not name or re.fullmatch("0x[0-9a-fA-F]+", name):
            return None
        return self.file(name, file_kind(name))

    def enter(self, tid, call, event):
        fields, file, to = event.fields, None, None
        if call in ("open", "openat", "openat2", "creat"):
            file = self.path(fields.get("filename", fields.get("pathname")))
        elif KIND_OF.get(call) == "copy":
            file = self.get(tid, fields.get("in_fd", fields.get("fd_in", fields.get("fdin"))))
            to = self.get(tid, fields.get("out_fd", fields.get("fd_out", fields.get("fdout"))))
        elif call in ("dup", "dup2", "dup3"):
            file = self.get(tid, fields["oldfd"] if "oldfd" in fields else fields["fildes"])
        elif call in ("accept", "accept4", "connect", "fcntl") or \
                KIND_OF.get(call) in ("read", "write", "sync") and "fd" in fields:
            file = self.get(tid, fields["fd"])
        if call == "connect" and address(fields):
            to = self.file(address(fields), "net")
        self.called[tid] = (call, event, file, to)

    def leave(self, tid, call, event):
        entered, entry, file, to = self.called.pop(tid, (None, None, None, None))
        if entered != call:
            return
        ret, kind = event.fields["ret"], KIND_OF.get(call)
        if call in ("open", "openat", "openat2", "creat") and file is None:
            file = self.path(event.fields.get("late_filename", event.fields.get("late_pathname")))
        made = self.act(tid, call, entry.fields, file, to, event.fields, ret)
        if not kind:
            return
        if kind == "open":
            file = made if ret >= 0 else file
            fd = ret if ret >= 0 else None
        else:
            args = entry.fields
            fd = args.get("fd", args.get("in_fd", args.get("fd_in"))) if file else None
        moves = kind in ("read", "write", "copy") and call not in ("recvmmsg", "sendmmsg")
        self.calls.append(Io(entry.ns, event.ns, call, kind, tid, ret,
                             ret if moves and ret > 0 else 0, file, to if kind == "copy" else None,
                             fd))

    def act(self, tid, call, entry, file, to, leave, ret):
        """What a call changes; returns the file that it opened."""
        table = self.table(tid)
        if call == "connect" and (ret >= 0 or ret == -115) and to:
            table[entry["fd"]] = (to, False)
        if call == "close" and (ret >= 0 or ret == -4):
            table.pop(entry["fd"], None)
        if ret < 0:
            return None
        if call in ("open", "openat", "openat2", "creat"):
            if file is None:
                table.pop(ret, None)
            else:
                table[ret] = (file, call in ("open", "openat") and bool(entry["flags"] & CLOEXEC))
            return file
        if call == "socket":
            name, kind = {1: ("unix socket", "other"), 16: ("netlink socket", "other"),
                          2: ("internet socket", "net"), 10: ("internet socket", "net")}.get(
                              number(entry.get("family", entry.get("domain"))), ("socket", "net"))
            table[ret] = (self.file(name, kind), bool(number(entry["type"]) & CLOEXEC))
        elif call in ("accept", "accept4"):
            peer = leave.get("v4addr") or []
            name = ".".join(map(str, peer)) + f":{leave['sport']}" if len(peer) == 4 else \
                f"accepted on {file or '?'}"
            kind = self.kinds[file] if file else "unknown"
            table[ret] = (self.file(name, kind), bool(entry.get("flags", 0) & CLOEXEC))
        elif call == "dup":
            table[ret] = (file, False)
        elif call in ("dup2", "dup3"):
            table[entry["newfd"]] = (file, bool(entry.get("flags", 0) & CLOEXEC))
            return file
        elif call == "fcntl" and entry["cmd"] in (0, 1030):
            table[ret] = (file, entry["cmd"] == 1030)
        elif call == "fcntl" and entry["cmd"] == 2:
            table[entry["fd"]] = (self.get(tid, entry["fd"]), bool(entry["arg"] & 1))
        elif call in ("pipe", "pipe2", "socketpair"):
            pair = leave.get("usockvec" if call == "socketpair" else "fildes")
            for fd in pair if isinstance(pair, list) and len(pair) == 2 else ():
                table[fd] = (self.file("pipe", "pipe") if call != "socketpair" else
                             self.file("socket pair", "other"),
                             bool(entry.get("type" if call == "socketpair" else "flags", 0)
                                  & CLOEXEC))
        elif call in SPECIAL:
            table[ret] = (self.file(call, "other"), bool(entry.get("flags", 0) & CLOEXEC)
                          if call in ("eventfd2", "signalfd4", "timerfd_create", "epoll_create1",
                                      "inotify_init1", "userfaultfd") else False)
        elif call == "close_range" and not entry["flags"] & 4:
            for fd in [fd for fd in table if entry["fd"] <= fd <= entry["max_fd"]]:
                del table[fd]
        return table[ret][0] if KIND_OF.get(call) == "open" else None


def files_of(events):
    files = Files()
    for event in events:
        files.see(event)
    return files


Request = collections.namedtuple("Request", "dev sectors write read discard queued issued end tid")


def letters(rwbs, letter, bit):
    return letter in rwbs if isinstance(rwbs, str) else bool(rwbs & bit)


def requests(events):
    """Requests of block devices, in the order of their completion."""
    under_way, found = {}, []
    for event in events:
        fields = event.fields
        if not event.name.startswith("block_rq_") or not fields.get("nr_sector"):
            continue
        key = fields["dev"], fields["sector"]
        tid = fields.get("tid") or None
        if event.name == "block_rq_insert":
            under_way[key] = [event.ns, None, fields, tid, 0]
        elif event.name == "block_rq_issue":
            old = under_way.get(key)
            if old and old[1] is None:
                under_way[key] = [old[0], event.ns, fields, old[3], fields["nr_sector"]]
            else:
                under_way[key] = [None, event.ns, fields, tid, fields["nr_sector"]]
        elif event.name == "block_rq_requeue" and key in under_way:
            under_way[key][1] = None
        elif event.name == "block_rq_merge" and key in under_way and under_way[key][1] is None:
            del under_way[key]
        elif event.name == "block_rq_complete" and key in under_way:
            queued, issued, about, tid, left = under_way.pop(key)
            if fields["nr_sector"] < left and not fields["error"]:
                under_way[key[0], key[1] + fields["nr_sector"]] = \
                    [queued, issued, about, tid, left - fields["nr_sector"]]
                continue
            found.append(Request(key[0], about["nr_sector"], letters(about["rwbs"], "W", 1),
                                 letters(about["rwbs"], "R", 4),
                                 letters(about["rwbs"], "D", 2), queued, issued, event.ns, tid))
    return found


def check_io(report, events):
    files, done = files_of(events), requests(events)
    check_files(report["files"], files)
    sums = collections.defaultdict(collections.Counter)
    for io in files.calls:
        if io.kind == "open":
            continue
        who = sums[files.pids.get(io.tid, -io.tid)]
        who["calls"] += 1
        for file, way in ((io.file, "written" if io.kind == "write" else "read"),
                          (io.to, "written")):
            if io.kind in ("read", "write") and file is io.to or io.kind == "sync":
                continue
            kind = files.kinds.get(file, "unknown")
            who[f"{'other' if kind == 'pipe' else kind}_{way}"] += io.bytes
            who[way] += io.bytes
            who["bytes"] += io.bytes
    for request in done:
        if request.tid:
            who = sums[files.pids.get(request.tid, -request.tid)]
            who["block_read"] += 512 * request.sectors * request.read
            who["block_written"] += 512 * request.sectors * (request.write and not request.read)
    rows = {row["process"]["pid"] if row["process"]["pid"] is not None else -row["process"]["tid"]:
            row for row in report["processes"]}
    assert set(rows) == set(sums)
    for who, row in rows.items():
        for column, value in row.items():
            if column not in ("process", "threads"):
                assert value == sums[who][column], (who, column)
    disks = {e.fields["dev"]: e.fields["diskname"] for e in events
             if e.name == "lttng_statedump_block_device"}
    rows = {row["disk"]: row for row in report["disks"]}
    for dev in {request.dev for request in done}:
        mine = [request for request in done if request.dev == dev]
        row = rows.pop(disks.get(dev, f"{dev >> 20},{dev & 0xfffff}"))
        assert row["requests"] == len(mine)
        assert row["sectors"] == sum(request.sectors for request in mine)
        assert row["read"] == 512 * sum(r.sectors for r in mine if r.read)
        assert row["written"] == 512 * sum(r.sectors for r in mine if r.write and not r.read)
        times = [r.end - r.issued for r in mine if r.issued is not None]
        assert close(row["latency"], statistics.fmean(times))
    assert not rows
    packets = collections.defaultdict(collections.Counter)
    for event in events:
        fields = event.fields
        if event.name == "net_dev_xmit":
            sent = packets[fields["name"]]
            sent["sent"] += fields["len"] * (fields["rc"] == 0)
            sent["packets_out"] += fields["rc"] == 0
        elif event.name in ("net_if_receive_skb", "netif_receive_skb"):
            packets[fields["name"]]["received"] += fields["len"]
            packets[fields["name"]]["packets_in"] += 1
    for row in report["interfaces"]:
        want = packets.pop(row["netif"])
        for column in ("sent", "received", "packets_in", "packets_out"):
            assert row[column] == want[column]
    assert not packets


def check_files(rows, files):
    sums = collections.defaultdict(collections.Counter)
    for io in files.calls:
        for file, kind in ((io.file, "read" if io.kind == "copy" else io.kind), (io.to, "write")):
            if file is None or kind == "write" and io.kind not in ("write", "copy"):
                continue
            mine = sums[file]
            mine["total"] += io.end - io.begin
            mine[kind + "s"] += 1
            if kind in ("read", "write"):
                mine["read" if kind == "read" else "written"] += io.bytes
                mine["bytes"] += io.bytes
    assert {row["file"] for row in rows} == set(sums)
    for row in rows:
        assert row["kind"] == files.kinds[row["file"]]
        for column in ("bytes", "read", "written", "reads", "writes", "opens", "syncs", "total"):
            assert row[column] == sums[row["file"]][column], (row["file"], column)


def as_io(row):
    assert row["duration"] == row["end"] - row["begin"]
    return (row["begin"], row["end"], row["syscall"], row["kind"], row["process"]["tid"],
            row["bytes"], row["file"], row["to"], row["fd"])


def want_io(io):
    shows = io.kind in ("read", "write", "copy") and io.ret >= 0
    return (io.begin, io.end, io.call, io.kind, io.tid, io.bytes if shows else None, io.file, io.to,
            io.fd)


def check_io_log(report, events):
    calls = files_of(events).calls
    assert [as_io(row) for row in report["log"]] == [want_io(io) for io in calls]
    assert [bool(row["error"]) for row in report["log"]] == [-4096 < io.ret < 0 for io in calls]


def check_io_latency(report, events):
    files = files_of(events)
    check_io_log(report, events)
    by_kind, by_thread, by_file = (collections.defaultdict(list) for _ in range(3))
    for io in files.calls:
        by_kind[io.kind].append(io.end - io.begin)
        by_thread[io.tid, io.kind].append(io.end - io.begin)
        if io.file:
            by_file[io.file, io.kind].append(io.end - io.begin)
    assert {row["kind"] for row in report["kinds"]} == set(by_kind)
    for row in report["kinds"]:
        check_stats(row, by_kind[row["kind"]])
        check_freq([r for r in report["freq"] if r["kind"] == row["kind"]], by_kind[row["kind"]])
        longest = sorted((io for io in files.calls if io.kind == row["kind"]),
                         key=lambda io: io.begin - io.end)[:10]
        assert [as_io(r) for r in report["top"] if r["kind"] == row["kind"]] == \
            [want_io(io) for io in longest]
    keys = [(row["process"]["tid"], row["kind"]) for row in report["threads"]]
    assert set(keys) == set(by_thread)
    for key, row in zip(keys, report["threads"]):
        if keys.count(key) == 1:  # no id that was used twice
            check_stats(row, by_thread[key])
    assert {(row["file"], row["kind"]) for row in report["files"]} == set(by_file)
    for row in report["files"]:
        check_stats(row, by_file[row["file"], row["kind"]])
    done = requests(events)
    disks = {e.fields["dev"]: e.fields["diskname"] for e in events
             if e.name == "lttng_statedump_block_device"}
    stages = collections.defaultdict(list)
    for r in done:
        name = disks.get(r.dev, f"{r.dev >> 20},{r.dev & 0xfffff}")
        if r.issued is not None:
            stages[name, "device"].append(r.end - r.issued)
        if r.issued is not None and r.queued is not None:
            stages[name, "queue"].append(r.issued - r.queued)
    assert {(row["disk"], row["stage"]) for row in report["disks"]} == set(stages)
    for row in report["disks"]:
        check_stats(row, stages[row["disk"], row["stage"]])


# ---- block devices -----------------------------------------------------------------------------

def operation(request):
    return "discard" if request.discard else "read" if request.read else \
        "write" if request.write else "other"


def check_block(report, events):
    done = requests(events)
    disks = {e.fields["dev"]: e.fields["diskname"] for e in events
             if e.name == "lttng_statedump_block_device"}
    by_op = collections.defaultdict(list)
    for r in done:
        by_op[disks.get(r.dev, f"{r.dev >> 20},{r.dev & 0xfffff}"), operation(r)].append(r)
    assert {(row["disk"], row["op"]) for row in report["disks"]} == set(by_op)
    queues = {(row["disk"], row["op"]): row for row in report["queue"]}
    for row in report["disks"]:
        mine = by_op[row["disk"], row["op"]]
        check_stats(row, [r.end - r.issued for r in mine if r.issued is not None])
        assert row["bytes"] == 512 * sum(r.sectors for r in mine)
        times = [r.issued - r.queued for r in mine if r.issued is not None and r.queued is not None]
        if times:
            check_stats(queues.pop((row["disk"], row["op"])), times)
    assert not queues
    for disk in {disk for disk, _op in by_op}:
        check_freq([row for row in report["freq"] if row["disk"] == disk],
                   [r.end - r.issued for (name, _op), mine in by_op.items() if name == disk
                    for r in mine if r.issued is not None])
    assert [(row["end"], row["issued"], row["queued"], row["bytes"], row["op"])
            for row in report["log"]] == \
        [(r.end, r.issued, r.queued, 512 * r.sectors, operation(r)) for r in done]
    assert sum(row["requests"] for row in report["processes"]) == len(done)
    assert sum(row["read"] for row in report["processes"]) == \
        512 * sum(r.sectors for r in done if r.read)


# ---- network interfaces ------------------------------------------------------------------------

def check_net(report, events):
    sums, who = (collections.defaultdict(collections.Counter) for _ in range(2))
    for event in events:
        way = {"net_dev_xmit": "sent", "net_if_receive_skb": "received",
               "netif_receive_skb": "received"}.get(event.name)
        if not way:
            continue
        mine = sums[event.fields["name"], way]
        if event.fields.get("rc"):
            mine["failed"] += 1
            continue
        mine["packets"] += 1
        mine["bytes"] += event.fields["len"]
        ran = who[event.context["tid"] or None, event.fields["name"]]
        ran[way] += event.fields["len"]
        ran["packets_" + way] += 1
    for row in report["interfaces"]:
        want = sums[row["netif"], row["way"]]
        assert (row["packets"], row["bytes"], row["failed"]) == \
            (want["packets"], want["bytes"], want["failed"])
        assert close(row["rate"], row["bytes"] * 1e9 / (events[-1].ns - events[0].ns))
        assert row["mean"] is None or close(row["mean"], row["bytes"] / row["packets"])
    assert {key for key in sums if sums[key]} <= \
        {(row["netif"], row["way"]) for row in report["interfaces"]}
    rows = {(row["process"] and row["process"]["tid"], row["netif"]): row
            for row in report["processes"]}
    assert set(rows) == set(who)
    for key, row in rows.items():
        for column in ("sent", "packets_sent", "received", "packets_received"):
            assert row[column] == who[key][column]


# ---- memory ------------------------------------------------------------------------------------

def check_memory(report, events):
    sums, who = collections.Counter(), collections.defaultdict(collections.Counter)
    net = highest = lowest = 0
    rss = {}
    for event in events:
        fields, tid = event.fields, event.context.get("tid") or None
        column = {"kmem_mm_page_alloc": "allocated", "kmem_mm_page_free": "freed",
                  "x86_exceptions_page_fault_user": "user_faults",
                  "x86_exceptions_page_fault_kernel": "kernel_faults"}.get(event.name)
        if column:
            pages = 1 if "faults" in column else 2 ** fields["order"]
            sums[column] += pages
            who[tid][column] += pages
            net += pages if column == "allocated" else -pages if column == "freed" else 0
            highest, lowest = max(net, highest), min(net, lowest)
        elif event.name in ("rss_stat", "kmem_rss_stat"):
            space = rss.setdefault(fields["mm_id"], [None, [0, 0, 0, 0], None, 0])
            if fields["curr"] and tid:
                space[0] = tid
            space[1][number(fields["member"])] = max(fields["size"], 0)
            size = space[1][0] + space[1][1] + space[1][3]
            space[2] = size if space[2] is None else space[2]
            space[3] = max(space[3], size)
    total, = report["total"]
    if sums:
        assert (total["allocated"], total["freed"], total["net"]) == \
            (sums["allocated"], sums["freed"], net)
        assert (total["highest"], total["lowest"]) == (highest, lowest)
    rows = {row["process"] and row["process"]["tid"]: row for row in report["processes"]}
    if len(rows) == len(report["processes"]):  # no id was used twice
        assert set(rows) == set(who)
        for tid, row in rows.items():
            assert (row["allocated"], row["freed"]) == (who[tid]["allocated"], who[tid]["freed"])
            assert row["net"] == row["allocated"] - row["freed"]
    spaces = sorted((first, size[0] + size[1] + size[3], most, size[0], size[1], size[2])
                    for tid, size, first, most in rss.values() if tid)
    assert sorted((row["first"], row["last"], row["highest"], row["file"], row["anonymous"],
                   row["swap"]) for row in report["rss"]) == spaces


# ---- locks -------------------------------------------------------------------------------------

Futex = collections.namedtuple("Futex", "begin end tid address ret waker")


def futexes(events):
    """futex() calls that wait, in the order of their ends."""
    running, stacks, waiting, woken, called, found = Running(), Stacks(), set(), {}, {}, []
    wakings = Wakings()
    for event in events:
        fields, cpu, tid = event.fields, event.cpu, event.context.get("tid")
        waiting.discard(running.see(event))
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            who, whole = fields["tid"], wakings.is_whole(event)
            if who not in running.current.values() and who not in waiting:
                waiting.add(who)
                woken[who] = event.ns, None if stacks.stacks[cpu] or not whole else tid or None
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            running.current[cpu] = following
            waiting -= {prev, following}
            if prev and number(fields["prev_state"]) & 0xff == 0:
                waiting.add(prev)
        elif event.name == "syscall_entry_futex":
            called[tid] = event
        elif event.name.startswith("syscall_entry_"):
            called.pop(tid, None)
        elif event.name == "syscall_exit_futex" and tid in called:
            entry = called.pop(tid)
            if entry.fields["op"] & 0x7f in (0, 6, 9, 11, 13):
                at, waker = woken.get(tid, (0, None))
                ret = fields["ret"]
                found.append(Futex(entry.ns, event.ns, tid, number(entry.fields["uaddr"]), ret,
                                   waker if ret >= 0 and at >= entry.ns else None))
        stacks.see(event)
    return found


def check_locks(report, events):
    found = futexes(events)
    assert [(row["begin"], row["end"], row["process"]["tid"], row["address"],
             row["waker"] and row["waker"]["tid"]) for row in report["log"]] == \
        [(f.begin, f.end, f.tid, f.address, f.waker) for f in found]
    assert [row["result"] == "woken" for row in report["log"]] == [f.ret >= 0 for f in found]
    by_tid, pairs = (collections.defaultdict(list) for _ in range(2))
    for f in found:
        by_tid[f.tid].append(f.end - f.begin)
        if f.waker:
            pairs[f.tid, f.waker].append(f.end - f.begin)
    assert {row["process"]["tid"] for row in report["threads"]} == set(by_tid)
    for row in report["threads"]:
        check_stats(row, by_tid[row["process"]["tid"]])
    assert {(row["waiter"]["tid"], row["waker"]["tid"]) for row in report["pairs"]} == set(pairs)
    for row in report["pairs"]:
        check_stats(row, pairs[row["waiter"]["tid"], row["waker"]["tid"]])
    assert sum(row["count"] for row in report["locks"]) == len(found)
    for column, fits in (("woken", lambda f: f.ret >= 0), ("changed", lambda f: f.ret == -11),
                         ("timed_out", lambda f: f.ret == -110)):
        assert sum(row[column] for row in report["locks"]) == sum(map(fits, found))
    by_lock = collections.defaultdict(list)
    for row in report["log"]:
        by_lock[row["process"]["pid"] or row["process"]["tid"], row["address"]].append(row)
    assert len(report["locks"]) == len(by_lock)
    for row in report["locks"]:
        there = by_lock[row["process"]["pid"] or row["process"]["tid"], row["address"]]
        check_stats(row, [f["duration"] for f in there])
        assert row["waiters"] == len({f["process"]["tid"] for f in there})


# ---- threads -----------------------------------------------------------------------------------

def check_threads(report, events):
    """Times off the CPU, by the same rules as waits; CPU time is report cpu's (test_report.py)."""
    running, off, sums = Running(), {}, collections.defaultdict(collections.Counter)

    def end(tid, ns):
        kind, since = off.pop(tid, (None, 0))
        if kind and ns > since:
            sums[tid][kind] += ns - since

    ended = set()
    for event in events:
        fields, cpu = event.fields, event.cpu
        off.pop(running.see(event), None)
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            woken = fields["tid"]
            if woken not in running.current.values() and off.get(woken, ("",))[0] != "ready":
                end(woken, event.ns)
                off[woken] = "ready", event.ns
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            off.pop(prev, None)
            running.current[cpu] = following
            state = number(fields["prev_state"]) & 0xff
            kind = "ready" if not state else "sleep" if state & 1 else \
                "disk" if state & 2 else "other"
            if prev and not (prev in ended and state):
                off[prev] = kind, event.ns
            if following:
                end(following, event.ns)
                sums[following]["runs"] += 1
        elif event.name == "sched_process_exit":
            ended.add(fields["tid"])
            sums[fields["tid"]]["ended"] += 1
        elif event.name == "sched_process_fork":
            ended.discard(fields["child_tid"])
            sums[fields["child_tid"]]["born"] += 1
    for tid in list(off):
        end(tid, events[-1].ns)
    mine = collections.defaultdict(collections.Counter)
    for row in report["processes"]:
        for column in ("ready", "sleep", "disk", "other", "runs", "born", "ended"):
            mine[row["process"]["tid"]][column] += row[column]
    for tid in set(mine) | set(sums):
        assert +mine[tid] == +sums[tid], tid


# ---- rates of system calls -----------------------------------------------------------------------

def calls(events):
    """(begin, end, call, tid, ret) of calls whose beginning and end were seen."""
    called, found = {}, []
    for event in events:
        match = re.match(r"(compat_)?syscall_(entry|exit)_(.*)", event.name)
        tid = event.context.get("tid")
        if event.name == "sched_process_exit":
            called.pop(event.fields["tid"], None)
        # A thread that is not its process' first takes over that one's id.
        if event.name == "sched_process_exec" and event.fields["old_tid"] in called:
            called[event.fields["tid"]] = called.pop(event.fields["old_tid"])
        if not match or not tid:
            continue
        compat, which, name = match.groups()
        name = f"syscall {event.fields['id']}" if name == "unknown" else name
        name = (compat or "") + name
        if which == "entry":
            called[tid] = name, event.ns
        else:
            entered, begin = called.pop(tid, (None, 0))
            if entered == name:
                found.append((begin, event.ns, name, tid, event.fields["ret"]))
    return found


def check_rates(report, events):
    found = calls(events)
    begin, end = events[0].ns, events[-1].ns
    length = 1000000
    while (end - begin) // length >= 60:
        length *= 2
    steps = collections.defaultdict(list)
    for call in found:
        steps[(call[1] - begin) // length].append(call)
    assert [row["begin"] for row in report["steps"]] == \
        [begin + i * length for i in range(len(report["steps"]))]
    for i, row in enumerate(report["steps"]):
        mine = steps.pop(i, [])
        assert row["count"] == len(mine)
        assert row["failed"] == sum(-4096 < ret < 0 for *_, ret in mine)
        assert row["total"] == sum(to - since for since, to, *_ in mine)
        span = min(length, end - row["begin"])
        assert row["rate"] is None and not span or close(row["rate"], len(mine) * 1e9 / span)
    assert not steps
    for table, key_of, row_key in (
            ("syscalls", lambda call: call[2], lambda row: row["syscall"]),
            ("threads", lambda call: (call[3], call[2]),
             lambda row: (row["process"]["tid"], row["syscall"]))):
        series = collections.defaultdict(collections.Counter)
        for call in found:
            series[key_of(call)][(call[1] - begin) // length] += 1
        assert {row_key(row) for row in report[table]} == set(series)
        keys = [row_key(row) for row in report[table]]
        for row in report[table]:
            mine = series[row_key(row)]
            if keys.count(row_key(row)) > 1:
                continue  # an id that was used twice
            assert row["count"] == sum(mine.values())
            assert close(row["rate"], row["count"] * 1e9 / (end - begin))
            peak = max(mine.values())
            assert close(row["peak"], peak * 1e9 / length)
            assert row["peak_begin"] == begin + length * min(i for i, n in mine.items() if n == peak)
    assert sum(row["count"] for row in report["log"]) == len(found)


# ---- the summary ---------------------------------------------------------------------------------

def check_summary(report, events):
    """Its counts; the words around them are for people."""
    facts = {row["more"]: row["fact"] for row in report["facts"]}
    found = [w for w in waits(events) if w.kind == "woken"]
    if found:
        assert facts["kymo report sched"].startswith(f"{len(found)} wake-ups waited for a CPU")
    done = calls(events)
    failed = sum(-4096 < ret < 0 for *_, ret in done)
    _name, count = collections.Counter(name for _, _, name, *_ in done).most_common(1)[0]
    assert facts["kymo report syscalls"].startswith(
        f"{len(done)} system calls, {failed} failed; most were ")
    assert f"({count})" in facts["kymo report syscalls"]
    files = files_of(events)
    on_disk = [io for io in files.calls if io.file and files.kinds[io.file] == "disk"]
    assert bool(requests(events)) == ("kymo report block" in facts)
    if "kymo report io-latency" in facts:
        assert max(on_disk, key=lambda io: io.end - io.begin).call in facts["kymo report io-latency"]
    if futexes(events):
        assert facts["kymo report locks"].startswith(f"{len(futexes(events))} waits at locks")


# ---- periods that the user defines ---------------------------------------------------------------

# The first is by a field, the second one lies in it, the third is by thread, the last by two fields.
PERIODS = (
    'call : $event =~ "syscall_entry_*" : $event =~ "syscall_exit_*" : by $ctx.tid '
    ": name=$event : failed=ret < 0",
    'off(call) : $event == "sched_switch" : $event == "sched_switch" : by prev_tid = next_tid',
    'stay : $event == "syscall_entry_read" : $event =~ "syscall_exit_*"',
    'soft : $event =~ "*softirq_entry" : $event =~ "*softirq_exit" : by $cpu, vec : vec',
)
Period = collections.namedtuple("Period", "name begin end tid cpu captured within")


class Periods:
    """Open periods, and what became of them."""

    def __init__(self):
        self.open = collections.defaultdict(list)  # (name, key) -> [begin, tid, captured, parent, over]
        self.found = []
        self.headless, self.outlived = collections.Counter(), collections.Counter()

    def begin(self, name, key, event, captured=None, parent=None):
        self.open[name, key].append([event.ns, event.context["tid"], captured, parent, False])

    def end(self, name, key, event, captured=None, child=False):
        stack = self.open[name, key]
        if not stack:
            self.headless[name] += not child
            return
        begin, tid, first, parent, _ = stack.pop()
        for (inner, _key), others in self.open.items():
            if inner == "off" and name == "call":
                self.outlived["off"] += sum(one[3] == (key, begin) for one in others)
                others[:] = [one for one in others if one[3] != (key, begin)]
        if first and captured:
            first = f"{first} {captured}"
        self.found.append(Period(name, begin, event.ns, tid or None, event.cpu, first,
                                 parent and parent[1]))


def see_period(stacks, event):
    fields, tid = event.fields, event.context["tid"]
    if event.name.startswith("syscall_exit_"):
        stacks.end("stay", tid, event)
        stacks.end("call", tid, event, f"failed={str(fields['ret'] < 0).lower()}")
    elif event.name.startswith("syscall_entry_"):
        stacks.begin("call", tid, event, f"name={event.name}")
        if event.name == "syscall_entry_read":
            stacks.begin("stay", tid, event)
    elif event.name == "sched_switch":
        stacks.end("off", fields["next_tid"], event, child=True)
        calls_open = stacks.open["call", fields["prev_tid"]]
        if calls_open:
            stacks.begin("off", fields["prev_tid"], event,
                         parent=(fields["prev_tid"], calls_open[-1][0]))
    elif event.name.endswith("softirq_entry"):
        stacks.begin("soft", (event.cpu, fields["vec"]), event, f"vec={fields['vec']}")
    elif event.name.endswith("softirq_exit"):
        stacks.end("soft", (event.cpu, fields["vec"]), event)
    elif event.name == "sched_process_fork":  # a new life of that id
        old = stacks.open.pop(("stay", fields["child_tid"]), None)
        if old:
            stacks.open["stay", fields["child_tid"], event.ns] = old


def check_periods(report, events):
    stacks = Periods()
    for event in events:
        see_period(stacks, event)
    found = stacks.found
    names = ["call", "off", "stay", "soft"]
    assert [row["period"] for row in report["periods"]] == names
    for row in report["periods"]:
        name = row["period"]
        durations = [p.end - p.begin for p in found if p.name == name]
        check_stats(row, durations)
        assert row["headless"] == (None if name == "off" else stacks.headless[name])
        assert row["outlived"] == (stacks.outlived[name] if name == "off" else None)
        assert row["unended"] == sum(len(stack) for key, stack in stacks.open.items()
                                     if key[0] == name)
        assert row["torn"] == row["forgotten"] == 0
        check_freq([r for r in report["freq"] if r["period"] == name], durations)
    assert [as_period(row) for row in report["log"]] == found
    assert [as_period(row) for row in report["top"]] == \
        sorted(found, key=lambda p: p.begin - p.end)[:10]
    captured = collections.defaultdict(list)
    for period in found:
        if period.captured:
            captured[period.name, period.captured].append(period.end - period.begin)
    rows = {(row["period"], row["captured"]): row for row in report["captured"]}
    assert set(rows) == set(captured)
    for key, durations in captured.items():
        check_stats(rows[key], durations)
    by_thread = collections.defaultdict(list)
    for period in found:
        by_thread[period.tid, period.name].append(period.end - period.begin)
    keys = [(row["process"] and row["process"]["tid"], row["period"]) for row in report["threads"]]
    assert set(keys) == set(by_thread)
    for key, row in zip(keys, report["threads"]):
        if keys.count(key) == 1:
            check_stats(row, by_thread[key])
    row, = report["within"]
    parents = [p.end - p.begin for p in found if p.name == "call"]
    inner = [p.end - p.begin for p in found if p.name == "off"]
    assert (row["within"], row["period"]) == ("call", "off")
    assert (row["count"], row["total"]) == (len(inner), sum(inner))
    assert close(row["each"], len(inner) / len(parents))
    assert close(row["share"], sum(inner) / sum(parents))


def as_period(row):
    assert row["duration"] == row["end"] - row["begin"]
    return Period(row["period"], row["begin"], row["end"],
                  row["process"] and row["process"]["tid"], row["cpu"], row["captured"],
                  row["within"])


# What the checks want beside --json.
OPTIONS = {name: ("--group-by", "thread") for name in ("block", "memory", "net", "threads")}
OPTIONS["periods"] = tuple(word for text in PERIODS for word in ("--period", text))

CHECKS = {
    "block": check_block,
    "locks": check_locks,
    "memory": check_memory,
    "net": check_net,
    "periods": check_periods,
    "summary": check_summary,
    "syscall-rates": check_rates,
    "threads": check_threads,
    "io": check_io,
    "io-latency": check_io_latency,
    "io-log": check_io_log,
    "sched": check_sched,
    "irq": lambda report, events: check_interrupts(report, events, "irqs", False),
    "softirq": lambda report, events: check_interrupts(report, events, "softirqs", True),
}
