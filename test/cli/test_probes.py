# SPDX-License-Identifier: MIT
"""kymo record --probe, --sdt, --kprobe: functions of programs, with what they are given."""

import json
import os
import re
import signal
import subprocess
import time

import pytest

PROGRAM = r"""
#include <stdint.h>
struct inner { int16_t small; const char *text; char array[12]; };
enum color { RED, GREEN = 7 };
struct item {
	struct item *next;
	struct inner in;
	unsigned int low : 3, high : 5;
	uint8_t *bytes;
	union { long number; void *pointer; };
	enum color color;
	float ratio;
};

#define KEEP __asm__ volatile("" ::: "memory")

__attribute__((noinline)) const char *handle(struct item *item, int fd, const char *name,
	uint64_t big, signed char c, unsigned short s, long seventh, int eighth)
{
	KEEP;
	return item->in.text + (fd > 2) + (name ? 0 : (long)(big + c + s + seventh + eighth));
}

__attribute__((noinline)) struct item by_value(struct item item, double d, int behind)
{
	KEEP;
	item.ratio += (float)d + behind;
	return item;
}

__attribute__((noinline)) static int only_here(double d, int x, int unused) { KEEP; return (int)d + x; }

int main(void)
{
	uint8_t bytes[] = {9, 8, 7};
	struct item second = {.in = {-5, "second", "arr2"}};
	struct item first = {&second, {-3, "first", "array"}, 5, 17, bytes, {77}, GREEN, 1.5f};

	for (int i = 0; i < 3; i++) {
		if (!handle(&first, i, i == 1 ? (void *)0 : "a name", UINT64_MAX - i, -i, 65535, 1234567890123, -8))
			return 1;
		by_value(first, 0.5, i);
		if (only_here(2.5, i, 3) != i + 2)
			return 2;
	}
	return 0;
}
"""

SDT = r"""
#define _SDT_HAS_SEMAPHORES 1
#include <stdint.h>
#include <sys/sdt.h>
#define SEMAPHORE(name) \
	__extension__ unsigned short shop_##name##_semaphore __attribute__((section(".probes"))) = 0
SEMAPHORE(sale);
SEMAPHORE(idle);
SEMAPHORE(ratio);
static long total = 40;

int main(void)
{
	volatile short tiny = -3;
	const char *name = "apple";
	int seen = 0;

	for (int i = 0; i < 5; i++) {
		if (*(volatile unsigned short *)&shop_sale_semaphore) {
			seen++;
			STAP_PROBE5(shop, sale, i, name, total, tiny, (uint64_t)7 << 40);
		}
		STAP_PROBE(shop, idle);
		STAP_PROBE1(shop, ratio, 1.5f);
		total += i;
	}
	return seen;
}
"""


def compile_c(folder, name, text, *flags):
    (folder / f"{name}.c").write_text(text)
    subprocess.run(["cc", "-g", "-w", *flags, "-o", folder / name, folder / f"{name}.c"], check=True)
    return folder / name


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probes")
    return {flag: compile_c(folder, f"target{flag.replace('-', '_').replace(' ', '')}", PROGRAM, *flag.split())
            for flag in ("-O0", "-O2", "-O2 -no-pie")}


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    if not os.path.exists("/usr/include/x86_64-linux-gnu/sys/sdt.h") and \
            not os.path.exists("/usr/include/sys/sdt.h"):
        pytest.skip("no <sys/sdt.h>: tools/install-deps test")
    return compile_c(tmp_path_factory.mktemp("sdt"), "shop", SDT, "-O2")


def events(kymo, trace):
    """The fields of all events but the state dump's, by name."""
    found = {}
    for line in kymo("convert", "--to", "json", trace).out.splitlines():
        event = json.loads(line)
        if "statedump" not in event["event"]:
            found.setdefault(event["event"], []).append(event["fields"])
    return found


def definitions():
    for name in ("uprobe_events", "kprobe_events"):
        path = f"/sys/kernel/tracing/{name}"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                yield from file


def left_of(pid):
    return [line for line in definitions() if f":kymo_{pid}_" in line]


def no_ips(fields):
    return {name: value for name, value in fields.items() if not name.endswith("ip") and name != "func"}


