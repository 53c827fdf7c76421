# SPDX-License-Identifier: MIT
"""trace.dat that no machine here writes: of the other byte order, of several buffers, of a guest; trace-cmd judges."""

import collections
import functools
import json
import os
import re
import subprocess

import pytest

import foreign_files
from foreign_files import DAT_START, Order
from test_import import brief, events_of


def reported(peer, *paths):
    """{(ns, cpu, event): how many} of trace-cmd report."""
    text = peer("trace-cmd", "report", "-t", *(word for path in paths for word in ("-i", path))).out
    found = collections.Counter()
    for cpu, second, ns, name in re.findall(r"\[(\d+)\]\s+(\d+)\.(\d{9}): (\S+?):", text):
        found[int(second) * 10**9 + int(ns), int(cpu), {"sys_enter": "syscall_entry_openat", "sys_exit": "syscall_exit_openat"}.get(name, name)] += 1
    return found


def test_pages_of_the_other_byte_order(kymo, peer, tmp_path):
    big = foreign_files.dat_example(tmp_path / "big.dat", True)
    little = foreign_files.dat_example(tmp_path / "little.dat")
    assert events_of(kymo, big) == events_of(kymo, little)
    theirs = reported(peer, big)
    assert len(theirs) == 5 and collections.Counter(map(brief, events_of(kymo, big))) == theirs
    # A gap of time, a long record, and a page that is cut.
    order = Order(True)
    text = foreign_files.switch(order, ("one", 10), ("two", 20)) + bytes(200)
    path = foreign_files.dat_write(tmp_path / "long.dat", order, [("", [[(1000, text), (10**11, text), (3 * 10**11, text)]])])
    assert [event["timestamp_ns"] for event in events_of(kymo, path)] == [1000, 10**11, 3 * 10**11]
    assert collections.Counter(map(brief, events_of(kymo, path))) == reported(peer, path)
    (tmp_path / "cut").write_bytes(big.read_bytes()[:-100])
    assert "cut" in kymo("print", tmp_path / "cut", code=1).err


# trace-cmd does not convert to the other byte order.
@pytest.mark.parametrize("packing, big", [(None, False), (None, True), ("none", False), ("zlib", False), ("zstd", False)])
def test_several_buffers(kymo, peer, tmp_path, packing, big):
    order = Order(big)
    buffers = [("", foreign_files.dat_records(order)), ("one", foreign_files.dat_records(order, DAT_START + 100_000)),
               ("two/three", foreign_files.dat_records(order, DAT_START + 200_000))]
    path = foreign_files.dat_write(tmp_path / "six.dat", order, buffers)
    if packing:
        done = subprocess.run(["trace-cmd", "convert", "--file-version", "7", "--compression", packing, "-i", path, "-o", tmp_path / "seven.dat"],
                              capture_output=True, check=False)
        if done.returncode:
            pytest.skip(f"trace-cmd does not convert this: {(done.stdout + done.stderr)[-200:]}")
        path = tmp_path / "seven.dat"
    theirs = reported(peer, path)
    assert len(theirs) == 15 and collections.Counter(map(brief, events_of(kymo, path))) == theirs
    names = {trace["path"].rsplit("/", 1)[-1] for trace in json.loads(kymo("info", "--json", path).out)["traces"]}
    assert names == {"kernel", "kernel-one", "kernel-two_three"}


def shift(order, cpus, flags=0, fractions=True):
    """The option TIME_SHIFT: for each CPU, (time, offset, scaling, fraction) of each sample."""
    data = order.pack("QII", 42, flags, len(cpus))
    for samples in cpus:
        data += order.pack("I", len(samples))
        for i, form in enumerate("QqQ"):
            data += b"".join(order.pack(form, sample[i]) for sample in samples)
    if fractions:
        data += b"".join(order.pack("Q", sample[3]) for samples in cpus for sample in samples)
    return 12, data


