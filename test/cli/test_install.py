# SPDX-License-Identifier: MIT
"""What 'make install' puts down is whole, and usable from there."""

import glob
import json
import os
import re
import shutil
import subprocess

import pytest

PROGRAM = """
#include <kymo/error.h>
#include <stdio.h>
int main(void) { return puts(kymo_status_text(KYMO_E_NOT_FOUND)) < 0; }
"""


@pytest.fixture(scope="module")
def build(root_dir):
    path = os.environ.get("KYMO_BUILD") or os.path.join(root_dir, "build")
    if not os.path.exists(os.path.join(path, "build.ninja")):
        pytest.skip(f"{path} is no build directory (KYMO_BUILD names it)")
    return path


@pytest.fixture(scope="module")
def options(build):
    out = subprocess.run(["meson", "introspect", "--buildoptions", build], check=True,
                         stdout=subprocess.PIPE).stdout
    return {option["name"]: option["value"] for option in json.loads(out)}


@pytest.fixture(scope="module")
def tree(build, options, tmp_path_factory):
    """The installed tree: its prefix inside a DESTDIR."""
    destdir = tmp_path_factory.mktemp("destdir")
    subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet"], check=True,
                   env=dict(os.environ, DESTDIR=str(destdir)), stdout=subprocess.DEVNULL)
    return str(destdir) + options["prefix"]


def test_program_runs_from_there(tree, kymo):
    done = subprocess.run([f"{tree}/bin/kymo", "--version"], check=True, stdout=subprocess.PIPE)
    assert done.stdout == kymo("--version").raw


def test_every_command_has_its_man_page(tree, kymo):
    named, also = kymo("help").out.split("\nCommands\n")[1].split("\n\n")[0].split("  also:")
    commands = [line.split()[0] for line in named.splitlines()] + also.split()
    expected = {"kymo.1"} | {f"kymo-{command}.1" for command in commands}
    assert set(os.listdir(f"{tree}/share/man/man1")) == expected
    for page in expected:
        assert os.path.getsize(f"{tree}/share/man/man1/{page}") > 200


def test_completion_is_in_place(tree):
    for path in ("bash-completion/completions/kymo.bash", "zsh/site-functions/_kymo",
                 "fish/vendor_completions.d/kymo.fish"):
        assert os.path.getsize(f"{tree}/share/{path}") > 200


def test_every_report_is_an_analysis_of_its_own(tree, kymo):
    """kymo-cpu-mi and so on, and the logs, which nobody sees without asking."""
    wanted = set()
    for line in kymo("report", "--list").out.splitlines():
        if line.startswith("  "):
            name = line.split()[0]
            tables = json.loads(kymo("lami", name, "--metadata").out)["table-classes"]
            wanted |= {f"kymo-{name}-mi"} | ({f"kymo-{name}-log-mi"} if "log" in tables and len(tables) > 1 else set())
    assert {path for path in os.listdir(f"{tree}/bin") if path.endswith("-mi")} == wanted
    for name in wanted:
        assert subprocess.run([f"{tree}/bin/{name}", "--mi-version"], check=True,
                              stdout=subprocess.PIPE).stdout == b"1.0\n"


def test_public_headers_are_in_place(tree, root_dir):
    wanted = {os.path.basename(path) for path in glob.glob(f"{root_dir}/include/kymo/*.h")}
    assert set(os.listdir(f"{tree}/include/kymo")) == wanted