@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O2 -no-pie"])
def test_arguments_by_name(kymo, record, programs, flags):
    program = programs[flags]
    arguments = ("fd, name, big, c, s, seventh, eighth, item->in.small, item->in.text, item->in.array, "
                 "word=item->next->in.text, item->low, item->high, item->bytes[1], item->number, "
                 "item->color, item->ratio, second=%si:s32, $retval")
    trace, _ = record("--probe", f"h={program}:handle({arguments})", command=[program])
    found = events(kymo, trace)
    assert sorted(found) == ["h", "h_return"], found
    common = {"s": 65535, "seventh": 1234567890123, "eighth": -8, "item_in_small": -3,
              "item_in_text": "first", "item_in_array": "array", "word": "second", "item_low": 5,
              "item_high": 17, "item_bytes_1": 8, "item_number": 77, "item_color": 7,
              "item_ratio": 0x3fc00000}
    assert [no_ips(fields) for fields in found["h"]] == [
        {"fd": i, "second": i, "name": "" if i == 1 else "a name", "big": 2**64 - 1 - i, "c": -i} | common
        for i in range(3)]
    assert [fields["retval"] for fields in found["h_return"]] == ["first", "", "first"]
    assert {f["ip"] for f in found["h"]} == {f["func"] for f in found["h_return"]}


BY_VALUE = r"""
struct large { long a; int b; char name[12]; double d; };
struct two { int x; unsigned int y; long z; };
struct mixed { float f, g; long n; };
struct bits { unsigned int a : 3, b : 20; long c; };
struct small { short s; unsigned char t[3]; };
union either { int i; char c[8]; };
struct pair { long number; const char *text; };
#define NOT_INLINED __attribute__((noinline))
#define KEEP(x) __asm__ volatile("" ::"m"(x))

NOT_INLINED long on_stack(int before, struct large l, int behind) { KEEP(l); return l.a + before + behind; }
NOT_INLINED long in_two(int before, struct two t, int behind) { KEEP(t); return t.x + t.z + t.y + before + behind; }
NOT_INLINED long in_both(struct mixed m, int behind) { KEEP(m); return (long)m.f + m.n + behind; }
NOT_INLINED long of_bits(struct bits b, int behind) { KEEP(b); return b.a + b.b + b.c + behind; }
NOT_INLINED long of_small(struct small s, union either e, int behind) { KEEP(s); KEEP(e); return s.s + e.i + behind; }
NOT_INLINED long no_room(long a, long b, long c, long d, long e, struct pair p, int sixth, int last)
{
	KEEP(p);
	return a + b + c + d + e + p.number + sixth + last;
}
NOT_INLINED struct large made(int x, struct two t) { struct large l = {x + t.z}; KEEP(l); return l; }

int main(void)
{
	struct large l = {-11, -22, "a name", 1.5};
	struct two t = {-33, 4000000000u, -55};
	struct mixed m = {1.5f, 2.5f, -66};
	struct bits b = {5, 77777, -77};
	struct small s = {-8, {1, 2, 250}};
	union either e = {.i = -9};
	struct pair p = {-10, "a text"};

	return !(on_stack(1, l, 2) + in_two(3, t, 4) + in_both(m, 5) + of_bits(b, 6) + of_small(s, e, 7) +
		 no_room(1, 2, 3, 4, 5, p, 9, 10) + made(11, t).a);
}
"""


@pytest.mark.parametrize("flags", ["-O0", "-O2", "-O2 -gdwarf-3"])
def test_structs_by_value(kymo, record, tmp_path, flags):
    """Where the calling convention puts them, and what comes behind them."""
    program = compile_c(tmp_path, "by_value", BY_VALUE, *flags.split())
    wanted = {"on_stack": {"before": 1, "l_a": -11, "l_b": -22, "l_name": "a name", "behind": 2},
              "in_two": {"before": 3, "t_x": -33, "t_y": 4000000000, "t_z": -55, "behind": 4},
              "in_both": {"m_n": -66, "behind": 5}, "of_bits": {"b_a": 5, "b_b": 77777, "b_c": -77, "behind": 6},
              "of_small": {"s_s": -8, "s_t_1": 2, "s_t_2": 250, "e_i": -9, "behind": 7},
              "no_room": {"e": 5, "p_number": -10, "p_text": "a text", "sixth": 9, "last": 10},
              "made": {"x": 11, "t_z": -55, "t_y": 4000000000}}
    probes = []
    for function, fields in wanted.items():
        arguments = [re.sub(r"_(\d+)$", r"[\1]", re.sub(r"^([a-z])_", r"\1.", name)) for name in fields]
        probes += ["--probe", f"{function}={program}:{function}({', '.join(arguments)})"]
    trace, _ = record(*probes, command=[program])
    assert {name: [no_ips(f) for f in fields] for name, fields in events(kymo, trace).items()} == \
        {name: [fields] for name, fields in wanted.items()}
    for argument, words in (("m.f", "floating-point"), ("m", "name a member")):
        assert words in kymo("record", "--probe", f"{program}:in_both({argument})", "-o", tmp_path / "t", code=1).err


