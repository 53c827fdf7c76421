# SPDX-License-Identifier: MIT
"""The state dump of a real recording: what was open before is known by name."""

import glob
import os
import re
import subprocess

import pytest


@pytest.fixture
def reader(tmp_path):
    """A process that has a file open before any recording, and reads it until it is killed.

    It stays on the first CPU: some kernels do not tell when other CPUs leave their idle task,
    and lttng-analyses knows the current thread by such switches only.
    """
    path = tmp_path / "opened-before"
    path.write_bytes(b"x" * 4096)
    script = ("import os, sys, time\n"
              "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
              f"fd = os.open({str(path)!r}, os.O_RDONLY)\n"
              "i = 0\n"
              "while True:\n"
              "    os.pread(fd, 4096, 0)\n"
              "    time.sleep(0.002)\n"
              "    i += 1\n"
              "    if i == 10:\n"  # by now it has the memory that it needs: no map changes any more
              "        print('ready', flush=True)\n")
    process = subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    yield process.pid, str(path)
    process.kill()
    process.wait()


def until_it_has_read(pid, times):
    """A command that ends when the reader has slept so many times more."""
    slept = f"sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/{pid}/status"
    return ["sh", "-c", f"end=$(($({slept}) + {times})); until [ $({slept}) -ge $end ]; do sleep 0.01; done"]


@pytest.fixture
def kernel_trace(record, reader):
    trace, _ = record(command=until_it_has_read(reader[0], 20))
    return trace / "kernel"


@pytest.fixture
def reader_trace(record, reader):
    """Its events alone: what lttng-analyses needs seconds for does not depend on what others do meanwhile."""
    trace, _ = record("--pid", reader[0], command=until_it_has_read(reader[0], 200))
    return trace / "kernel"


def dump_lines(text, event):
    return [line for line in text.splitlines() if f" lttng_statedump_{event}: " in line]


def test_events(kymo, reader, kernel_trace):
    pid, path = reader
    out = kymo("print", kernel_trace).out
    assert len(dump_lines(out, "start")) == len(dump_lines(out, "end")) == 1
    files = [line for line in dump_lines(out, "file_descriptor") if f" pid = {pid}, " in line]
    assert any(f'filename = "{path}"' in line for line in files)
    own = [line for line in dump_lines(out, "process_state") if f" tid = {pid}, pid = {pid}, " in line]
    assert len(own) == 1
    assert f"ppid = {os.getpid()}," in own[0] and 'name = "python3"' in own[0]
    table = re.search(r"file_table_address = (0x[0-9A-F]+)", own[0]).group(1)
    assert all(f"file_table_address = {table}," in line for line in files)
    assert len(dump_lines(out, "cpu_topology")) == os.cpu_count()
    threads = {re.search(r"\{ tid = (\d+), pid", line).group(1)
               for line in dump_lines(out, "process_state")}
    namespaces = {re.search(r"\{ tid = (\d+), vtid", line).group(1)
                  for line in dump_lines(out, "process_pid_ns")}
    assert "1" in threads and namespaces <= threads


def block_devices():
    found = set()
    for path in glob.glob("/sys/class/block/*/dev"):
        with open(path, encoding="ascii") as file:
            major, minor = map(int, file.read().split(":"))
        found.add((str(major << 20 | minor), path.split("/")[-2]))
    return found


def test_block_devices(kymo, record):
    """The numbers are those of the block events: major << 20 | minor. Others' loop devices may come and go."""
    before = block_devices()
    trace, _ = record("-k", "block_rq_issue", command=["true"])
    after = block_devices()
    have = set(re.findall(r'dev = (\d+), diskname = "([^"]+)"', "\n".join(
        dump_lines(kymo("print", trace).out, "block_device"))))
    assert before and before & after <= have <= before | after


def test_peer_reads_the_same(kymo, peer, kernel_trace):
    """Without the times: babeltrace2 converts cycles in floating point, and is 1 ns off at times."""
    def events(text):
        return [line[line.index(") ") + 2:] for line in text.splitlines() if "statedump" in line]

    ours = events(kymo("print", kernel_trace).out)
    assert ours and ours == events(peer("babeltrace2", kernel_trace).out)


def test_iousagetop_knows_the_name(peer, reader, reader_trace):
    _, path = reader
    done = peer("lttng-iousagetop", "--no-progress", "--limit=1000", reader_trace, timeout=110)
    assert done.code == 0, done
    assert path in done.out, done


@pytest.mark.parametrize("program, options", [("lttng-cputop", ["--limit=1000"]),
                                              ("lttng-syscallstats", [])])
