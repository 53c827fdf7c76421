# SPDX-License-Identifier: MIT
"""libkymo from outside: what it exports, and the examples, from the tree and installed."""

import functools
import glob
import os
import re
import shutil
import subprocess

import pytest

from conftest import run
from test_install import build, options, tree  # noqa: F401 (fixtures)

EXAMPLES = ("count-events.c", "print-field.c", "filter.c", "write-trace.c", "stream-rates.cpp",
            "sum-field.c", "last-events.c", "csv-to-ctf.c", "show-metadata.c")


def declared(root_dir):
    """The functions that the public headers declare."""
    names = set()
    for path in glob.glob(f"{root_dir}/include/kymo/*.h"):
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
        names |= set(re.findall(r"^KYMO_API\b[^;(]*?\b(kymo_\w+)\(", text, flags=re.M))
    return names


def test_library_exports_what_the_headers_declare(tree, root_dir):  # noqa: F811
    library = glob.glob(f"{tree}/lib*/**/libkymo.so", recursive=True)[0]
    out = run(["nm", "-D", "--defined-only", library]).out
    symbols = {line.split()[-1] for line in out.splitlines() if line.split()[-1][:5] == "kymo_"}
    names = {symbol.split("@")[0] for symbol in symbols}
    assert len(names) > 50
    # What is missing here is missing in src/libkymo.map.
    assert names == declared(root_dir)
    # Each belongs to the release that it came with.
    assert {symbol.split("@@")[1] for symbol in symbols} == {"KYMO_0.1"}


@pytest.mark.parametrize("compiler,language,standard", [
    ("cc", "c", "c11"), ("cc", "c", "gnu17"), ("c++", "c++", "c++11"), ("c++", "c++", "c++17")])
def test_every_header_compiles_alone(tree, compiler, language, standard):  # noqa: F811
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}: tools/install-deps test")
    for name in sorted(os.listdir(f"{tree}/include/kymo")):
        # Twice: guarded against that too.
        text = f"#include <kymo/{name}>\n" * 2
        done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra",
                               "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{tree}/include", "-"],
                              input=text, text=True, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, f"{name}: {done.stderr}"


MACROS = """
#include <kymo/reader.h>
#include <kymo/writer.h>
unsigned long count(const struct kymo_batch *batch)
{
	unsigned long n = 0;

	kymo_batch_foreach(batch, event)
		n += event->cpu != KYMO_NO_CPU;
	return n;
}
unsigned long sizes(void)
{
	struct kymo_reader_options reader_options = kymo_reader_options_init();
	struct kymo_writer_options writer_options = kymo_writer_options_init();
	struct kymo_clock_options clock_options = kymo_clock_options_init();

	return (unsigned long)(reader_options.size + writer_options.size + clock_options.size);
}
"""


@pytest.mark.parametrize("compiler,language,standard", [("cc", "c", "c99"), ("c++", "c++", "c++11")])
def test_macros(tree, compiler, language, standard):  # noqa: F811
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}: tools/install-deps test")
    done = subprocess.run([compiler, "-x", language, f"-std={standard}", "-Wall", "-Wextra",
                           "-Wpedantic", "-Wshadow", "-Wcast-qual", "-Werror", "-fsyntax-only",
                           f"-I{tree}/include", "-"],
                          input=MACROS, text=True, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tree, options, root_dir, tmp_path_factory):  # noqa: F811
    """Build an example as its first comment says, against the installed copy; run(NAME, ...).
    With static=True the library becomes a part of the program."""
    pc_dir = os.path.dirname(glob.glob(f"{tree}/lib*/**/kymo.pc", recursive=True)[0])

    def flags_of(*more):
        flags = subprocess.run(
            ["pkg-config", f"--define-variable=prefix={tree}", "--cflags", "--libs", *more, "kymo"],
            check=True, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PKG_CONFIG_PATH=pc_dir)).stdout.split()
        if options["b_sanitize"] != "none":
            flags.append(f"-fsanitize={options['b_sanitize']}")
        return flags

    kinds = {False: flags_of(),
             True: ["-l:libkymo.a" if flag == "-lkymo" else flag for flag in flags_of("--static")]}
    outs = {False: tmp_path_factory.mktemp("examples"), True: tmp_path_factory.mktemp("static")}

    def call(source, *args, static=False, **kwargs):
        flags, out = kinds[static], outs[static]
        compiler = "c++" if source.endswith(".cpp") else "cc"
        if not shutil.which(compiler):
            pytest.skip(f"no {compiler}: tools/install-deps test")
        program = out / os.path.splitext(source)[0]
        if not program.exists():
            subprocess.run([compiler, "-Wall", "-Wextra", "-Werror",
                            f"{root_dir}/examples/{source}", "-o", program, *flags], check=True)
        env = {} if static else {"LD_LIBRARY_PATH": os.path.dirname(pc_dir)}
        return run([program, *args], env=env, **kwargs)

    return call


