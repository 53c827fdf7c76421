# SPDX-License-Identifier: MIT
"""The command line itself: help, man pages, completion, usage errors, closed pipes."""

import os
import re
import shutil
import subprocess

import pytest

from terminal import on_terminal


@pytest.fixture(scope="module")
def commands(kymo):
    commands, rare = kymo("help").out.split("\nCommands\n")[1].split("\n\n")[0].split("\n  also:")
    return [line.split()[0] for line in commands.splitlines()] + rare.split()


def test_version(kymo):
    assert re.fullmatch(r"kymo \d+\.\d+\.\d+\n", kymo("--version").out)
    assert kymo("-V").out == kymo("--version").out


def test_overview_fits_one_screen(kymo):
    out = kymo().out
    assert out == kymo("help").out == kymo("--help").out
    assert len(out.splitlines()) <= 24
    assert max(len(line) for line in out.splitlines()) <= 80


def test_every_command_has_help_with_examples(kymo, commands):
    assert commands
    for command in commands:
        out = kymo("help", command).out
        assert out == kymo(command, "--help").out
        assert out == kymo(command, "-h").out
        assert f"\nUsage\n  kymo {command}" in out
        examples = out.split("\nExamples\n")
        assert len(examples) == 2, command
        assert f"kymo {command}" in examples[1]


def test_help_is_wrapped(kymo, commands):
    for command in commands:
        text = kymo("help", command).out.split("\nExamples\n")[0]
        for line in text.splitlines():
            assert len(line) <= 80 or line.startswith("   "), line


def test_see_also_names_commands(kymo, commands):
    for command in commands:
        out = kymo("help", command).out
        if "\nSee also\n" in out:
            names = re.findall(r"kymo ([\w-]+)", out.split("\nSee also\n")[1])
            assert set(names) <= set(commands), command


def test_man_pages_are_clean(kymo, commands):
    if not shutil.which("mandoc"):
        pytest.skip("mandoc is not installed: tools/install-deps test")
    for command in [None, *commands]:
        page = kymo("help", "--man", *([command] if command else [])).raw
        done = subprocess.run(["mandoc", "-Tlint", "-Wwarning"], input=page, check=False,
                              stdout=subprocess.PIPE)
        assert done.returncode == 0, (command, done.stdout.decode())


def test_unknown_command(kymo):
    result = kymo("hlep", code=2)
    assert result.out == ""
    assert result.err == "kymo: 'hlep' is not a command of kymo; did you mean 'kymo help'?\n"
    assert "did you mean" not in kymo("zzzzzzzz", code=2).err
    assert kymo("help", "hlep", code=2).err == result.err


def test_unknown_option(kymo):
    assert "did you mean --man?" in kymo("help", "--mann", code=2).err
    # Prefixes are not options, but they are understood in the hint.
    assert "did you mean --man?" in kymo("help", "--ma", code=2).err
    assert "unknown option -z" in kymo("help", "-z", code=2).err
    assert "unknown option --zzz" in kymo("--zzz", code=2).err


def test_wrong_use_is_exit_2_with_a_pointer(kymo):
    for args in (["completion"], ["completion", "bash", "zsh"], ["completion", "csh"],
                 ["help", "--man=yes"]):
        result = kymo(*args, code=2)
        assert result.out == ""
        assert f"see kymo {args[0]} --help" in result.err


def test_control_characters_do_not_reach_the_terminal(kymo):
    assert "\033" not in kymo("completion", "\033[31mred", code=2).err


@pytest.mark.parametrize("args", (
    ["help"], ["--version"], ["help", "print"], ["list", "--user"], ["list", "--user", "--json"], ["sessions"],
    ["sessions", "--json"], ["doctor"], ["doctor", "--json"], ["report", "-l"], ["completion", "bash"],
    ["info", "TRACE"], ["info", "--json", "TRACE"], ["print", "TRACE"], ["report", "summary", "TRACE"],
    ["report", "--json", "summary", "TRACE"], ["report", "--csv", "summary", "TRACE"],
    ["report", "--html", "summary", "TRACE"], ["lami", "cpu", "TRACE"], ["convert", "--to", "json", "TRACE"],
    ["convert", "--to", "details", "TRACE"], ["convert", "--to", "perfetto", "TRACE"],
    ["convert", "--to", "csv", "--fields", "$time", "TRACE"]), ids=" ".join)