def test_analyses_run(peer, reader, reader_trace, program, options):
    """They know the process that was there before. (Its pid is "?" where its first system call
    came before its turn in the dump.)"""
    pid, _ = reader
    done = peer(program, "--no-progress", *options, reader_trace)
    assert done.code == 0, done
    assert re.search(rf"python3 \(({pid}|({pid}|\?), TID: {pid})\)", done.out), done


def field(line, name):
    return re.search(rf'\b{name} = ("[^"]*"|[^, ]+)', line).group(1).strip('"')


def meminfo(key):
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(rf"^{key}: +(\d+) kB", file.read(), re.MULTILINE)[1]) * 1024


def test_memory(kymo, reader, kernel_trace):
    """Totals of the machine, sizes of processes; no maps unless they are asked for."""
    pid, _ = reader
    out = kymo("print", kernel_trace).out
    memory, = dump_lines(out, "memory")
    assert int(field(memory, "total")) == meminfo("MemTotal")
    assert 0 < int(field(memory, "free")) <= int(field(memory, "total"))
    assert int(field(memory, "swap_total")) == meminfo("SwapTotal")
    own, = [line for line in dump_lines(out, "process_memory") if f" pid = {pid}, " in line]
    with open(f"/proc/{pid}/status", encoding="ascii") as file:
        status = file.read()
    rss = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) * 1024
    assert abs(int(field(own, "rss_bytes")) - rss) < 4 << 20
    assert int(field(own, "vm_bytes")) >= int(field(own, "rss_bytes")) >= \
        int(field(own, "shared_bytes"))
    assert not dump_lines(out, "process_map")


def test_control_groups(kymo, kernel_trace, control_groups):
    """Number and path of the group of version 2 that each thread is in."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        path = next(line[3:].rstrip("\n") for line in file if line.startswith("0::"))
    lines = dump_lines(kymo("print", kernel_trace).out, "process_cgroup")
    own, = [line for line in lines if f"{{ tid = {os.getpid()}, cgroup" in line]
    assert field(own, "path") == path
    if not os.path.isdir(control_groups + path):
        pytest.skip(f"{control_groups} does not have {path}")
    assert int(field(own, "cgroup")) == os.stat(control_groups + path).st_ino


def test_maps(kymo, record, reader):
    """Every mapping of a process that stands still, with the build ids of what can be executed."""
    pid, _ = reader
    trace, _ = record("--maps", "-k", "sched_switch", command=("true",))
    lines = [line for line in dump_lines(kymo("print", trace).out, "process_map")
             if f" pid = {pid}, " in line]
    seen = [(int(field(line, "begin"), 16), int(field(line, "end"), 16),
             int(field(line, "protection")), int(field(line, "offset"), 16),
             int(field(line, "inode")), field(line, "filename")) for line in lines]
    there = []
    with open(f"/proc/{pid}/maps", encoding="utf-8") as file:
        for line in file:
            place, mode, offset, _, inode, *path = line.split(maxsplit=5)
            begin, end = (int(number, 16) for number in place.split("-"))
            bits = sum(bit for bit, letter in zip((1, 2, 4, 8), "rwxs") if letter in mode)
            there.append((begin, end, bits, int(offset, 16), int(inode),
                          path[0].strip() if path else ""))
    assert seen == there
    notes = subprocess.run(["readelf", "-n", os.path.realpath("/usr/bin/python3")],
                           stdout=subprocess.PIPE, check=True).stdout.decode()
    build_id = re.search(r"Build ID: ([0-9a-f]+)", notes)[1]
    ids = {field(line, "build_id") for line in lines
           if field(line, "filename") == os.path.realpath("/usr/bin/python3")}
    assert build_id in ids
    assert not any(field(line, "build_id") for line in lines if field(line, "inode") == "0")


def test_modules(kymo, record):
    """The kernel itself, by its build id, and all modules: where events tell places in the kernel."""
    trace, _ = record("-k", "kmem_kmalloc,kmem_kfree", command=("true",))
    lines = dump_lines(kymo("print", trace).out, "module")
    assert field(lines[0], "name") == "vmlinux"
    with open("/sys/kernel/notes", "rb") as file:
        assert bytes.fromhex(field(lines[0], "build_id")) in file.read()
    names = []
    if os.path.exists("/proc/modules"):
        with open("/proc/modules", encoding="ascii") as file:
            names = [line.split()[0] for line in file]
    assert [field(line, "name") for line in lines[1:]] == names