@pytest.fixture(params=["tree", "installed", "static"])
def example(request, build, installed):  # noqa: F811
    """example(SOURCE, *args) -> Result of the example, from the build tree and installed."""
    if request.param == "installed":
        return installed
    if request.param == "static":
        return functools.partial(installed, static=True)

    def call(source, *args, **kwargs):
        program = os.path.join(build, "examples", os.path.splitext(source)[0])
        if not os.path.exists(program):
            pytest.skip(f"{program} is not built")
        return run([program, *args], **kwargs)

    return call


def ok(root_dir, name):
    return os.path.join(root_dir, "test", "data", "ok", "traces", name)


def bad(root_dir, name):
    return os.path.join(root_dir, "test", "data", "bad", "traces", name)


def test_examples_are_short(root_dir):
    for name in EXAMPLES:
        with open(os.path.join(root_dir, "examples", name), encoding="utf-8") as file:
            assert len(file.readlines()) < 80, name


@pytest.mark.parametrize("source", EXAMPLES)
def test_examples_say_how_to_use_them(example, source):
    result = example(source)
    assert result.code == 2
    assert result.err.startswith("usage: ")


def test_count_events(example, root_dir):
    result = example("count-events.c", ok(root_dir, "losses"))
    assert result.code == 0
    assert result.out == "         5  tick\n         8  lost by the tracer\n"


def test_count_events_of_a_damaged_trace(example, root_dir):
    result = example("count-events.c", bad(root_dir, "unknown-event-beside"))
    assert result.code == 1
    assert result.out == "         6  tick\n"
    assert "unknown-event-beside/c_0: no event class with id 9" in result.err


def test_print_field(example, root_dir):
    result = example("print-field.c", ok(root_dir, "index"), "tick", "n")
    assert result.code == 0, result
    lines = result.out.splitlines()
    assert lines[0] == "1600000000.000001000 CPU 0 0"
    assert [line.split()[-1] for line in lines] == list("012345")
    result = example("print-field.c", ok(root_dir, "kinds"), "kinds", "txt")
    assert result.out == '1600000000.000000005 CPU 1 "ab"\n'


def test_print_field_that_is_not_there(example, root_dir):
    result = example("print-field.c", ok(root_dir, "index"), "tick", "nope")
    assert result.err == "tick has no field nope\n"
    result = example("print-field.c", ok(root_dir, "index"), "tack", "n")
    assert result.code == 1
    assert "no event of the trace is named 'tack'" in result.err


def test_filter(example, root_dir):
    result = example("filter.c", ok(root_dir, "index"), "n >= 2 && n < 4")
    assert result.code == 0
    assert result.out == "tick: n = 2\ntick: n = 3\n"
    result = example("filter.c", ok(root_dir, "index"), "n >> ")
    assert result.code == 1
    assert result.err.splitlines()[1].strip() == "^"


def test_cxx(example, root_dir):
    result = example("stream-rates.cpp", ok(root_dir, "equal-times"), ok(root_dir, "back-in-time"))
    assert result.code == 0
    assert len(result.out.splitlines()) == 5
    assert "note: " in result.err and "time goes back" in result.err


def test_sum_field(example, root_dir):
    result = example("sum-field.c", ok(root_dir, "kinds"), "kinds", "structs[1].a")
    assert result.code == 0 and not result.err
    assert result.out == ""  # it has no context field "tid"


def test_sum_field_by_thread(example, build, tmp_path):
    trace = tmp_path / "kinds"
    assert run([f"{build}/test/unit/write-kinds", trace, "1.8", 0]).code == 0
    result = example("sum-field.c", trace, "all*", "point.x")
    assert result.code == 0, result
    assert result.out.split() == ["7", "500", "events", "-2500"]
    # The third element of each row: 2000 + 5000 do not have the same index.
    result = example("sum-field.c", trace, "all*", "grid[1][2]")
    assert result.out.split() == ["7", "500", "events", "2500000"]
    result = example("sum-field.c", trace, "all*", "list[2].stream")
    assert result.out.split() == ["7", "125", "events", "250"]