ODD_TYPES = r"""
#define NOT_INLINED extern "C" __attribute__((noinline))
#define KEEP(x) __asm__ volatile("" ::"m"(x))
struct wide { unsigned long a : 24, b : 40; unsigned long c : 33, d : 31; };
struct __attribute__((packed)) tight { unsigned long a : 61, b : 20; };
struct two { int x; unsigned int y; };
enum color { RED = -1, GREEN = 1 };
struct object { int method(int) { return 1; } int member; };
struct shared { int number; };
struct heir : virtual shared { int own; };

NOT_INLINED long bits(wide *w, tight *t, wide by_value) { KEEP(w); return w->b + t->b + by_value.b; }
NOT_INLINED long middle(two t, int behind) { KEEP(t); return t.y + behind; }
NOT_INLINED long pointers(int (object::*method)(int), int object::*member, int behind)
{
	KEEP(method);
	KEEP(member);
	return behind;
}
NOT_INLINED long references(color &c, const char *&text, bool &yes) { KEEP(c); return c + *text + yes; }
NOT_INLINED long of_heir(heir *h) { KEEP(h); return h->own + h->number; }

int main()
{
	wide w = {0x111111, 0x2222222222, 0x123456789, 0x55555555};
	tight t = {1, 54321};
	two two = {7, 8};
	heir h;
	color c = RED;
	const char *text = "a text";
	bool yes = true;

	h.number = 33;
	h.own = 44;
	return !(bits(&w, &t, w) + middle(two, 9) + pointers(&object::method, &object::member, 88) +
		 references(c, text, yes) + of_heir(&h));
}
"""


@pytest.mark.parametrize("flags", ["-O0", "-O0 -gdwarf-2", "-O0 -gdwarf-2 -gstrict-dwarf"])
def test_odd_types(kymo, record, tmp_path, flags):
    """Values in pieces of words, what takes two, and members of which debug information speaks in other ways."""
    (tmp_path / "odd.cc").write_text(ODD_TYPES)
    program = tmp_path / "odd"
    subprocess.run(["c++", "-w", "-g", *flags.split(), "-o", program, tmp_path / "odd.cc"], check=True)
    arguments = {"bits": "a=w->a, b=w->b, c=w->c, d=w->d, e=t->b, f=by_value.b, g=w->d:u8",
                 "middle": "x=t.x, y=t.y, told=t.y:u32, byte=t.y:u8, behind", "pointers": "behind",
                 "references": "text, yes" if "strict" in flags else "c, text, yes", "of_heir": "own=h->own"}
    probes = [word for name, list in arguments.items() for word in ("--probe", f"{name}={program}:{name}({list})")]
    trace, _ = record(*probes, command=[program])
    wide = {"a": 0x111111, "b": 0x2222222222, "c": 0x123456789, "d": 0x55555555}
    assert {name: no_ips(fields[0]) for name, fields in events(kymo, trace).items()} == {
        "bits": wide | {"e": 54321, "f": 0x2222222222, "g": 0x55},
        "middle": {"x": 7, "y": 8, "told": 8, "byte": 8, "behind": 9}, "pointers": {"behind": 88},
        "references": {"text": "a text", "yes": 1} | ({} if "strict" in flags else {"c": -1}),
        "of_heir": {"own": 44}}
    for argument, words in (("of_heir(h->number)", "no member 'number'; the struct has: "), ("middle(t.y:s32)", "u8 ... u64 only"),
                            ("bits(w->b:s64)", "u8 ... u64 only")):
        assert words in kymo("record", "--probe", f"{program}:{argument}", "-o", tmp_path / "t", code=1).err


