# SPDX-License-Identifier: MIT
"""What docs/security.md says: the tests and the figures that it names are there. And what no other test shows of it."""

import ast
import json
import os
import re
import socket
import struct
import subprocess

import pytest

from test_user import KYMO, box, pytestmark as in_a_box  # noqa: F401

EVIL = "\x1b[31m"
AS_NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"


# ---- the page ----

@pytest.fixture(name="page")
def _page(root_dir):
    with open(os.path.join(root_dir, "docs", "security.md"), encoding="utf-8") as file:
        return file.read()


def test_tests_that_are_named_exist(page, root_dir):
    named = re.findall(r"`(test[-_][\w-]+\.(?:py|c))::(\w+)`", page)
    assert len(named) > 40
    for file, test in named:
        path = os.path.join(root_dir, "test", "cli" if file.endswith(".py") else "unit", file)
        with open(path, encoding="utf-8") as source:
            text = source.read()
        if file.endswith(".py"):
            assert any(isinstance(one, ast.FunctionDef) and one.name == test for one in ast.parse(text).body), test
        else:
            assert re.search(rf"^static void {test}\(void \*\*state\)", text, re.M), test
    fuzzers = set(re.findall(r"`fuzz-([\w-]+)`", page))
    assert fuzzers == {name[5:-2] for name in os.listdir(os.path.join(root_dir, "test", "fuzz"))
                       if re.fullmatch(r"fuzz-[\w-]+\.c", name)}


def test_figures_are_those_of_the_source(page, root_dir):
    rows = re.findall(r"^\|[^|]+\| ([\d ]+?)(?: (KiB|MiB|ms|s))? \| `(\w+)` in `(src/[\w/.-]+)` \|$", page, re.M)
    assert len(rows) > 20
    for figure, unit, name, file in rows:
        with open(os.path.join(root_dir, file), encoding="utf-8") as source:
            (text,) = re.findall(rf"^#define {name}\s+(.*?)(?:\s*/\*.*)?$", source.read(), re.M)
        value = eval(re.sub(r"UINT64_C|(?<=\d)[uU]", "", text), {})  # pylint: disable=eval-used
        factor = {"KiB": 1 << 10, "MiB": 1 << 20, "ms": 1000000 if name.endswith("_NS") else 1}.get(unit, 1)
        assert value == int(figure.replace(" ", "")) * factor, (name, text)


# ---- recordings ----

@in_a_box
def test_modes_of_files(box):
    """Whatever the umask is, nobody else gets at what was recorded."""
    done = box("""
umask 0
kymo record --overwrite --kernel 'sched_switch' --user 'modes:*' -o out & recorder=$!
wait_for 'kymo sessions | grep -q flight'
$T/modes numbers 10 0
kymo snapshot -o snap || exit 96
kill -TERM $recorder; wait $recorder || exit 97
kymo record --raw --kernel 'sched_switch' --user 'modes:*' -o raw -- $T/modes numbers 10 0
kymo record --user 'modes:*' -o killed & recorder=$!
wait_for session_is_there
$T/modes numbers 1000000000 1000 & program=$!
wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
find /dev/shm/kymo-0 -type d -perm /077
find /dev/shm/kymo-0 -name '*.ring' -perm /077
kill -9 $recorder; wait $recorder; sleeps $program 20; kill -9 $program
kymo recover --remove -o found >/dev/null || exit 95
kymo convert --to ctf2 -o copy out
find out snap raw killed found -perm /077; find copy -type f -perm /077
find out snap raw killed found copy -type f | wc -l
""")
    assert re.fullmatch(r"\d{2,}\n", done.out), done.out


@in_a_box
def test_nothing_listens_on_a_network(box):
    """A recorder's sockets, of the kernel and of programs, are all of this machine: in the file system."""
    done = box("""
kymo record --kernel 'sched_switch' --user 'modes:*' --statedump all -o out & recorder=$!
wait_for 'kymo sessions | grep -q out'
$T/modes numbers 10 0
readlink /proc/$recorder/fd/* | sed -n 's/^socket:\\[\\(.*\\)\\]$/\\1/p' | sort >sockets.txt
[ -s sockets.txt ] || exit 96
awk 'NR > 1 { print $7 " " $8 }' /proc/$recorder/net/unix | sort >local.txt
join sockets.txt local.txt
cat sockets.txt | wc -l
kill -TERM $recorder; wait $recorder || exit 97
""")
    *local, n = done.out.splitlines()
    assert len(local) == int(n) and any("/kymo-recordings-0/" in line for line in local), done.out