def test_last_events(example, root_dir):
    result = example("last-events.c", ok(root_dir, "index"), 0, "n >= 0")
    assert result.code == 0, result
    assert re.match(r" +0\.000000 ms tick, at byte \d+ of \S+/index/c_0\n$", result.out)
    result = example("last-events.c", bad(root_dir, "unknown-event-beside"), 1000, "n >= 0")
    assert result.code == 0
    assert "damaged: no event class with id 9" in result.out
    result = example("last-events.c", ok(root_dir, "index"), 0, "n >>")
    assert result.code == 1


def test_csv_to_ctf(example, kymo, peer, tmp_path):
    (tmp_path / "in.csv").write_text("1700000000.25,cpu0,41.5\n\n1700000001,note,too hot\n")
    with open(tmp_path / "in.csv", encoding="utf-8") as file:
        assert example("csv-to-ctf.c", tmp_path / "trace", stdin=file).code == 0
    text = kymo("print", "--no-delta", tmp_path / "trace").out
    assert text == (
        '[22:13:20.250000000] sample: { cpu_id = 0 }, { name = "cpu0", '
        '_value_tag = ( "number" : container = 0 ), value = { 41.5 } }\n'
        '[22:13:21.000000000] sample: { cpu_id = 0 }, { name = "note", '
        '_value_tag = ( "word" : container = 1 ), value = { "too hot" } }\n')
    assert peer("babeltrace2", "--no-delta", tmp_path / "trace").out == text
    # Time goes back: nothing is left behind.
    (tmp_path / "in.csv").write_text("5,a,1\n4,a,1\n")
    with open(tmp_path / "in.csv", encoding="utf-8") as file:
        result = example("csv-to-ctf.c", tmp_path / "other", stdin=file)
    assert result.code == 1
    assert result.err == "event 'sample': time goes back\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "trace"]


def test_show_metadata(example, root_dir):
    result = example("show-metadata.c", ok(root_dir, "kinds"))
    assert result.code == 0
    lines = result.out.splitlines()
    assert "clock monotonic, 1000000000 Hz" in lines
    assert "    v: variant" in lines and "      two: structure, 8 bits" in lines
    assert lines[-1] == "data stream c_0: 1 packets"


def traces(root_dir, kind):
    top = os.path.join(root_dir, "test", "data", kind, "traces")
    return sorted(os.path.join(top, name) for name in os.listdir(top)
                  if os.path.isdir(os.path.join(top, name)))


def test_every_good_trace(build, kymo, root_dir):  # noqa: F811
    for trace in traces(root_dir, "ok"):
        lines = kymo("print", trace).out.splitlines()
        counted = run([f"{build}/examples/count-events", trace])
        assert counted.code == 0, counted
        n_events = sum(int(line[:10]) for line in counted.out.splitlines()
                       if not line.endswith("lost by the tracer"))
        assert n_events == len(lines), trace
        walked = run([f"{build}/examples/filter", trace, "$time == $time"])
        assert walked.code == 0, walked


def test_every_bad_trace(build, kymo, root_dir):  # noqa: F811
    for trace in traces(root_dir, "bad"):
        printed = kymo("print", trace, code=None)
        counted = run([f"{build}/examples/count-events", trace])
        assert counted.code == printed.code == 1, counted
        n_events = sum(int(line[:10]) for line in counted.out.splitlines()
                       if not line.endswith("lost by the tracer"))
        assert n_events == len(printed.out.splitlines()), trace
        assert re.match(rf"{re.escape(trace)}\S*: \S", counted.err), counted


def test_real_traces(build, kymo, shared):  # noqa: F811
    for name in ("lttng-kernel", "lttng-ust"):
        trace = os.path.join(shared, "traces", name)
        total = int(kymo("print", "--count", trace).out)
        read = run([f"{build}/examples/stream-rates", trace])
        assert read.code == 0
        assert sum(int(line.split()[1]) for line in read.out.splitlines()) == total > 0
        walked = run([f"{build}/examples/filter", trace, "$cpu >= 0"])
        assert walked.code == 0 and walked.out.count("\n") >= total


# ---- writing ----------------------------------------------------------------------------------


def test_write_trace(example, kymo, peer, tmp_path):
    trace = tmp_path / "trace"
    assert example("write-trace.c", trace).code == 0
    text = kymo("print", "--no-delta", trace).out
    lines = [line.split("] ", 1)[1] for line in text.splitlines()]
    assert lines == [
        'example request: { cpu_id = 0 }, { path = "/", status = ( "ok" : container = 200 ), '
        '_chunks_length = 0, chunks = [ ] }',
        'example request: { cpu_id = 0 }, { path = "/etc/passwd", '
        'status = ( "ok" : container = 200 ), _chunks_length = 1, chunks = [ [0] = 4096 ] }',
        'example request: { cpu_id = 0 }, { path = "/favicon.ico", '
        'status = ( "not found" : container = 404 ), _chunks_length = 2, '
        'chunks = [ [0] = 4096, [1] = 4097 ] }',
        'example idle: { cpu_id = 0 }']
    for name in ("babeltrace2", "babeltrace"):
        result = peer(name, "--no-delta", trace)
        assert result.code == 0, result
        assert result.out == text
    # Never over another trace.
    result = example("write-trace.c", trace)
    assert result.code == 1
    assert "not empty" in result.err


