# SPDX-License-Identifier: MIT
"""Where the files of sampled programs are: deleted, replaced, where only the program sees them, and with symbols in a section of their own."""

import contextlib
import gzip
import json
import os
import re
import shutil
import subprocess
import time
import urllib.request

import pytest

from conftest import SANITIZED
from relays import free_port
from test_sampling import spinner  # noqa: F401 (a fixture)


def wait_for(program, process):
    """Until the process executes @program."""
    while os.path.basename(os.readlink(f"/proc/{process.pid}/exe")).split()[0] != program:
        assert process.poll() is None
        time.sleep(0.01)


def test_gone(kymo, record, spinner, tmp_path):  # noqa: F811
    """A recording keeps the functions of running programs whose files are deleted, replaced, or in another mount namespace."""
    place, hidden = tmp_path / "place", tmp_path / "hidden"
    place.mkdir()
    hidden.mkdir()
    # The last one lies in a file system that only it has, and sees it at another path.
    script = (f"mount -t tmpfs none {hidden} && cp {spinner} {hidden}/inside && mkdir {hidden}/lib {hidden}/lib64 && "
              f"for file in $(ldd {spinner} | grep -o '/[^ ]*'); do mkdir -p {hidden}$(dirname $file) && cp $file {hidden}$file; done && "
              f"exec chroot {hidden} /inside 60")
    for name in ("deleted", "replaced"):
        shutil.copy(spinner, place / name)
    commands = {"deleted": [place / "deleted", "60"], "replaced": [place / "replaced", "60"],
                "inside": ["unshare", "-m", "sh", "-c", script]}
    running = {name: subprocess.Popen(words) for name, words in commands.items()}
    try:
        for name, process in running.items():
            wait_for(name, process)
        for name in ("deleted", "replaced"):
            (place / name).unlink()
        shutil.copy("/bin/true", place / "replaced")
        chosen = [word for process in running.values() for word in ("--pid", process.pid)]
        # As long as it takes on a busy machine until each has run.
        trace, done = record("--sample", "199", *chosen, "-d", "2s", command=None)
        assert "symbols of" in done.err
    finally:
        for process in running.values():
            process.kill()
            process.wait()
    found = json.loads(kymo("report", "flame", "--json", "-t", "tree", "--limit", 0, trace).out)
    rows = next(table["rows"] for report in found["reports"] for table in report["tables"] if table["name"] == "tree")
    functions, at = {}, None
    for row in rows:
        if row["depth"] == 0:
            at = row["function"]
        functions.setdefault(at, set()).add(row["function"])
    for name in running:
        assert {"main", "inner"} <= functions[name], functions


def test_minidebuginfo(kymo, spinner, tmp_path):  # noqa: F811
    """Functions that only .gnu_debugdata has: eu-addr2line finds the same."""
    if not shutil.which("xz") or not shutil.which("eu-addr2line"):
        pytest.skip("needs xz and eu-addr2line")
    symbols, small = tmp_path / "symbols", tmp_path / "small"
    subprocess.run(["objcopy", "-S", *(f"--keep-symbol={name}" for name in ("inner", "hot", "warm", "main")), spinner, symbols], check=True)
    subprocess.run(["xz", symbols], check=True)
    shutil.copy(spinner, small)
    subprocess.run(["strip", "-s", small], check=True)
    subprocess.run(["objcopy", "--add-section", f".gnu_debugdata={symbols}.xz", small], check=True)
    lines = subprocess.run(["nm", spinner], capture_output=True, text=True, check=True).stdout.splitlines()
    places = {line.split()[2]: line.split()[0] for line in lines if line.split()[-1] in ("inner", "hot", "warm")}
    assert len(places) == 3
    for name, place in places.items():
        theirs = subprocess.run(["eu-addr2line", "-f", "-e", small, f"0x{place}"], capture_output=True, text=True, check=True).stdout
        assert theirs.splitlines()[0] == name
        assert f" {name}+0x0 " in kymo("debug-info", "find", small, f"0x{place}").out