@in_a_box
def test_names_of_other_users_things(box):
    """A program's, a recording's, and what a forged recorder says: nothing of it is a terminal's to obey."""
    done = box(f"""
name=$'s{EVIL}p\\n..x'; mkdir -m 777 theirs; cp $T/shop "$name"; cp $(dirname $T)/../src/tracer/*.so* .; chmod -R a+rX . ..
{AS_NOBODY} env LD_LIBRARY_PATH=. "./$name" 1000000 1000 & program=$!
cd theirs
{AS_NOBODY} kymo record --overwrite --user 'modes:*' -o $'out{EVIL}\\ny' & other=$!
cd ..
kymo record --user 'shop:*' -o out & recorder=$!
wait_for '[ $(kymo sessions | grep -c " for ") = 2 ]'
wait_for 'ls /dev/shm/kymo-65534/*/*.ring >/dev/null 2>&1'
{AS_NOBODY} /usr/bin/python3 - <<'PY' & liar=$!
import socket
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.bind("/dev/shm/kymo-recordings-65534/77")
server.listen(10)
open("/dev/shm/lies", "w").close()
n = 0
while True:
    client = server.accept()[0]
    try:
        client.recv(70000)
        client.send((b"ok\\0" if n % 3 else b"error\\0") + b"1{EVIL}\\0" * (n % 40))
    except OSError:
        pass
    n += 1
    client.close()
PY
wait_for '[ -e /dev/shm/lies ]'
for i in $(seq 40); do
    timeout 60 kymo sessions || exit 96
    timeout 60 kymo sessions --json || exit 95
done
kymo list --user
kymo ctl 77 --stop
kymo ctl $other --stop || exit 94
kill $liar $program; kill -TERM $recorder; wait $recorder || exit 97
wait $other
""")
    assert "\x1b" not in done.out + done.err
    assert r"s\x1b[31mp\x0a..x" in done.out + done.err and r"out\x1b[31m\x0ay" in done.out
    (trace,) = done.traces()
    assert os.path.basename(trace).startswith("s__31mp_..x-")


@in_a_box
def test_a_set_user_id_program_is_its_owners(box, root_dir):
    """Who starts it has no part in what it records: its sessions are those of its effective user."""
    if any(name in KYMO for name in ("-asan", "-tsan")):
        pytest.skip("the compiler's command is not that of a sanitized program")
    build = os.environ.get("KYMO_BUILD") or os.path.join(root_dir, "build")
    library = os.path.join(build, "src", "tracer")
    done = box(f"""
mkdir -m 777 /dev/shm/w; mount -t tmpfs -o mode=777 tmpfs /dev/shm/w
for name in plain suid; do
    cc -D_GNU_SOURCE -I{root_dir}/include -I{root_dir}/src -I{build} {root_dir}/test/tracer/modes.c \\
        -o /dev/shm/w/$name -L{library} -lkymo-trace -Wl,-rpath,{library} -lpthread -ldl || exit 96
done
cd /dev/shm/w; chmod 4755 suid
{AS_NOBODY} kymo record --user 'modes:*' -o theirs & other=$!
wait_for 'session_is_there 65534'
kymo record --user 'modes:*' -o roots & recorder=$!
wait_for '[ $(ls -d /dev/shm/kymo-65534/*/session | wc -l) = 2 ] && session_is_there'
for name in plain suid; do {AS_NOBODY} ./$name numbers 5 0; done
kill -TERM $other $recorder; wait $recorder || exit 97; wait $other || exit 95
ls theirs/ust/pid; echo; ls roots/ust/pid
""")
    theirs, roots = ([line.split("-")[0] for line in part.split()] for part in done.out.split("\n\n"))
    assert theirs == ["plain"] and roots == ["plain", "suid"]


# ---- traces ----

U8 = {"type": "fixed-length-unsigned-integer", "length": 8, "alignment": 8, "byte-order": "little-endian"}