@pytest.fixture(scope="module", params=[0, 60], ids=["compact", "large"])
def kinds(request, build, tmp_path_factory):  # noqa: F811
    """kinds(VERSION): a trace with all kinds of fields; once with compact, once large headers."""
    program = os.path.join(build, "test", "unit", "write-kinds")
    if not os.path.exists(program):
        pytest.skip(f"{program} is not built")
    directory = tmp_path_factory.mktemp("kinds")

    def call(version):
        trace = directory / version
        if not trace.exists():
            result = run([program, trace, version, request.param])
            assert result.code == 0 and not result.err, result
        return trace

    return call


LOST = "13 events between [22:13:20.000051500] and [22:13:20.000052500]"


def test_peers_read_what_is_written(kinds, kymo, peer):
    ours = kymo("print", kinds("1.8"))
    assert ours.out.count("\n") == 1000
    assert ours.err.count("13 events lost by the tracer between 22:13:20.000051500 and "
                          "22:13:20.000052500") == 1
    assert len(ours.err.splitlines()) == 1
    theirs = peer("babeltrace2", kinds("1.8"))
    assert theirs.code == 0 and theirs.raw == ours.raw
    assert theirs.err.count(LOST) == 1
    theirs = peer("babeltrace", kinds("1.8"))
    assert theirs.code == 0 and LOST in theirs.err
    # It escapes nothing, and warns of numbers without a label.
    assert theirs.out == ours.out.replace('\\"quoted\\"', '"quoted"')


def test_ctf_2_holds_the_same(kinds, kymo):
    assert "format       CTF 2\n" in kymo("info", kinds("2")).out
    assert kymo("print", kinds("2")).raw == kymo("print", kinds("1.8")).raw


def test_all_kinds_have_their_values(kinds, kymo):
    line = kymo("print", kinds("2")).out.splitlines()[4]
    assert line.endswith(
        '{ tid = 7 }, { depth = 3 }, { u8 = 2, i16 = -2, x32 = 0xDEADBEEF, '
        'i64 = -9223372036854775808, u64 = 18446744073709551615, f32 = 0.5, f64 = -1e+300, '
        'string = "a \\"quoted\\" one", comm = "short", state = ( "down" : container = -1 ), '
        'point = { x = -5, _names_length = 2, names = [ [0] = "one", [1] = "two" ] }, '
        'grid = [ [0] = [ [0] = 0, [1] = 1000, [2] = 2000 ], '
        '[1] = [ [0] = 3000, [1] = 4000, [2] = 5000 ] ], '
        '_list_length = 2, list = [ [0] = { stream = 0, none = [ ] }, '
        '[1] = { stream = 1, none = [ ] } ] }')


def test_a_place_where_nothing_can_be_written(build):  # noqa: F811
    program = os.path.join(build, "test", "unit", "write-kinds")
    result = run([program, "/proc/no-such-place/trace", "1.8", 0])
    assert result.code == 1
    assert result.err.startswith("/proc/no-such-place/trace: cannot create")


@pytest.fixture
def write_random(build, tmp_path):  # noqa: F811
    """write_random(MODE, SEED): the path of a random trace, which was read back and compared."""
    program = os.path.join(build, "test", "unit", "write-random")
    if not os.path.exists(program):
        pytest.skip(f"{program} is not built")

    def call(mode, seed):
        trace = tmp_path / f"{mode}-{seed}"
        result = run([program, trace, mode, seed])
        assert result.code == 0 and not result.err, result
        # A trace that is finished leaves nothing beside it.
        assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []
        return trace

    return call


@pytest.mark.parametrize("seed", range(6))
def test_random_traces_of_ctf_2(write_random, kymo, seed):
    assert kymo("print", write_random("2", seed)).out.count("\n") == 400


@pytest.mark.parametrize("mode,name", [("1.8", "babeltrace2"), ("simple", "babeltrace")])
@pytest.mark.parametrize("seed", range(6))
def test_peers_read_random_traces(write_random, kymo, peer, mode, name, seed):
    trace = write_random(mode, seed)
    theirs = peer(name, trace)
    assert theirs.code == 0
    assert theirs.raw == kymo("print", trace).raw