def test_full_disk_is_no_success(kymo_bin, root_dir, args):
    trace = os.path.join(root_dir, "test", "data", "ok", "traces", "kinds")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([kymo_bin, *(trace if arg == "TRACE" else arg for arg in args)], stdout=full,
                              stderr=subprocess.PIPE, check=False)
    assert done.returncode == 1
    assert b"cannot write" in done.stderr and b"No space left" in done.stderr


@pytest.mark.parametrize("args", (
    ["print", "TRACE"], ["convert", "--to", "json", "TRACE"], ["report", "summary", "TRACE"],
    ["record", "--user", "a:b", "-o", "OUT", "true"]), ids=" ".join)
def test_filters_that_are_wrong_are_usage(kymo, root_dir, tmp_path, args):
    places = {"TRACE": os.path.join(root_dir, "test", "data", "ok", "traces", "kinds"), "OUT": tmp_path / "out"}
    result = kymo(args[0], "--filter", "a >", *(places.get(arg, arg) for arg in args[1:]), code=2)
    assert "--filter:1:4: the expression ends too early" in result.err


def test_closed_pipe_is_silent(kymo_bin):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([kymo_bin, "help"], stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


def test_bash_completion(kymo, commands):
    script = kymo("completion", "bash").out + r"""
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kymo; echo "${COMPREPLY[*]}"; }
try kymo ''
try kymo hel
try kymo help --
try kymo completion z
"""
    done = subprocess.run(["bash", "-c", script], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0].split() == commands
    assert lines[1:] == ["help", "--help --man", "zsh"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_parse(kymo, shell):
    script = kymo("completion", shell).raw
    assert script
    path = shutil.which(shell)
    if not path:
        pytest.skip(f"{shell} is not installed: tools/install-deps test")
    done = subprocess.run([path, "-n"], input=script, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_zsh_completion_loads(kymo, commands):
    path = shutil.which("zsh")
    if not path:
        pytest.skip("zsh is not installed: tools/install-deps test")
    script = "autoload -U compinit; compinit -D -u\n" + kymo("completion", "zsh").out + """
print $_comps[kymo]
_describe() { print -l $commands }
_kymo_commands
"""
    done = subprocess.run([path, "-f", "-c", script], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "_kymo"
    assert [line.split(":")[0] for line in lines[1:]] == commands


def test_fish_completion_loads(kymo, commands):
    path = shutil.which("fish")
    if not path:
        pytest.skip("fish is not installed: tools/install-deps test")
    script = kymo("completion", "fish").out + "complete -C 'kymo '; complete -C 'kymo help --m'\n"
    done = subprocess.run([path, "--no-config", "-c", script], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    assert done.stderr == ""
    lines = [line.split("\t")[0] for line in done.stdout.splitlines()]
    assert set(lines[:-1]) == set(commands)
    assert lines[-1] == "--man"


def test_help_on_a_terminal(kymo_bin):
    wide = on_terminal([kymo_bin, "help", "completion"], 100)
    narrow = on_terminal([kymo_bin, "help", "completion"], 50)
    assert "\033[1mUsage\033[0m" in wide
    assert len(narrow.splitlines()) > len(wide.splitlines())
    description = narrow.split("Description")[1].split("Options")[0]
    assert max(len(line) for line in description.splitlines()) <= 58  # 50 and the escapes
    assert "\033" not in on_terminal([kymo_bin, "help", "completion"], 100, NO_COLOR="1")
    assert "\033" not in on_terminal([kymo_bin, "help", "completion"], 100, TERM="dumb")