def write_trace(path, names, field=None):
    """One event of each name."""
    def structure(name, cls):
        return {"type": "structure", "member-classes": [{"name": name, "field-class": cls}]}
    fragments = [{"type": "preamble", "version": 2}, {"type": "trace-class"},
                 {"type": "data-stream-class", "id": 0, "event-record-header-field-class":
                  structure("id", U8 | {"roles": ["event-record-class-id"]})}]
    fragments += [{"type": "event-record-class", "id": i, "data-stream-class-id": 0, "name": name,
                   "payload-field-class": structure("x", field or U8)} for i, name in enumerate(names)]
    path.mkdir()
    (path / "metadata").write_text("".join("\x1e" + json.dumps(one) + "\n" for one in fragments))
    (path / "s").write_bytes(b"".join(bytes([i, 7]) for i in range(len(names))))


def test_names_of_events_are_no_paths(kymo, tmp_path):
    names = ["../../evil", str(tmp_path / "evil"), "..", ".", "a/b", "metadata"]
    write_trace(tmp_path / "t", names)
    (tmp_path / "in").mkdir()
    kymo("convert", "--to", "csv", "-o", tmp_path / "in" / "out", tmp_path / "t")
    assert len(os.listdir(tmp_path / "in" / "out")) == len(names)
    assert sorted(os.listdir(tmp_path)) == ["in", "t"] and os.listdir(tmp_path / "in") == ["out"]


@pytest.mark.parametrize("field", [
    {"type": "static-length-array", "length": 1 << 40, "element-field-class": {"type": "structure"}},
    {"type": "static-length-array", "length": 1 << 40, "element-field-class": U8},
    {"type": "static-length-blob", "length": 1 << 60}], ids=["nothing", "bytes", "blob"])
def test_numbers_that_a_trace_claims(kymo, tmp_path, field):
    """A field of 2^40 elements in a file of two bytes: one line says so, at once."""
    write_trace(tmp_path / "t", ["e"], field)
    for args in (["print"], ["convert", "--to", "json"]):
        done = kymo(*args, tmp_path / "t", code=1, timeout=60)
        assert not done.out and re.search(r"t/s: .*at byte 1", done.err), done


@pytest.mark.parametrize("file", ["metadata", "s", "other", "index/s.idx"])
@pytest.mark.parametrize("kind", ["fifo", "device", "socket"])
def test_files_that_are_none(kymo, tmp_path, monkeypatch, file, kind):
    """No command waits for a pipe or opens a device, whatever its name in a trace is."""
    write_trace(tmp_path / "t", ["e"])
    (tmp_path / "t" / "index").mkdir()
    path = tmp_path / "t" / file
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        monkeypatch.chdir(path.parent)
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    for n, args in enumerate((["print"], ["info"], ["convert", "--to", "ctf2", "-o", tmp_path / "out"])):
        done = kymo(*args, tmp_path / "t", code=1 if file == "metadata" else 0, timeout=60)
        assert n or done.out.count("\n") == (file not in ("metadata", "s")), done
        assert ("not a regular file" in done.err) == (file in ("s", "other")), done


TSDL_OF_PACKETS = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
trace {
	major = 1; minor = 8; byte_order = le; uuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";
	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint32_t stream_instance_id; };
};
clock { name = c; };
stream {
	id = 0;
	packet.context := struct {
		integer { size = 64; align = 8; map = clock.c.value; } timestamp_begin;
		integer { size = 64; align = 8; map = clock.c.value; } timestamp_end;
		uint64_t content_size; uint64_t packet_size; uint32_t number;
	};
};
"""


def test_packets_of_one_time(kymo, tmp_path):
    """Two files with the same 200,000 packets, all of one time: finding out what both have takes no square of that."""
    uuid = bytes.fromhex("2a6422d06cee11e08c08cb07d7b3a564")
    for name in "ab":
        trace = tmp_path / "t" / name
        trace.mkdir(parents=True)
        (trace / "metadata").write_text(TSDL_OF_PACKETS)
        (trace / "s").write_bytes(b"".join(
            struct.pack("<I16sIIQQQQI", 0xC1FC1FC1, uuid, 0, 0, 5, 5, 64 * 8, 64 * 8, number)
            for number in range(200000)))
    done = kymo("info", tmp_path / "t", timeout=120)
    assert done.out, done
