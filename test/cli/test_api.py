# SPDX-License-Identifier: MIT
"""libkymo from outside: what it exports, and the examples, from the tree and installed."""

import glob
import os
import re
import shutil
import subprocess

import pytest

from conftest import run
from test_install import build, options, tree  # noqa: F401 (fixtures)

EXAMPLES = ("count-events.c", "print-field.c", "filter.c", "stream-rates.cpp")


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
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    names = {name for name in names if name.startswith("kymo_")}
    assert len(names) > 50
    assert names == declared(root_dir)


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


@pytest.fixture(scope="module")
def installed(tree, options, root_dir, tmp_path_factory):  # noqa: F811
    """Build an example as its first comment says, against the installed copy; run(NAME, ...)."""
    pc_dir = os.path.dirname(glob.glob(f"{tree}/lib*/**/kymo.pc", recursive=True)[0])
    flags = subprocess.run(
        ["pkg-config", f"--define-variable=prefix={tree}", "--cflags", "--libs", "kymo"],
        check=True, stdout=subprocess.PIPE, text=True,
        env=dict(os.environ, PKG_CONFIG_PATH=pc_dir)).stdout.split()
    if options["b_sanitize"] != "none":
        flags.append(f"-fsanitize={options['b_sanitize']}")
    out = tmp_path_factory.mktemp("examples")

    def call(source, *args):
        compiler = "c++" if source.endswith(".cpp") else "cc"
        if not shutil.which(compiler):
            pytest.skip(f"no {compiler}: tools/install-deps test")
        program = out / os.path.splitext(source)[0]
        if not program.exists():
            subprocess.run([compiler, "-Wall", "-Wextra", "-Werror",
                            f"{root_dir}/examples/{source}", "-o", program, *flags], check=True)
        return run([program, *args], env={"LD_LIBRARY_PATH": os.path.dirname(pc_dir)})

    return call


@pytest.fixture(params=["tree", "installed"])
def example(request, build, installed):  # noqa: F811
    """example(SOURCE, *args) -> Result of the example, from the build tree and installed."""
    if request.param == "installed":
        return installed

    def call(source, *args):
        program = os.path.join(build, "examples", os.path.splitext(source)[0])
        if not os.path.exists(program):
            pytest.skip(f"{program} is not built")
        return run([program, *args])

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
