# SPDX-License-Identifier: MIT
"""kymo debug-info, against addr2line, eu-addr2line, gdb and bpftool, on real programs and this machine's kernel."""

import json
import os
import random
import re
import shutil
import struct
import subprocess

import pytest

from test_user import KYMO

LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"

SOURCE = """
struct node { struct node *next; int flags : 3; unsigned kind : 5; char name[8]; };
enum colour { RED, GREEN = 5, BLUE };
typedef int (*callback)(struct node *, enum colour);
static inline __attribute__((always_inline)) int twice(int x) { return x * 2; }
__attribute__((noinline)) int call(callback f, struct node *n) { return f(n, RED) + twice(n->kind); }
__attribute__((noinline)) int other(const char *text, ...) { return twice(text[0]); }
int main(int argc, char **argv) { struct node n = {0}; return other(argv[0], call((callback)other, &n)); }
"""


def run(*words, code=0, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, **more)
    assert code is None or done.returncode == code, (words, done.returncode, done.stderr)
    return done.stderr if code else done.stdout


def debug_info(*words, **more):
    return run(KYMO, "debug-info", *words, **more)


def addresses(path, n):
    """Within random functions of a file."""
    found = []
    for options in (["-S"], ["-D", "-S"]):
        for line in run("nm", *options, "--defined-only", path, code=None).splitlines():
            words = line.split()
            # A sanitizer's own functions have lines, but no name in the debug information.
            if len(words) == 4 and words[2] in "tTwWi" and not words[3].startswith("_sub_"):
                found.append((int(words[0], 16), int(words[1], 16)))
    chosen = random.Random(7)
    return [begin + chosen.randrange(max(size, 1)) for begin, size in chosen.choices(sorted(found), k=n)]


def text_of(numbers):
    return "".join(f"{number:#x}\n" for number in numbers)


def ours(path, numbers, *options):
    """For each address its frames, the innermost first: (function, base name of the file, line)."""
    found = []
    for line in debug_info(*options, "find", path, input=text_of(numbers)).splitlines():
        frames = []
        for frame in line.split(" ", 1)[1].split(" (inlined by) "):
            name, file, number = re.fullmatch(r"(.*?)(?:\+0x[0-9a-f]+)? (\S+):(\d+)", frame).groups()
            frames.append((name, os.path.basename(file), int(number)))
        found.append(frames)
    assert len(found) == len(numbers)
    return found


def addr2line(path, numbers, program="addr2line"):
    out = run(program, "-a", "-f", "-i", "-e", path, input=text_of(numbers)).splitlines()
    found = []
    while out:
        if out[0].startswith("0x"):
            found.append([])
            out = out[1:]
            continue
        name, place = out[0].split(" inlined at ")[0], out[1].split(" (disc")[0]
        file, number = place.split(":")[:2]
        found[-1].append((name, os.path.basename(file), int(number) if number.isdigit() else 0))
        out = out[2:]
    return found


def plain(name):
    return re.sub(r"\.(isra|constprop|part|cold|lto_priv)\b.*", "", name)


def compare(path, n):
    numbers = addresses(path, n)
    mine, peer = ours(path, numbers), addr2line(path, numbers)
    assert len(peer) == n
    names = lines = 0
    differ = []
    for number, left, right in zip(numbers, mine, peer):
        assert len(left) == len(right), (hex(number), left, right)
        names += [plain(frame[0]) for frame in left[:-1]] == [frame[0] for frame in right[:-1]]
        lines += left[0][1:] == right[0][1:]
        if left[0][1:] != right[0][1:]:
            differ.append((number, left))
    # Names of frames that are inlined are those of the debug information for both.
    assert names == n
    # addr2line of binutils 2.40 takes the wrong file where code of an included file is compiled.
    assert lines > n * 0.9
    if shutil.which("eu-addr2line") and differ:
        out = run("eu-addr2line", "-e", path, input=text_of(number for number, _ in differ)).splitlines()
        for line, (number, left) in zip(out, differ):
            file, at = line.split(":")[:2]
            assert (os.path.basename(file), int(at)) == left[0][1:], (hex(number), line, left)