def test_structs_without_end(kymo, needs_root_tracefs, tmp_path):
    """Debug information of a few lines may speak of more parts than anyone can look at."""
    levels = [f"struct L{n} {{ struct L{n - 1} a, b, c, d, e, f, g, h, i, j; }};" for n in range(1, 7)]
    source = "\n".join(["struct L0 {};", *levels, "struct all { struct L6 empty; int x; };",
                        "__attribute__((noinline)) int take(struct all all) { return all.x; }",
                        "int main(void) { struct all all = {.x = 5}; return take(all) - 5; }"])
    program = compile_c(tmp_path, "parts", source, "-O1")
    failed = kymo("record", "--probe", f"{program}:take(all.x)", "-o", tmp_path / "t", code=1)
    assert "'x': the struct is passed in registers" in failed.err


def test_members_beyond_their_struct(kymo, needs_root_tracefs, tmp_path):
    """Debug information whose members lie anywhere."""
    (tmp_path / "beyond.c").write_text("""struct two { long x, y; };
__attribute__((noinline)) long take(struct two t) { __asm__ volatile("" :: "m"(t)); return t.x + t.y; }
int main(void) { struct two t = {1, 2}; return take(t) == 4; }
""")
    text = subprocess.run(["cc", "-g", "-O1", "-S", "-dA", "-o", "-", tmp_path / "beyond.c"], check=True,
                          capture_output=True, text=True).stdout
    # -8, as DW_FORM_sdata says it.
    text, n = re.subn(r"0x8(\s+# DW_AT_data_member_location)", r"0x78\1", text)
    text, forms = re.subn(r"(0x38\s+# \(DW_AT_data_member_location\)\n\s*\.uleb128 )0xb\b", r"\g<1>0xd", text)
    if (n, forms) != (1, 1):
        pytest.skip("needs a compiler that comments on what it writes")
    (tmp_path / "beyond.s").write_text(text)
    subprocess.run(["cc", "-o", tmp_path / "beyond", tmp_path / "beyond.s"], check=True)
    for argument in "t.x", "t.y":
        failed = kymo("record", "--probe", f"{tmp_path}/beyond:take({argument})", "-o", tmp_path / "t", code=1)
        assert "nowhere the kernel could fetch it" in failed.err


MANGLED = r"""
#include <string>
struct Plain { long a, b, c; };
struct Object { int id; std::string text; };
namespace shop {
template <class T> struct Box { int place(const Object &o, int n); T held; };
template <class T> __attribute__((noinline)) int Box<T>::place(const Object &o, int n)
{
	__asm__ volatile("" ::: "memory");
	return o.id + n + (int)held;
}
struct Shop {
	__attribute__((noinline)) static long add(long a) { __asm__ volatile(""); return a + 1; }
	__attribute__((noinline)) static int add(int a) { __asm__ volatile(""); return a + 2; }
};
}
__attribute__((noinline)) long mixed(Plain p, Object o, int behind, int &counter)
{
	__asm__ volatile("" ::"m"(p));
	return p.a + o.id + behind + ++counter;
}

int main()
{
	Object object{7, "a text of more letters than strings hold themselves"};
	shop::Box<int> box{1};
	shop::Box<char> other{2};
	int counter = 41;

	return box.place(object, 5) + other.place(object, 6) + shop::Shop::add(3L) + shop::Shop::add(4) +
		       mixed({10, 20, 30}, object, 8, counter) == 0;
}
"""


COLD = r"""
#include <stdlib.h>
struct pair { int a, b; };
__attribute__((cold, noinline)) static void complain(int x) { __asm__ volatile("" ::"r"(x)); }
__attribute__((noinline)) static int work(struct pair *pair, int unused)
{
	if (__builtin_expect(pair->a > 0, 0)) {
		complain(pair->a);
		complain(pair->b);
		exit(3);
	}
	return pair->a * 2;
}
int main(int argc, char **argv)
{
	struct pair pair = {argc, 2};
	int sum = 0;

	for (int i = 0; i < 3; i++) {
		sum += work(&pair, i);
		__asm__ volatile("" ::"m"(pair));
	}
	return sum == 0;
}
"""