def test_libraries_to_preload(tree, options):
    if options["b_sanitize"] != "none":
        pytest.skip("a sanitizer wants to be loaded first")
    lib_dir = os.path.dirname(glob.glob(f"{tree}/lib*/**/libkymo.so", recursive=True)[0])
    libraries = sorted(map(os.path.basename, glob.glob(f"{lib_dir}/libkymo-*.so")))
    libraries.remove("libkymo-trace.so")
    libraries.remove("libkymo-query.so")
    # The hooks of libkymo-mcount are for x86-64.
    assert [name for name in libraries if "mcount" not in name] == [f"libkymo-{name}.so" for name in (
        "cyg-profile-fast", "cyg-profile", "fd", "libc", "pthread")]
    assert ("libkymo-mcount.so" in libraries) == (os.uname().machine == "x86_64")
    done = subprocess.run(["env", f"LD_LIBRARY_PATH={lib_dir}", f"LD_PRELOAD={' '.join(libraries)}",
                           "cat", "/proc/self/maps"], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert not done.stderr
    assert all(f"{lib_dir}/{library}" in done.stdout for library in libraries)


@pytest.mark.parametrize("compiler,language", [("cc", "c"), ("c++", "c++")])
def test_a_program_builds_with_pkg_config(tree, options, tmp_path, compiler, language):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}: tools/install-deps test")
    pc_dir = os.path.dirname(glob.glob(f"{tree}/lib*/**/kymo.pc", recursive=True)[0])
    flags = subprocess.run(
        ["pkg-config", f"--define-variable=prefix={tree}", "--cflags", "--libs", "kymo"],
        check=True, stdout=subprocess.PIPE, text=True,
        env=dict(os.environ, PKG_CONFIG_PATH=pc_dir)).stdout.split()
    assert any(flag.startswith("-lkymo") for flag in flags)
    if options["b_sanitize"] != "none":
        flags.append(f"-fsanitize={options['b_sanitize']}")
    (tmp_path / "program.c").write_text(PROGRAM)
    program = tmp_path / "program"
    subprocess.run([compiler, "-x", language, "-Wall", "-Werror", "-o", program,
                    tmp_path / "program.c", "-x", "none", *flags], check=True)
    lib_dir = os.path.dirname(pc_dir)
    done = subprocess.run([program], check=True, stdout=subprocess.PIPE,
                          env=dict(os.environ, LD_LIBRARY_PATH=lib_dir))
    assert done.stdout == b"not found\n"


def test_library_exports_only_its_prefix(tree):
    library = glob.glob(f"{tree}/lib*/**/libkymo.so", recursive=True)[0]
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    names = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    assert "kymo_status_text" in names
    strange = {name for name in names if not re.match(r"kymo_|KYMO_|__(asan|ubsan|tsan|odr)", name)}
    assert not strange


def test_release_archive_has_the_page(build, root_dir, tmp_path):
    """`make dist` adds the built page, and a build without node takes it."""
    with open(os.path.join(build, "src", "view", "page.c")) as file:
        page = file.read()
    if "app.js" not in page:
        pytest.skip("this build has no page of the viewer")
    (tmp_path / "web").mkdir()
    env = dict(os.environ, MESON_BUILD_ROOT=str(build), MESON_DIST_ROOT=str(tmp_path))
    subprocess.run([os.path.join(root_dir, "tools", "dist-page")], env=env, check=True)
    assert (tmp_path / "web" / "page.c").read_text() == page
    empty = tmp_path / "bin"
    empty.mkdir()
    embed = ["/usr/bin/python3", os.path.join(root_dir, "tools", "embed-page"), tmp_path / "web", tmp_path / "out.c"]
    for _ in range(2):
        subprocess.run(embed, env={"PATH": str(empty)}, check=True)
        assert (tmp_path / "out.c").read_text() == page
    # It writes nothing if nothing has changed: ninja runs it each time.
    before = os.stat(tmp_path / "out.c").st_mtime_ns
    subprocess.run(embed, env={"PATH": str(empty)}, check=True)
    assert os.stat(tmp_path / "out.c").st_mtime_ns == before
    (tmp_path / "none").mkdir()
    env["MESON_BUILD_ROOT"] = str(tmp_path / "none")
    failed = subprocess.run([os.path.join(root_dir, "tools", "dist-page")], env=env, stderr=subprocess.PIPE, text=True)
    assert failed.returncode == 1 and "nodejs" in failed.stderr