def with_debug_file(tmp_path, spinner):  # noqa: F811
    """(a stripped program, its debug file, its build ID)"""
    program, debug = tmp_path / "program", tmp_path / "debug" / "program.debug"
    debug.parent.mkdir()
    shutil.copy(spinner, program)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    subprocess.run(["strip", program], check=True)
    notes = subprocess.run(["readelf", "-n", program], capture_output=True, text=True, check=True).stdout
    return program, debug, re.search(r"Build ID: (\w+)", notes)[1]


def names_in(kymo, trace, *options):
    return set(re.findall(r"\((inner|hot|warm)\+0x", kymo("print", "--symbols", *options, trace).out))


def test_debug_file_alone(kymo, record, spinner, tmp_path):  # noqa: F811
    """Of a program that is gone: its debug file does not say where its code was in the file."""
    program, debug, build_id = with_debug_file(tmp_path, spinner)
    trace, _ = record("--no-symbols", "--sample", "499", "--follow", command=[str(program), "0.3"])
    program.unlink()
    assert not names_in(kymo, trace)
    place = tmp_path / "found" / ".build-id" / build_id[:2]
    place.mkdir(parents=True)
    shutil.move(debug, place / f"{build_id[2:]}.debug")
    assert names_in(kymo, trace, "--symbol-dir", tmp_path / "found") >= {"inner"}
    kymo("symbols", "add", "--symbol-dir", tmp_path / "found", trace)
    assert names_in(kymo, trace) >= {"inner"}


def test_debuginfod(kymo, record, spinner, tmp_path, monkeypatch):  # noqa: F811
    """A server has the debug file. Nobody asks it without DEBUGINFOD_URLS."""
    if not shutil.which("debuginfod"):
        pytest.skip("no debuginfod here: tools/install-deps test")
    program, debug, build_id = with_debug_file(tmp_path, spinner)
    trace, _ = record("--no-symbols", "--sample", "499", "--follow", command=[str(program), "0.3"])
    program.unlink()
    port = free_port()
    url = f"http://localhost:{port}"
    log = open(tmp_path / "log", "w+", encoding="utf-8")
    server = subprocess.Popen(["debuginfod", "-vv", "-d", tmp_path / "database", "-p", str(port), "-F", debug.parent], stdout=log, stderr=log)
    try:
        while True:
            assert server.poll() is None, (tmp_path / "log").read_text()
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/buildid/{build_id}/debuginfo", timeout=10) as answer:
                assert answer.read(4) == b"\x7fELF"
                break
            time.sleep(0.1)
        asked = (tmp_path / "log").read_text().count("GET /buildid")
        assert not names_in(kymo, trace)
        assert (tmp_path / "log").read_text().count("GET /buildid") == asked
        monkeypatch.setenv("DEBUGINFOD_URLS", url)
        monkeypatch.setenv("DEBUGINFOD_CACHE_PATH", str(tmp_path / "cache"))
        kymo("symbols", "add", trace)
        monkeypatch.delenv("DEBUGINFOD_URLS")
    finally:
        server.terminate()
        server.wait()
        log.close()
    assert names_in(kymo, trace) >= {"inner"}