def test_cold_parts_are_not_the_function(kymo, record, tmp_path):
    program = compile_c(tmp_path, "cold", COLD, "-O2")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    if not re.search(r"work\.\w+\.0\.cold", symbols):
        pytest.skip("the compiler splits it otherwise")
    trace, _ = record("--probe", f"w={program}:work", command=[program], code=3)
    assert len(events(kymo, trace)["w"]) == 1


def test_a_language_with_ways_of_its_own(kymo, needs_root_tracefs, tmp_path):
    """Where Go's compiler puts arguments, C's convention does not say."""
    source = compile_c(tmp_path, "text", "int take(int a) { return a; } int main(void) { return take(0); }",
                       "-O0", "-S", "-dA")
    text = re.sub(r"\S+(\s+# DW_AT_language)", r"0x16\1", source.read_text())
    (tmp_path / "go.s").write_text(text)
    subprocess.run(["cc", "-o", tmp_path / "go", tmp_path / "go.s"], check=True)
    failed = kymo("record", "--probe", f"{tmp_path / 'go'}:take(a)", "-o", tmp_path / "t", code=1)
    assert "parameter 'a' is nowhere the kernel could fetch it" in failed.err


@pytest.mark.parametrize("flags", ["-O0", "-O2"])
def test_names_of_c_plus_plus(kymo, record, tmp_path, flags):
    (tmp_path / "mangled.cc").write_text(MANGLED)
    program = tmp_path / "mangled"
    subprocess.run(["c++", "-g", "-w", flags, "-o", program, tmp_path / "mangled.cc"], check=True)
    trace, _ = record("--probe", f"{program}:shop::Box::place(o.id, this->held, n)", "--probe",
                      f"a={program}:Shop::add(a, $retval)", "--probe",
                      f"m={program}:mixed(p.c, o.id, o.text._M_dataplus._M_p, behind, counter)", command=[program])
    found = events(kymo, trace)
    assert [no_ips(f) for f in found["mangled:shop::Box::place"]] == \
        [{"o_id": 7, "this_held": 1, "n": 5}, {"o_id": 7, "this_held": 2, "n": 6}]
    # Of one function with arguments of different types there are events of different types.
    assert [f["a"] for f in found["a"]] == [3, 4] and [f["retval"] for f in found["a_return"]] == [4, 6]
    assert [no_ips(f) for f in found["m"]] == [
        {"p_c": 30, "o_id": 7, "o_text__M_dataplus__M_p": "a text of more letters than strings hold themselves",
         "behind": 8, "counter": 41}]
    trace, _ = record("--probe", f"a={program}:Shop::add(a) if a > 3", command=[program])
    assert [f["a"] for f in events(kymo, trace)["a"]] == [4]
    result = kymo("record", "--probe", f"{program}:hop::plac", "-o", tmp_path / "t", code=1)
    assert "no function" in result.err
    result = kymo("record", "--probe", f"{program}:shop::Box::plac", "-o", tmp_path / "t", code=1)
    assert "there are: shop::Box::place" in result.err


def test_static_function_and_filter(kymo, record, programs):
    program = programs["-O2"]
    trace, _ = record("--probe", f"o={program}:only_here(x) if x > 0", command=[program])
    assert [f["x"] for f in events(kymo, trace)["o"]] == [1, 2]
    trace, _ = record("--probe", f"{programs['-O0']}:only_here($retval)", command=[programs["-O0"]])
    assert [f["retval"] for f in events(kymo, trace)[f"{programs['-O0'].name}:only_here_return"]] == [2, 3, 4]


def test_without_debug_information(kymo, record, programs, tmp_path):
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-g", "-o", stripped, programs["-O2"]], check=True)
    trace, _ = record("--probe", f"{stripped}:handle(arg2:s32, arg3:string, $stack1, %r8:s8)", "--kernel",
                      "sched_process_exec", command=[stripped])
    found = events(kymo, trace)
    assert [(f["arg2"], f["arg3"], f["stack1"], f["r8"]) for f in found["stripped:handle"]] == \
        [(i, "" if i == 1 else "a name", 1234567890123, -i) for i in range(3)]
    assert "sched_process_exec" in found
    result = kymo("record", "--probe", f"{stripped}:handle(fd)", "-o", tmp_path / "t", code=1)
    assert "debug information" in result.err and not (tmp_path / "t").exists()