@pytest.mark.parametrize("flags", [0, 1], ids=["steps", "lines"])
@pytest.mark.parametrize("big", [False, True], ids=["little-endian", "big-endian"])
def test_a_guest_has_its_hosts_times(kymo, peer, tmp_path, flags, big):
    order = Order(big)
    host = foreign_files.dat_write(tmp_path / "host.dat", order, [("", foreign_files.dat_records(order))], [(11, order.pack("Q", 42))])
    samples = [(DAT_START + n * 2000, -DAT_START // 2 + n * n * 30, 1 << 10, 10) for n in range(-2, 4)]
    for name, cpus in (("one", [samples[:1], samples[:1]]), ("two", [samples[:2], samples[2:4]]), ("many", [samples, samples[::-1]])):
        guest = foreign_files.dat_write(tmp_path / f"{name}.dat", order, [("", foreign_files.dat_records(order))],
                                        [(11, order.pack("Q", 43)), shift(order, cpus, flags)])
        found = collections.Counter(map(brief, events_of(kymo, guest)))
        assert found == reported(peer, guest) and all(at < DAT_START for at, _, _ in found), name
        assert collections.Counter(map(brief, events_of(kymo, host, guest))) == reported(peer, host) + reported(peer, guest)
    number, data = shift(order, [samples, samples])
    path = foreign_files.dat_write(tmp_path / "short.dat", order, [("", foreign_files.dat_records(order))], [(number, data[:100])])
    assert "the shift to the host's clock is cut" in kymo("print", path, code=1).err


def test_too_many_cpus(kymo, tmp_path):
    """Those below the limit are read; the error has the place of the first one above it."""
    order = Order(False)
    cpus = foreign_files.dat_records(order) + [[] for _ in range(4095)]
    cpus[4096] = foreign_files.dat_records(order)[0]
    path = foreign_files.dat_write(tmp_path / "many.dat", order, [("", cpus)])
    done = kymo("print", path, code=1)
    assert done.out.count("sched_switch") == 3, done
    assert f"{path}: CPU 4096 is above the limit of 4096 CPUs (at byte {path.stat().st_size - 4096})" in done.err


def test_a_hole_in_pages(kymo, tmp_path):
    """A CPU whose pages are a hole of gigabytes ends where it begins; the other CPU is whole."""
    order = Order(False)
    path = foreign_files.dat_example(tmp_path / "hole.dat")
    data = bytearray(path.read_bytes())
    at = len(data) - 4096
    where = data.rindex(order.pack("QQ", at, 4096), 0, at)
    data[where:where + 16] = order.pack("QQ", at, 8 << 30)
    path.write_bytes(data)
    os.truncate(path, at + (8 << 30))
    done = kymo("print", path, code=1, timeout=20)
    assert f"the pages of a CPU go on with zeros (at byte {at + 4096})" in done.err, done.err
    assert len(done.out.splitlines()) == 5


def test_descriptions_of_many_buffers(kymo, tmp_path, monkeypatch):
    """Each buffer reads the descriptions of its events: there is a limit for all of them."""
    order = Order(False)
    fields = "".join(f"\tfield:int pad_{'x' * 900}{i};\toffset:{64 + 4 * i};\tsize:4;\tsigned:1;\n" for i in range(1000))
    marker = "\nprint fmt"
    assert marker in foreign_files.SWITCH
    text = foreign_files.SWITCH.replace(marker, fields + marker, 1)
    monkeypatch.setattr(foreign_files, "tracing_data", functools.partial(
        foreign_files.tracing_data, events=(("sched", (text,)), ("raw_syscalls", (foreign_files.RAW_ENTER, foreign_files.RAW_EXIT)))))
    records = [[(DAT_START, foreign_files.switch(order, ("one", 10), ("two", 20)) + bytes(8))]]
    buffers = [(f"b{i}" if i else "", records) for i in range(330)]
    path = foreign_files.dat_write(tmp_path / "buffers.dat", order, buffers)
    done = kymo("info", path, code=1)
    assert "of all buffers are above the limit of 256 MiB (at byte" in done.err, done


PRINT = "name: print\nID: 5\nformat:\n" + foreign_files.COMMON + """\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:char buf%s;\toffset:16;\tsize:0;\tsigned:0;

print fmt: "%%ps: %%s", (void *)REC->ip, REC->buf
"""


@pytest.mark.parametrize("brackets", ["", "[]"])
def test_marks_of_programs(kymo, tmp_path, monkeypatch, brackets):
    """Older kernels describe the text of trace_marker without brackets."""
    order = Order(False)
    monkeypatch.setattr(foreign_files, "tracing_data",
                        functools.partial(foreign_files.tracing_data, events=(("ftrace", (PRINT % brackets,)),)))
    record = order.pack("HBBiQ", 5, 0, 0, 10, 0xffffffff81000010) + b"a mark\n\0"
    path = foreign_files.dat_write(tmp_path / "marks.dat", order, [("", [[(DAT_START, record)]])])
    event, = events_of(kymo, path)
    assert event["fields"]["buf"] == "a mark\n"


BPRINT = "name: bprint\nID: 6\nformat:\n" + foreign_files.COMMON + """\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;
\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;
\tfield:u32 buf;\toffset:24;\tsize:0;\tsigned:0;

print fmt: "%ps: %s", (void *)REC->ip, REC->fmt
"""


@pytest.mark.parametrize("packing, big", [(None, False), (None, True), ("none", False)])
def test_texts_of_the_kernel(kymo, tmp_path, monkeypatch, packing, big):
    """trace-cmd writes the texts that events have the addresses of."""
    order, address = Order(big), 0xffffffff82001000
    texts = b"0xffffffff82000000 : \"rcu_preempt\"\n0x%x : \"load: %%u of %%u\\n\"\n" % address
    monkeypatch.setattr(foreign_files, "tracing_data", functools.partial(
        foreign_files.tracing_data, events=(("ftrace", (BPRINT,)), ("sched", (foreign_files.SWITCH,))), texts=texts))
    records = [order.pack("HBBiQQII", 6, 0, 0, 10, 0xffffffff81000010, at, 3, 4) for at in (address, address + 8)]
    path = foreign_files.dat_write(tmp_path / "six.dat", order, [("", [[(DAT_START + i, record) for i, record in enumerate(records)]])])
    if packing:
        subprocess.run(["trace-cmd", "convert", "--file-version", "7", "--compression", packing, "-i", path, "-o", tmp_path / "seven.dat"],
                       capture_output=True, check=True)
        path = tmp_path / "seven.dat"
    first, second = kymo("print", path).out.splitlines()
    assert f'fmt = ( "load: %u of %u" : container = {address} )' in first
    # An address without a text is kept as a number.
    assert f"fmt = ( <unknown> : container = {address + 8} )" in second