def test_libc():
    """Its symbols and lines are in a separate file, with parts in a file that is shared (dwz)."""
    compare(LIBC, 400)


def test_own_program():
    """Thousands of inlined functions."""
    compare(KYMO, 400)


def made(tmp_path, path, *options):
    out = tmp_path / (os.path.basename(path) + ".kdi")
    debug_info("make", *options, path, "-o", str(out))
    return str(out)


class Page:
    """A reader of .kdi files by docs/debug-info.md, with nothing of Kymo."""

    def __init__(self, path):
        with open(path, "rb") as file:
            self.data = file.read()
        magic, version, n, size = struct.unpack_from("<8sIIQ", self.data)
        assert (magic, version, size) == (b"KYMOKDI\n", 1, len(self.data))
        self.sections = {one: (at, at + length) for one, _, at, length in (
            struct.unpack_from("<IIQQ", self.data, 40 + 24 * i) for i in range(n))}
        self.n_functions, = struct.unpack_from("<I", self.data, 24)
        self.at = 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.number()
        return value // 2 if value % 2 == 0 else -(value + 1) // 2

    def text(self):
        end = self.data.index(b"\0", self.at)
        value, self.at = self.data[self.at:end], end + 1
        return value

    def files(self):
        begin, _ = self.sections[8]
        n, = struct.unpack_from("<I", self.data, begin)
        names = []
        for offset in struct.unpack_from(f"<{n}I", self.data, begin + 4):
            self.at = begin + 4 + 4 * n + offset
            names.append(self.text().decode())
        return names

    def block(self, number):
        """[address, size, name, [(address, file, line)]] of each function."""
        first, functions, names, lines, _ = struct.unpack_from("<QIIII", self.data, self.sections[3][0] + 24 * number)
        n = min(64, self.n_functions - 64 * number)
        self.at = self.sections[4][0] + functions
        sizes = [self.number() for _ in range(n)]
        found = [[first, sizes[0]]]
        for size in sizes[1:]:
            found.append([(sum(found[-1]) + 15) // 16 * 16 + self.signed(), size])
        self.at = self.sections[5][0] + names + n
        name = b""
        for i, one in enumerate(found):
            name = name[:self.data[self.sections[5][0] + names + i]] + self.text()
            one.append(name.decode())
        self.at = self.sections[6][0] + lines
        for one in found:
            one.append(self.lines(one[0]))
        return found

    def lines(self, address):
        found, file, line = [], 0, 0
        for _ in range(self.number()):
            step = self.number()
            address += step // 2
            file = self.number() if step % 2 else file
            line += self.signed()
            found.append((address, file, line))
        return found


def test_format_of_the_documentation(tmp_path):
    """A reader that knows only the documentation finds the functions of nm, and the lines of kymo debug-info find."""
    page = Page(made(tmp_path, LIBC, "--lines"))
    found = [one for number in range((page.n_functions + 63) // 64) for one in page.block(number)]
    assert len(found) == page.n_functions > 2000 and found == sorted(found, key=lambda one: one[0])
    sizes = {(one[0], one[2]): one[1] for one in found}
    of_nm = {}
    for line in run("nm", "-D", "-S", "--defined-only", LIBC).splitlines():
        words = line.split()
        if len(words) == 4 and words[2] in "tTwWi":
            of_nm[int(words[0], 16), words[3].split("@")[0]] = int(words[1], 16)
    both = of_nm.keys() & sizes.keys()
    assert len(both) > 1000 and all(sizes[one] == of_nm[one] for one in both)
    files, chosen = page.files(), random.Random(3).sample([one for one in found if one[3]], 300)
    # Of several lines of one address, the last one counts.
    places = [random.Random(at).choice([(place, *line) for place, line in {place: (file, line) for place, file, line in lines}.items()])
              for at, _, _, lines in chosen]
    mine = [(os.path.basename(files[file]), line) for _, file, line in places]
    assert [frames[0][1:] for frames in ours(LIBC, [at for at, _, _ in places])] == mine


@pytest.mark.parametrize("path", [LIBC, KYMO])
def test_file_says_the_same(tmp_path, path):
    """What is made of a file answers as the file itself."""
    numbers = addresses(path, 400)
    left, right = ours(path, numbers), ours(made(tmp_path, path, "--lines"), numbers)
    same = sum(a == b for a, b in zip(left, right))
    assert same == len(numbers), next((hex(n), a, b) for n, a, b in zip(numbers, left, right) if a != b)


SERVER = """
#include <stdio.h>
#include <string.h>
enum state { IDLE, BUSY = 3 };
struct inner { short a; char name[12]; };
struct request { int id; const char *path; unsigned flag : 3, rest : 5; struct inner *in; enum state state; double d; };
__attribute__((noinline, noclone)) int handle(volatile struct request *request, const char *who, unsigned long long big,
					      float f, short small)
{
	return request->id + (int)strlen(who) + (int)big + (int)f + small;
}
int main(void)
{
	volatile struct inner in = {-7, "inside"};
	volatile struct request r = {17, "/index", 5, 9, (struct inner *)&in, BUSY, 1.5};
	printf("%d\\n", handle(&r, "somebody", 1ULL << 33, 2.5f, -4));
	return 0;
}
"""
PROBE = ("{}:handle(request->id, request->path, request->flag, request->rest, request->in->name, request->in->a, "
         "request->state, who, big, small, $retval)")


def probed(place, program, *options):
    """The fields of the events of a probe with names of parameters."""
    run(KYMO, "record", *options, "--probe", PROBE.format(program), "-o", place, "--", program)
    lines = map(json.loads, run(KYMO, "convert", "--to", "json", place).splitlines())
    return [{name: value for name, value in line["fields"].items() if name not in ("ip", "func", "ret_ip")}
            for line in lines if line["event"].endswith((":handle", ":handle_return"))]


def test_probes(tmp_path, needs_root_tracefs):
    """Names and types of parameters come from a directory, or from the default place, as from the full debug information."""
    program, bare = tmp_path / "server", tmp_path / "bare" / "server"
    bare.parent.mkdir()
    subprocess.run(["gcc", "-O2", "-g", "-x", "c", "-", "-o", program], input=SERVER, text=True, check=True)
    number = re.search(r"Build ID: (\w+)", run("readelf", "-n", program))[1]
    made = tmp_path / "kdi" / f"{number}.kdi"
    made.parent.mkdir()
    debug_info("make", program, "-o", made)
    run("objcopy", "--strip-debug", program, bare)
    true = probed(tmp_path / "full", program)
    assert true[0] == {"request_id": 17, "request_path": "/index", "request_flag": 5, "request_rest": 9,
                       "request_in_name": "inside", "request_in_a": -7, "request_state": true[0]["request_state"],
                       "who": "somebody", "big": 1 << 33, "small": -4}
    assert "needs debug information" in run(KYMO, "record", "--probe", PROBE.format(bare), "-o", tmp_path / "none", "--", bare,
                                            code=None) or not os.path.exists(tmp_path / "none" / "kernel")
    assert probed(tmp_path / "dir", bare, "--symbol-dir", made.parent) == true
    place = f"/usr/lib/debug/kymo/{number}.kdi"
    os.makedirs(os.path.dirname(place), exist_ok=True)
    shutil.copy(made, place)
    try:
        assert probed(tmp_path / "place", bare) == true
    finally:
        os.unlink(place)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("program")
    (path / "small.c").write_text(SOURCE)
    run("gcc", "-g", "-O2", "-w", "-o", "small", "small.c", cwd=path)
    return str(path / "small")


def test_types(tmp_path, program):
    kdi = made(tmp_path, program)
    text = debug_info("show", kdi, "node", "colour", "call", "other", "callback")
    for line in ("struct node: 24 bytes", "0  struct node * next", "8.0  int flags : 3", "8.3  unsigned int kind : 5",
                 "9  char[8] name", "enum colour: 4 bytes", "5  GREEN", "6  BLUE",
                 "call: int (callback f, struct node *n)", "other: int (const char *text, ...)"):
        assert re.search(r"(?m)(^|\s)" + re.escape(line) + "$", text), (line, text)
    assert "callback = int (struct node *, enum colour) *" in text
    only = debug_info("show", made(tmp_path, program, "--types", "signatures"), "call", "node")
    assert "call: int (callback f, struct node *n)" in only and "next" not in only
    assert debug_info("show", made(tmp_path, program, "--types", "none"), "call").endswith("  call\n")
    id_ = re.search(r"Build ID: (\w+)", run("readelf", "-n", program))[1]
    assert f"build id   {id_}\n" in debug_info("show", kdi)


def test_types_as_gdb(tmp_path, program):
    if not shutil.which("gdb"):
        pytest.skip("no gdb")
    text = run("gdb", "-q", "-batch", "-nx", "-ex", "ptype /o struct node", "-ex", "info line call", program)
    mine = debug_info("show", made(tmp_path, program), "node")
    theirs = re.findall(r"(?m)^/\*\s+(\d+)(?:: ?(\d+))?\s+\|\s+\d+ \*/ +\S.*?(\w+)(?:\[\d+\])?(?: : \d+)?;$", text)
    assert [name for _, _, name in theirs] == ["next", "flags", "kind", "name"]
    for at, bit, name in theirs:
        assert re.search(rf"(?m)^ +{at}{'[.]' + bit if bit else ''}  .* {name}( : \d+)?$", mine), (at, bit, name, mine)
    line, address = re.search(r"Line (\d+) .* starts at address 0x([0-9a-f]+)", text).groups()
    frames = ours(program, [int(address, 16)])[0]
    assert frames[-1][0] == "call" and frames[0][1:] == ("small.c", int(line))


def test_kernel(tmp_path):
    """Without a debug package: /proc/kallsyms and BTF."""
    if not os.path.exists("/sys/kernel/btf/vmlinux") or os.geteuid():
        pytest.skip("no BTF, or not root")
    kdi = made(tmp_path, "kernel")
    text = debug_info("show", kdi, "vfs_read", "file", "pid_type")
    assert re.search(r"vfs_read: ssize_t \(struct file \*file, char \*buf, size_t count, loff_t \*pos\)", text)
    assert "PIDTYPE_TGID" in text
    raw = run("bpftool", "btf", "dump", "file", "/sys/kernel/btf/vmlinux", "format", "raw")
    block = re.search(r"(?m)^\[\d+\] STRUCT 'file' size=(\d+) vlen=\d+\n((?:\t.*\n)+)", raw)
    assert f"struct file: {block[1]} bytes" in text
    for name, bits in re.findall(r"'(\w+)' type_id=\d+ bits_offset=(\d+)", block[2]):
        assert re.search(rf"(?m)^ +{int(bits) // 8}(\.\d)?  .*\b{name}( : \d+)?$", text), name
    assert os.path.getsize(kdi) < os.path.getsize("/sys/kernel/btf/vmlinux")


MODULE = r"""
struct ring { int head; unsigned long tail; const char *name; };
struct module { char name[56]; };
struct module __this_module __attribute__((section(".gnu.linkonce.this_module"))) = { "toy" };
static const char license[] __attribute__((section(".modinfo"), used)) = "license=GPL";
static int count;
int toy_push(struct ring *ring, unsigned long value, int flags)
{
	count += flags;
	ring->tail = value;
	return ring->head++;
}
__attribute__((section(".init.text"))) int toy_init(void)
{
	struct ring ring = {1, 2, "toy"};
	return toy_push(&ring, 3, 4);
}
__attribute__((section(".exit.text"))) void toy_exit(void) { count = 0; }
"""


def test_module(tmp_path):
    """A file of a kernel module is not linked: its sections of code lie one behind the other, those of the start are forgotten."""
    part, module = tmp_path / "toy.o", tmp_path / "toy.ko"
    subprocess.run(["cc", "-x", "c", "-g", "-O2", "-ffreestanding", "-fno-pic", "-fno-asynchronous-unwind-tables", "-c", "-o", part, "-"],
                   input=MODULE, text=True, check=True)
    subprocess.run(["ld", "-r", "--build-id", "-o", module, part], check=True)
    kdi = made(tmp_path, module, "--lines")
    text = debug_info("show", kdi, "toy_push", "toy_exit", "ring")
    build_id = re.search(r"Build ID: (\w+)", run("readelf", "-n", module))[1]
    assert re.search(rf"build id +{build_id}\nfunctions +2\n", debug_info("show", kdi))
    sections = {name: (int(size, 16), 1 << int(align)) for name, size, align in re.findall(
        r"^ +\d+ (\S+) +(\w+) +\w+ +\w+ +\w+ +2\*\*(\d+)", run("objdump", "-h", module), re.M)}
    size, align = sections[".text"][0], sections[".exit.text"][1]
    exit_at = (size + align - 1) // align * align
    sizes = {line.split()[3]: int(line.split()[1], 16) for line in run("nm", "-S", module).splitlines() if len(line.split()) == 4}
    assert f"{0:016x} {sizes['toy_push']:6d}  toy_push: int (struct ring *ring, long unsigned int value, int flags)\n" in text
    assert f"{exit_at:016x} {sizes['toy_exit']:6d}  toy_exit: void (void)\n" in text
    assert "struct ring: 24 bytes" in text and re.search(r"(?m)^ +8 +long unsigned int tail$", text)
    for section, base in ((".text", 0), (".exit.text", exit_at)):
        last = sections[section][0] - 1
        line = run("addr2line", "-j", section, "-e", module, hex(last)).split(":")[-1].split()[0]
        assert re.search(rf"^{hex(base + last)} toy_\w+\+0x\w+ \S+:{line}$", debug_info("find", kdi, hex(base + last)), re.M)


def test_sizes(tmp_path):
    out = subprocess.run(["zstd", "-19", "-c", made(tmp_path, LIBC)], capture_output=True, check=True).stdout
    assert len(out) < 115_000


def test_damage(tmp_path, program):
    data = open(made(tmp_path, program, "--lines"), "rb").read()
    path = tmp_path / "cut.kdi"
    for length in (0, 10, 39, 60, 200, len(data) - 1):
        path.write_bytes(data[:length])
        assert "debug information" in debug_info("show", str(path), code=1)
    path.write_bytes(data[:8] + b"\2" + data[9:])
    assert "version 2" in debug_info("show", str(path), code=1)
    chosen = random.Random(3)
    for _ in range(20):
        broken = bytearray(data)
        for _ in range(8):
            broken[chosen.randrange(len(broken))] = chosen.randrange(256)
        path.write_bytes(broken)
        for words in (("show", str(path), "node", "call"), ("find", str(path), "1180", "1170")):
            done = subprocess.run([KYMO, "debug-info", *words], capture_output=True, timeout=20)
            assert done.returncode in (0, 1), done


def test_usage(tmp_path, program):
    assert "not make, show or find" in debug_info("look", program, code=2)
    assert "--types needs" in debug_info("make", program, "--types", "x", code=2)
    assert "no such file" in debug_info("make", str(tmp_path / "none"), code=1)
    assert "no function and no type 'nothing'" in debug_info("show", made(tmp_path, program), "nothing", code=1)