def test_debug_information_kept_apart(kymo, record, programs, tmp_path):
    program, debug = tmp_path / "apart", tmp_path / "apart.debug"
    subprocess.run(["objcopy", "--only-keep-debug", programs["-O2"], debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", programs["-O2"], program],
                   check=True, cwd=tmp_path)
    trace, _ = record("--probe", f"{program}:handle(item->next->in.text)", command=[program])
    assert [f["item_next_in_text"] for f in events(kymo, trace)["apart:handle"]] == ["second"] * 3


def test_library(kymo, record, peer):
    trace, _ = record("--probe", "libc.so.6:getenv(name=arg1:string)", "--context", "procname",
                      command=["env", "-i", "/bin/true"])
    found = events(kymo, trace)["libc.so.6:getenv"]
    assert any("name" in fields for fields in found)
    assert peer("babeltrace2", trace).code == 0


def test_offsets(kymo, record, programs, tmp_path):
    """Where a line begins, an instruction does; elsewhere nobody knows. (The program is not run: it may be broken.)"""
    program = programs["-O0"]
    symbols = subprocess.run(["nm", "-S", program], capture_output=True, text=True, check=True).stdout
    begin, size = (int(number, 16) for number in re.search(r"^(\w+) (\w+) . handle$", symbols, re.MULTILINE).groups())
    table = subprocess.run(["objdump", "--dwarf=decodedline", program], capture_output=True, text=True, check=True).stdout
    lines = {int(number, 16) - begin for number in re.findall(r"\s0x([0-9a-f]+)", table)}
    inside = sorted(offset for offset in lines if 0 < offset < size)
    for offset, is_known in (inside[0], True), (inside[-1], True), (inside[0] - 1, False):
        assert is_known or offset not in lines
        _, result = record("--probe", f"{program}:handle+{offset}", command=["true"])
        assert ("cannot check that an instruction begins there" in result.err) != is_known, (offset, result)
    stripped = tmp_path / "stripped"
    subprocess.run(["strip", "-g", "-o", stripped, program], check=True)
    _, result = record("--probe", f"{stripped}:handle+{inside[0]}", command=["true"])
    assert f"{stripped}:handle+{inside[0]}: cannot check that an instruction begins there" in result.err


@pytest.mark.parametrize("spec,words", [
    ("{p}:nosuch", "no function"), ("{p}:handl", "there are: handle"),
    ("{p}:handle(nosuch)", "item, fd, name"), ("{p}:handle(item.in)", "use ->"),
    ("{p}:handle(item->in)", "name a member"), ("{p}:handle(item->nosuch)", "no member"),
    ("{p}:handle(fd->x)", "not a pointer"), ("{p}:handle(item->in.array.x)", "not a struct"),
    ("{p}:by_value(item.nosuch)", "no member"), ("{p}:by_value(d)", "d"),
    ("{p}:handle(%nosuch)", "kernel"),
    ("{p}:handle(fd", "','"), ("{p}:handle(fd)x", "more"), ("{p}:handle(fd,fd)", "same name"),
    ("{p}:", "no function"), ("handle", "FILE"), ("/nosuch:x", "no file"), ("/etc/passwd:x", "not a program"),
    ("/tmp:x", "no file"), ("{p}:handle($foo)", "$retval"), ("{p}:handle(arg1:nosuch)", "kernel"),
    ("{p}:handle(" + ",".join(f"a{i}=%di" for i in range(40)) + ")", "too many"),
    ("/bin/true:main", "no symbols"), ("{p}:handle+99999999(%di)", "not in the file"), ("libc.so.6:memcpy", "chosen"),
])
def test_mistakes(kymo, needs_root_tracefs, programs, tmp_path, spec, words):
    result = kymo("record", "--probe", spec.format(p=programs["-O0"]), "-o", tmp_path / "t", code=1)
    assert words in result.err and result.err.count("\n") == 1, result
    assert not (tmp_path / "t").exists()
    assert not os.listdir(tmp_path)


def test_sdt(kymo, record, shop):
    trace, result = record("--sdt", f"{shop}:*", command=[shop], code=5)
    assert "shop:ratio: 1 of its arguments" in result.err
    found = events(kymo, trace)
    assert [no_ips(f) for f in found["shop:sale"]] == [
        {"arg1": i, "arg2": found["shop:sale"][0]["arg2"], "arg3": 40 + sum(range(i)), "arg4": -3,
         "arg5": 7 << 40} for i in range(5)]
    assert len(found["shop:idle"]) == len(found["shop:ratio"]) == 5
    # Without somebody who listens the semaphore is 0 again.
    assert subprocess.run([shop], check=False).returncode == 0
    trace, _ = record("--sdt", f"{shop}:shop:i*", command=[shop])
    assert sorted(events(kymo, trace)) == ["shop:idle"]
    trace, result = record("--sdt", f"{shop}:sale (i=arg1, arg2:string, big=arg5:x64) if i > 2", command=[shop], code=5)
    assert [no_ips(f) for f in events(kymo, trace)["shop:sale"]] == \
        [{"i": i, "arg2": "apple", "big": 7 << 40} for i in (3, 4)]
    for text, words in (("sale(arg6)", "no argument 'arg6'"), ("*(arg1)", "no argument 'arg1'"), ("sale(x)", "arg1, arg2"),
                        ("sale(arg1->x)", "arg1, arg2"), ("sale(arg1", "neither")):
        assert words in kymo("record", "--sdt", f"{shop}:{text}", "-o", trace, code=1).err


def test_list_sdt(kymo, shop):
    out = kymo("list", "--sdt", shop).out
    assert "shop:idle" in out and "(with a semaphore)" in out
    probes = json.loads(kymo("list", "--sdt", "--json", shop).out)
    assert sorted(probe["name"] for probe in probes) == ["idle", "ratio", "sale"]
    assert "no SDT probes" in kymo("list", "--sdt", "/bin/true").out
    kymo("list", "--sdt", code=2)
    kymo("list", "--sdt", "/etc/passwd", code=1)


def test_no_sdt(kymo, needs_root_tracefs, shop, tmp_path):
    for text, words in ((f"{shop}:nosuch", "no probe matches"), ("/bin/true:*", "no SDT probes"),
                        ("sale", "PROVIDER:NAME"), ("/no/such:x", "no file")):
        assert words in kymo("record", "--sdt", text, "-o", tmp_path / "t", code=1).err


def test_kprobe(kymo, record, tmp_path):
    if os.path.exists("/sys/kernel/tracing/kprobe_events"):
        trace, _ = record("--kprobe", "do_sys_openat2(%si:u64, $retval:s64)", command=["cat", "/etc/hostname"])
        found = events(kymo, trace)
        assert found["kernel:do_sys_openat2"] and found["kernel:do_sys_openat2_return"]
    else:
        result = kymo("record", "--kprobe", "do_sys_openat2", "-o", tmp_path / "t", code=1)
        assert "this kernel has no kprobes" in result.err


INLINED = r"""
static int half(int x) { __asm__ volatile("nop"); return x / 2; }
static inline __attribute__((always_inline)) int third(int x) { __asm__ volatile("nop"); return x / 3; }
int (*volatile pointer)(int) = half;
int main(void) { return half(4) + half(8) + pointer(6) + third(9) != 12; }
"""


def test_calls_that_are_inlined(kymo, record, tmp_path):
    """A warning names the calls that are not recorded."""
    program = compile_c(tmp_path, "inlined", INLINED, "-O2", "-finline-functions")
    trace, done = record("--probe", f"h={program}:half(x)", command=[program])
    assert [f["x"] for f in events(kymo, trace)["h"]] == [6]
    assert "a copy of 'half' in 2 places" in done.err
    assert "no function 'third'" in kymo("record", "--probe", f"{program}:third", "-o", tmp_path / "t", code=1).err
    _, done = record("--probe", f"{program}:main", command=[program])
    assert "a copy of" not in done.err


CLONES = r"""
#define NAMED(name) __asm__(name) __attribute__((noinline, used))
__attribute__((noinline)) static int sum(int n, int by)
{
	int sum = 0;

	for (int i = 0; i < n; i++) {
		sum += i * by;
		__asm__ volatile("" : "+r"(sum));
	}
	return sum;
}
int (*volatile pointer)(int, int) = sum;
/* What compilers split differently from one version to the next has its names from us. */
static int beside(int x) NAMED("sum.part.7");
static int beside(int x) { __asm__ volatile("nop"); return x; }
static int cold(int x) NAMED("sum.constprop.0.cold");
static int cold(int x) { __asm__ volatile("nop"); return x + 1; }
static int rest(int x) NAMED("gone.part.0");
static int rest(int x) { __asm__ volatile("nop"); return x + 2; }
static int moved(int x) NAMED("moved.lto_priv.0");
static int moved(int x) { __asm__ volatile("nop"); return x + 3; }
static int other(int x) NAMED("moved");
static int other(int x) { __asm__ volatile("nop"); return x + 4; }

int main(void)
{
	int all = 0;

	for (int i = 0; i < 3; i++)
		all += sum(i, 7);
	all += pointer(2, 3) + beside(1) + cold(1) + rest(1) + moved(10) + other(20);
	return all == 0;
}
"""


def test_clones(kymo, record, tmp_path):
    """A probe at a function does not record calls of its clones: a warning says so, and how to record them."""
    program = compile_c(tmp_path, "clones", CLONES, "-O2", "-fipa-cp-clone", "-fno-ipa-sra")
    symbols = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    if not re.search(r" sum\.constprop\.0$", symbols, re.MULTILINE) or not re.search(r" sum$", symbols, re.MULTILINE):
        pytest.skip("the compiler makes no clone of it")
    trace, done = record("--probe", f"s={program}:sum(n)", command=[program])
    assert [f["n"] for f in events(kymo, trace)["s"]] == [2]
    said, = [line for line in done.err.splitlines() if "the compiler made" in line]
    found = re.search(r"clones:sum: the compiler made (\S+), (\S+) of it for some callers", said)
    assert set(found.groups()) == {"sum.constprop.0", "sum.part.7"} and f"--probe '{program}:{found[1]}'" in said
    # Each by its name; then there is nothing to tell.
    trace, done = record("--probe", f"{program}:sum", "--probe", f"{program}:sum.constprop.0(n, $retval)",
                         "--probe", f"{program}:sum.part.7", command=[program])
    found = events(kymo, trace)
    assert [f["n"] for f in found["clones:sum.constprop.0"]] == [0, 1, 2]
    assert [f["retval"] for f in found["clones:sum.constprop.0_return"]] == [0, 0, 7]
    assert len(found["clones:sum"]) == len(found["clones:sum.part.7"]) == 1 and "the compiler made" not in done.err
    # Two functions of one name; link-time optimisation has renamed them.
    trace, done = record("--probe", f"{program}:moved(arg1:s32)", command=[program])
    assert sorted(f["arg1"] for f in events(kymo, trace)["clones:moved"]) == [10, 20] and "the compiler made" not in done.err
    failed = kymo("record", "--probe", f"{program}:gone", "-o", tmp_path / "t", code=1)
    assert "no function 'gone'" in failed.err and "'gone.part.0'" in failed.err


def test_what_runs_is_listed(kymo, recordings, programs):
    probe = f"{programs['-O0']}:handle(fd)"
    recording = recordings("--probe", probe)
    listed, = [one for one in json.loads(kymo("sessions", "--json").out)["recordings"]
               if one["pid"] == recording.process.pid]
    assert (listed["kernel"], listed["probe"], listed["sdt"]) == ([], [probe], [])
    assert f"--probe {probe}" in kymo("sessions").out


def test_definitions_are_removed(kymo_bin, needs_root_tracefs, programs, tmp_path):
    args = [kymo_bin, "record", "--probe", f"{programs['-O0']}:handle(fd)", "-o"]
    for number, how in ((1, signal.SIGINT), (2, signal.SIGKILL)):
        process = subprocess.Popen([*args, tmp_path / f"t{number}"], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        for _ in range(3000):
            if left_of(process.pid) and (tmp_path / f"t{number}" / "kernel" / "metadata").exists():
                break
            time.sleep(0.02)
        assert left_of(process.pid)
        process.send_signal(how)
        process.wait()
        if how == signal.SIGINT:
            assert not left_of(process.pid)
    # What the killed one left, the next one removes.
    subprocess.run([*args, tmp_path / "t3", "--duration", "10ms"], check=True,
                   stderr=subprocess.DEVNULL)
    assert not left_of(process.pid)