COMMON = """
 .section .debug_abbrev,"",@progbits
 .uleb128 1; .uleb128 0x11; .byte 1; .uleb128 0x1b; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0,0
 .uleb128 2; .uleb128 0x2e; .byte 1; .uleb128 3; .uleb128 8; .uleb128 0x11; .uleb128 1; .uleb128 0x12; .uleb128 7; .byte 0,0
 .uleb128 3; .uleb128 5; .byte 0; .uleb128 3; .uleb128 0x1f21; .uleb128 0x49; .uleb128 0x13; .byte 0,0
 .uleb128 4; .uleb128 0x24; .byte 0; .uleb128 3; .uleb128 8; .uleb128 0xb; .uleb128 0xb; .uleb128 0x3e; .uleb128 0xb; .byte 0,0
 .byte 0
 .section .debug_info,"",@progbits
0: .4byte 2f-1f
1: .2byte 4; .4byte 0; .byte 8
 .uleb128 1; .asciz "/"; .8byte place; .8byte 1
3: .uleb128 4; .asciz "int"; .byte 4, 5
 .uleb128 2; .asciz "place"; .8byte place; .8byte 1
 .uleb128 3; .4byte 1; .4byte 3b-0b
 .byte 0, 0
2:
"""


def test_files_that_a_program_names(kymo, tmp_path):
    """Whoever opened these FIFOs would wait for ever. Regular files with the same names count, if they are the right ones."""
    program, pipe, link = tmp_path / "program", tmp_path / "pipe", tmp_path / "link"
    code = ".text\n.globl place\n.type place,@function\nplace: ret\n.size place, 1\n.section .note.GNU-stack,\"\",@progbits\n"
    build = ["gcc", "-nostdlib", "-shared", "-x", "assembler", "-"]

    def add(section, data):
        link.write_bytes(data)
        subprocess.run(["objcopy", "--remove-section", section, "--add-section", f"{section}={link}", program], check=True)

    def names():
        kymo("debug-info", "make", "--lines", "-o", tmp_path / "made.kdi", program)
        return kymo("debug-info", "show", tmp_path / "made.kdi", "place").out + kymo("debug-info", "find", program, address).out

    subprocess.run([*build, "-Wl,--build-id=0x1234567890", "-o", program], input=code + COMMON, text=True, check=True)
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    address = "0x" + re.search(r"(\w+) T place", symbols)[1]
    os.mkfifo(pipe)
    # The DWARF has an argument's name in a common file.
    common, build_id = tmp_path / "common", bytes.fromhex("abcdef0123")
    for name in (b"pipe", bytes(pipe), b"../" * 20 + b"dev/zero", b"nothing", b"common"):
        add(".gnu_debugaltlink", name + b"\0" + build_id)
        assert "place+0x0" in names()
    for other in ("0xabcdef0124", "0xabcdef0123"):
        subprocess.run([*build, f"-Wl,--build-id={other}", "-o", common], text=True, check=True,
                       input=".section .debug_str,\"\",@progbits\n.asciz \"xof_both\"\n.section .debug_line,\"\",@progbits\n.byte 0\n")
        assert ("of_both" in names()) == (bytes.fromhex(other[2:]) == build_id)
    # The rest has no DWARF.
    subprocess.run(["strip", "-g", program], check=True)
    os.mkfifo(f"{program}.debug")
    assert "place+0x0 ??" in names()
    for name in (b"pipe\0\0\0\0", b"../" * 20 + b"dev/zero\0\0\0\0"):
        add(".gnu_debuglink", name + b"1234")
        assert "place+0x0 ??" in names()


def test_file_that_unpacks_to_much(kymo_bin, tmp_path):
    """libdw unpacks files that are compressed as a whole, in memory: a megabyte may be a gigabyte."""
    if SANITIZED:
        pytest.skip("a sanitizer ends a program whose memory is at its limit")
    bomb = tmp_path / "bomb"
    bomb.write_bytes(20 * gzip.compress(bytes(64 << 20), 1))
    # A process' peak contains that of the process which starts it: here a small one.
    script = "import resource, subprocess, sys;" \
             "subprocess.run(sys.argv[1:], check=True);" \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(["/usr/bin/python3", "-c", script, kymo_bin, "debug-info", "find", bomb, "0x1000"],
                          stdout=subprocess.PIPE, check=True, text=True)
    found, kibibytes = done.stdout.splitlines()
    assert found == "0x1000 ?? ??:0"
    assert int(kibibytes) < 700 << 10
