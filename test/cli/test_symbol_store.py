# SPDX-License-Identifier: MIT
"""Symbols that are stored with a trace: the same names on another machine, without its programs."""

import os
import re
import shutil
import socket
import struct
import subprocess

from relays import relays
from test_network import ssh  # noqa: F401
from test_symbols import run
from test_user import TESTS, box, pytestmark  # noqa: F401


def elsewhere(trace):
    """A copy as another machine sees it: it has booted otherwise."""
    boot = open("/proc/sys/kernel/random/boot_id").read().strip()
    copy = trace + "-elsewhere"
    shutil.copytree(trace, copy)
    found = 0
    for root, _, files in os.walk(copy):
        for name in set(files) & {"metadata"}:
            path = os.path.join(root, name)
            data = open(path, "rb").read()
            assert boot.encode() in data
            open(path, "wb").write(data.replace(boot.encode(), b"11111111-2222-3333-4444-555555555555"))
            found += 1
    assert found
    return copy


def test_programs_and_peers(box, tmp_path):
    """The program is gone; a connection starts a timer of the kernel. babeltrace, babeltrace2 and lttng-analyses read the trace as before."""
    done = box("""cp $T/callers-static callers-copy
kymo record --symbols -u 'callers:*' -k 'syscall:openat,timer_start,sched_*' -c vpid,ip --callstack-kernel syscall_entry_openat \
  -o out -- bash -c './callers-copy; (: </dev/tcp/127.0.0.1/1) 2>/dev/null; sleep 0.5'""")
    assert re.search(r"symbols of \d+ addresses stored: [12] files?, \d+ functions? of the kernel", done.err), done.err
    trace = str(tmp_path / "out")
    here = run("print", "--symbols", trace)
    assert "(by_number+0x" in here and re.search(r"timer_start: .*function = 0x[0-9A-F]+ \(\w", here)
    there = elsewhere(trace)
    os.remove(tmp_path / "callers-copy")
    assert run("print", "--symbols", there) == here
    # Without the store there are none; what adds it later gives the kernel's again.
    shutil.rmtree(os.path.join(there, "symbols"))
    assert "(by_number" not in run("print", "--symbols", there)
    plain = {}
    for peer in ("babeltrace", "babeltrace2"):
        plain[peer] = subprocess.run([peer, trace], capture_output=True, text=True, check=True).stdout
    shutil.rmtree(os.path.join(trace, "symbols"))
    for peer, text in plain.items():
        assert subprocess.run([peer, trace], capture_output=True, text=True, check=True).stdout == text
    # In the directory of a single trace.
    kernel = os.path.join(trace, "kernel")
    run("symbols", "add", kernel)
    assert os.path.exists(os.path.join(kernel, "symbols", "kallsyms"))
    for peer in plain:
        done = subprocess.run([peer, kernel], capture_output=True, text=True)
        assert done.returncode == 0 and "timer_start" in done.stdout, done.stderr
    done = subprocess.run(["lttng-cputop", "--no-progress", kernel], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    names = re.findall(r"function = 0x[0-9A-F]+ \((\S+)\)", run("print", "--symbols", elsewhere(kernel)))
    assert names and names == re.findall(r"function = 0x[0-9A-F]+ \((\S+)\)", here)


def test_debug_files_later(box, tmp_path):
    """Of a program without symbols, from a directory of debug files, and from a directory of .kdi files."""
    box("""cp $T/callers-static program
objcopy --only-keep-debug program program.debug; strip program
id=$(readelf -n program | sed -n 's/.*Build ID: //p')
mkdir -p debug/.build-id/$(echo $id | cut -c1-2)
mkdir kdi; kymo debug-info make --lines program.debug -o kdi/$id.kdi
mv program.debug debug/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-).debug
kymo record -u 'callers:*' -c vpid,ip -o out -- ./program""")
    trace = str(tmp_path / "out")
    assert "(program+0x" in run("print", "--symbols", trace)
    wanted = re.compile(r"\(by_number\+0x[0-9a-f]+ callers\.c:\d+\)")
    for directory in ("debug", "kdi"):
        assert wanted.search(run("print", "--symbols", "--symbol-dir", str(tmp_path / directory), trace))
    there = elsewhere(trace)
    os.remove(tmp_path / "program")
    for directory in ("debug", "kdi"):
        run("symbols", "add", "--symbol-dir", str(tmp_path / directory), there)
        assert wanted.search(run("print", "--symbols", there))
        assert [name[-4:] for name in os.listdir(os.path.join(there, "symbols"))] == [".kdi"]
        shutil.rmtree(os.path.join(there, "symbols"))


def test_samples_have_symbols(box, tmp_path):
    """As a default; --no-symbols leaves them out."""
    done = box("""kymo record --sample page-faults -o out -- cat /etc/passwd >/dev/null
kymo record --sample page-faults --no-symbols -o none -- cat /etc/passwd >/dev/null""")
    assert os.path.exists(tmp_path / "out" / "symbols") and not os.path.exists(tmp_path / "none" / "symbols"), done.err
    there = elsewhere(str(tmp_path / "out"))
    text = run("print", "--symbols", there)
    assert re.search(r"callstack_kernel = \[ \[0\] = 0x[0-9A-F]+ \(\w+\+0x", text)
    # libc and the dynamic linker, by their separate debug file.
    assert len(re.findall(r"callstack_user = \[ \[0\] = 0x[0-9A-F]+ \([a-zA-Z_]\w*[+ ]", text)) > 3


def test_refusals(box, tmp_path):
    box("kymo record -u 'callers:*' -c vpid,ip -o out -- $T/callers; kymo record -u 'callers:*' -o plain -- $T/callers")
    trace = str(tmp_path / "out")
    os.symlink("/etc", os.path.join(trace, "symbols"))
    assert "cannot create a directory for symbols" in run("symbols", "add", trace, code=1)
    assert "(by_number" in run("print", "--symbols", trace)
    os.remove(os.path.join(trace, "symbols"))
    os.mkdir(os.path.join(trace, "symbols"))
    for name in ("kallsyms", "perf-1.map"):
        open(os.path.join(trace, "symbols", name), "wb").write(os.urandom(3000))
    assert "(by_number" in run("print", "--symbols", trace)
    done = subprocess.run([run.__globals__["KYMO"], "symbols", "add", str(tmp_path / "plain")], capture_output=True,
                          text=True)
    assert done.returncode == 0 and "no event has addresses of code" in done.stderr
    assert "'remove' is not add" in run("symbols", "remove", trace, code=2)


def test_chunks(box, tmp_path):
    """A chunk has its symbols before the command of --on-rotate sees it, and without the other chunks."""
    box("""cp $T/callers-static copy
kymo record --sample page-faults -u 'callers:*' -c vpid,ip -o out --rotate-every 1s --on-rotate 'ls "$KYMO_CHUNK/symbols" >>seen' -- \
  bash -c 'for ((i = 0; i < 1000 && $(cat seen 2>/dev/null | grep -c kallsyms) < 2; i++)); do ./copy; sleep 0.01; done'
rm copy""")
    chunks = sorted((tmp_path / "out" / "archives").iterdir())
    assert len(chunks) >= 2
    assert (tmp_path / "seen").read_text().count("kallsyms") >= 2
    shutil.move(chunks[0], tmp_path / "chunk")
    text = run("print", "--symbols", elsewhere(str(tmp_path / "chunk")))
    assert re.search(r" ip = 0x[0-9A-F]+ \(by_number\+0x", text)
    assert re.search(r"callstack_kernel = \[ \[0\] = 0x[0-9A-F]+ \(\w+\+0x", text)


# ---- on another machine ---------------------------------------------------------------------------

RECORD = ("record --name far --sample page-faults -u 'callers:*' -k 'syscall:openat' -c vpid,ip --callstack-kernel syscall_entry_openat")


def check_far(trace):
    """Of a program that is gone: functions of it, of libc and of the kernel."""
    text = run("print", "--symbols", elsewhere(trace))
    assert re.search(r" ip = 0x[0-9A-F]+ \(by_number\+0x", text)
    assert re.search(r"callstack_kernel = \[ \[0\] = 0x[0-9A-F]+ \(\w+\+0x", text)
    assert len(re.findall(r"callstack_user = \[ \[0\] = 0x[0-9A-F]+ \([a-zA-Z_]\w*[+ ]", text)) > 3
    assert "by_number" in run("report", "flame", "--of", "page-faults", trace) or "main" in run(
        "report", "flame", "--of", "page-faults", trace)
    assert not os.path.exists(trace + "/symbols/.new")


def test_at_a_relay(box, kymo_bin, tmp_path):
    """Programs that are gone when the relay's trace is read. The recorder leaves nothing behind, and removes what a killed one has left."""
    os.makedirs(tmp_path / "tmp" / ".kymo-symbols-killed" / "kernel")
    with relays(kymo_bin, tmp_path / "relay") as begin:
        here = begin()
        done = box(f"""export TMPDIR=$PWD/tmp
cp $T/callers-static copy; kymo {RECORD} -o {here.address("far")} -- ./copy; rm copy
kymo record -u 'callers:*' -c vpid,ip -o {here.address("none")} -- $T/callers
kymo record --no-symbols --sample page-faults -o {here.address("no-symbols")} -- cat /etc/passwd >/dev/null""")
        assert done.err.count("symbols of ") == 1, done.err
        assert os.listdir(tmp_path / "tmp") == []
        check_far(here.trace("far"))
        for name in ("none", "no-symbols"):
            assert not os.path.exists(here.trace(name) + "/symbols")


def test_over_ssh(box, ssh, tmp_path):  # noqa: F811
    shutil.copy(os.path.join(TESTS, "callers-static"), tmp_path / "copy")
    done = ssh(f"$BIN/kymo {RECORD} -o ssh://archive$PWD/there -- ./copy")
    assert done.returncode == 0 and "symbols of " in done.stderr, done
    os.remove(tmp_path / "copy")
    trace, = (tmp_path / "there").glob("*/far")
    check_far(str(trace))


def test_at_an_older_relay(box, kymo_bin, tmp_path):
    """A relay that says nothing of its features takes the recording without symbols."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        recorder = subprocess.Popen([kymo_bin, "record", "-o", f"kymo://localhost:{server.getsockname()[1]}/x", "--sample", "page-faults",
                                     "--", "cat", "/etc/passwd"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        client, _ = server.accept()
        client.sendall(struct.pack("<IIQQ", 5, 0, 0, 8) + struct.pack("<Q", 1))
        line = recorder.stderr.readline()
        recorder.kill()
        recorder.communicate()
        client.close()
    assert "no symbols will be stored: the relay's version of kymo is too old" in line
