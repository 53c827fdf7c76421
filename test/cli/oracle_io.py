# SPDX-License-Identifier: MIT
"""Second computations: files, descriptors, and the requests to disks."""

import collections
import re
import statistics

from oracle_figures import check_freq, check_stats, close, number

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
            self.pids[fields["parent_tid"]] = fields["parent_pid"]
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
        """The address replaces a text that the recorder could not read."""
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
