# SPDX-License-Identifier: MIT
"""kymo record --sample: what CPUs run, compared with what programs do and with perf."""

import bisect
import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest

from conftest import SANITIZED

# Three quarters of the time in hot(), one quarter in warm(), both by way of inner(); then it maps and runs nothing more.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static volatile unsigned long sink;

__attribute__((noinline)) void inner(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sink += i;
}

__attribute__((noinline)) void hot(void)
{
	inner(300000);
	__asm__ volatile("");
}

__attribute__((noinline)) void warm(void)
{
	inner(100000);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	struct timespec now;

	do {
		hot();
		warm();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec + now.tv_nsec / 1e9 < atof(argv[1]));
	return 0;
}
"""


@pytest.fixture(scope="session")
def spinner(tmp_path_factory):
    path = tmp_path_factory.mktemp("spinner") / "spinner"
    subprocess.run(["cc", "-x", "c", "-O0", "-fno-omit-frame-pointer", "-w", "-o",
                    path, "-"], input=PROGRAM, text=True, check=True)
    return path


def functions(program):
    """[(first address in the file, name)]"""
    lines = subprocess.run(["nm", "-n", "--defined-only", program], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [(int(line.split()[0], 16), line.split()[2]) for line in lines if line.split()[1] in "tTwW"]


class Names:
    """Names of a program's addresses, by the mappings that a trace tells."""

    def __init__(self, program):
        self.program, self.symbols, self.maps = str(program), functions(program), collections.defaultdict(list)

    def take(self, event):
        fields = event["fields"]
        if event["event"] == "kymo_mappings_begin":
            self.maps[fields["pid"]] = []
        elif event["event"] == "lttng_statedump_process_map":
            self.maps[fields["pid"]].append(fields)

    def of(self, pid, address):
        for place in reversed(self.maps[pid]):
            if place["begin"] <= address < place["end"] and place["filename"] == self.program:
                # The program is linked at 0: offsets and addresses of its text agree.
                offset = address - place["begin"] + place["offset"]
                return self.symbols[bisect.bisect(self.symbols, (offset, "~")) - 1][1]
        return None


def samples(kymo, trace, program):
    """[(event, [names of the program's frames])]"""
    found, names = [], Names(program)
    for event in map(json.loads, kymo("convert", "--to", "json", trace).out.splitlines()):
        names.take(event)
        if event["event"] == "sample":
            context = event["context"]
            found.append((event, [names.of(context["pid"], address) for address in context["callstack_user"]]))
    return found


def source(event):
    return event["fields"]["source"]["labels"][0]


def test_against_the_program_and_perf(kymo, record, peer, spinner, tmp_path):
    """The program's samples have its functions, in its proportion, as many as perf has at the same rate."""
    trace, _ = record("--sample", "cpu-clock:499Hz", command=[str(spinner), "1"])
    mine = [(event, names) for event, names in samples(kymo, trace, spinner)
            if event["context"]["procname"] == "spinner" and "inner" in names]
    assert {source(event) for event, _ in mine} == {"cpu-clock"}
    callers = collections.Counter(names[names.index("inner") + 1] for _, names in mine)
    assert callers["hot"] + callers["warm"] >= 0.95 * len(mine)
    assert 0.6 < callers["hot"] / len(mine) < 0.9
    assert all(names[-1] is None or names[names.index("inner") + 2] == "main" for _, names in mine)
    # A second of CPU time.
    assert 0.7e9 < sum(event["fields"]["period"] for event, _ in mine) < 1.3e9
    data = tmp_path / "perf.data"
    peer("perf", "record", "-q", "-a", "-g", "-e", "cpu-clock", "-F", "499", "-o", data, "--", spinner, "1")
    script = peer("perf", "script", "-i", data, "-F", "comm,ip,sym").out
    theirs = collections.Counter(
        match[1] for match in re.finditer(r"^ *spinner *\n\s+[0-9a-f]+ inner\n\s+[0-9a-f]+ (\w+)\n", script, re.M))
    assert theirs, script[:2000]
    assert abs(theirs["hot"] / sum(theirs.values()) - callers["hot"] / len(mine)) < 0.1
    assert 0.6 < sum(theirs.values()) / len(mine) < 1.6
    # The same samples: perf report and the flame graph have the same functions with the same weights.
    perf = peer("perf", "report", "-i", data, "--stdio", "--no-children", "-g", "none", "--comm", "spinner",
                "--sort", "comm,sym", "-F", "period,comm,sym").out
    rows = re.findall(r"^ +(\d+) +\[([.k])\] (\S+) *$", perf, re.M)
    known = {(mode, name): int(period) for period, mode, name in rows if not name.startswith("0x")}
    weights = collections.Counter()
    for line in kymo("report", "flame", "--comm", "spinner", "--to", "folded", data).out.splitlines():
        stack, weight = line.rsplit(" ", 1)
        name = stack.rsplit(";", 1)[-1]
        weights["k" if name.endswith("_[k]") else ".", name.removesuffix("_[k]")] += int(weight)
    assert (".", "inner") in known
    assert {key: weights[key] for key in known} == known


def test_readers_agree(kymo, record, peer, spinner, tmp_path):
    """babeltrace2 reads the same samples and mappings; build ids are those of the files."""
    trace, _ = record("--sample", "199", command=[str(spinner), "0.2"])
    # The trace has each stack once, which Kymo knows; converted, it has them for others, too.
    kymo("convert", "-o", tmp_path / "whole", trace)
    trace = tmp_path / "whole"
    theirs = peer("babeltrace2", "--no-delta", "--clock-cycles", trace).out
    ours = kymo("print", "--no-delta", "--clock-cycles", trace).out
    # babeltrace2 2.0.4 shows the text of an earlier event where a text is empty.
    empty = [line for line in ours.splitlines() if ' = ""' in line]
    assert not set(ours.splitlines()) - set(theirs.splitlines()) - set(empty)
    assert len(ours.splitlines()) == len(theirs.splitlines())
    notes = subprocess.run(["readelf", "-n", spinner], capture_output=True, text=True, check=True).stdout
    build_id = re.search(r"Build ID: (\w+)", notes)[1]
    assert f'build_id = "{build_id}", filename = "{spinner}"' in ours


def test_chosen(kymo, record, spinner):
    """With --follow only the command and its children; children of a shell that began before."""
    trace, _ = record("--sample", "499", "--follow", command=["sh", "-c", f"{spinner} 0.2; {spinner} 0.2 & wait"])
    found = samples(kymo, trace, spinner)
    names = {event["context"]["procname"] for event, _ in found}
    assert "spinner" in names and names <= {"spinner", "sh", "kymo"}, names
    assert len({event["context"]["pid"] for event, names in found if "inner" in names}) == 2


def test_losses_of_others(kymo_bin, needs_root_tracefs, spinner, tmp_path):
    """The rings have the samples of all threads, so those that are lost may be of others."""
    ready, said = os.pipe()
    recorder = subprocess.Popen([kymo_bin, "record", "-o", tmp_path / "trace", "--no-symbols", "--sample", "cpu-clock:499Hz", "--stacks",
                                 "dwarf", "-b", "64k", "--pid", str(os.getpid()), "--ready-fd", str(said)], pass_fds=[said],
                                stderr=subprocess.PIPE, text=True)
    os.close(said)
    assert os.read(ready, 1)
    os.close(ready)
    recorder.send_signal(signal.SIGSTOP)
    subprocess.run([spinner, "0.5"], check=True)
    recorder.send_signal(signal.SIGCONT)
    recorder.send_signal(signal.SIGINT)
    _, text = recorder.communicate()
    assert recorder.returncode == 0 and re.search(
        r"warning: \d+ samples of all threads of the machine, not only of the chosen ones, were lost", text), text


def test_beside_events(kymo, record, without_losses, spinner):
    """On the clock of the kernel's events: a sampled thread runs on the CPU then, as switches tell."""
    trace, _ = without_losses(record, "--sample", "499", "--sample", "context-switches", "-k", "sched_switch",
                              command=[str(spinner), "0.3"])
    running, checked, wrong, switches = {}, 0, 0, collections.Counter()
    for event in map(json.loads, kymo("convert", "--to", "json", trace).out.splitlines()):
        cpu = event["packet"]["cpu_id"]
        if event["event"] == "sched_switch":
            running[cpu] = event["fields"]["next_tid"]
            switches["recorded"] += 1
        elif event["event"] == "sample" and source(event) == "context-switches":
            switches["sampled"] += 1
            assert event["fields"]["period"] == 1
        elif event["event"] == "sample" and cpu in running:
            checked += 1
            wrong += running[cpu] != event["context"]["tid"]
    assert checked > 50 and wrong <= 0.02 * checked
    # Those from the idle task are no samples.
    assert 0.3 * switches["recorded"] < switches["sampled"] < 1.1 * switches["recorded"] + 50


def test_rotation(kymo, record, spinner):
    """Each chunk has the mappings that its samples need."""
    trace, _ = record("--sample", "499", "--rotate-every", "1s", command=[str(spinner), "2.5"])
    chunks = sorted(path for path in [*trace.glob("archives/*"), trace] if (path / "kernel").exists())
    assert len(chunks) >= 2
    for chunk in chunks[:2]:
        assert any("inner" in names for _, names in samples(kymo, chunk, spinner)), chunk


def test_each_nth(kymo, record, spinner):
    """One sample at each tenth event, which stands for ten; of tracepoints and of counters."""
    options = [word for source in ("context-switches", "context-switches:10", "sched:sched_waking", "sched:sched_waking:10")
               for word in ("--sample", source)]
    script = f"for i in $(seq 300); do sleep 0.001; done; {spinner} 0.1"
    trace, _ = record(*options, "-b", "16M", command=["sh", "-c", script])
    found = collections.Counter((source(event), event["fields"]["period"]) for event, _ in samples(kymo, trace, spinner))
    # The kernel itself samples a tracepoint less evenly than a counter: 52 to 85 samples of 668 wake-ups.
    for name, spread in (("context-switches", 0.1), ("sched:sched_waking", 0.3)):
        each, tenth = found[name, 1], found[name, 10]
        assert each > 500 and abs(10 * tenth - each) < spread * each + 20 * os.cpu_count(), found
    assert {period for _, period in found} == {1, 10}


def test_mistakes(kymo, tmp_path):
    for what, words, code in (("none", "neither a number nor a counter", 2), ("page-faults:0", "no number above 0", 2),
                              ("sched:nothing_here", "no event 'sched:nothing_here'", 1), ("9999999", "100000", 2)):
        assert words in kymo("record", "-o", tmp_path / "t", "--sample", what, "--", "true", code=code).err
        assert not (tmp_path / "t").exists()
    assert "--raw: no --sample" in kymo("record", "-o", tmp_path / "t", "--raw", "--sample", "9", "--", "true",
                                        code=2).err


SORTER = r"""
#include <stdlib.h>
#include <time.h>

static int values[10000];

__attribute__((noinline)) int compare(const void *a, const void *b)
{
	const int *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

__attribute__((noinline)) void sort_all(void)
{
	for (int i = 0; i < 10000; i++)
		values[i] = (int)(i * 2654435761u >> 7);
	qsort(values, 10000, sizeof(values[0]), compare);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	struct timespec now;

	do {
		sort_all();
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec + now.tv_nsec / 1e9 < atof(argv[1]));
	return 0;
}
"""


@pytest.mark.parametrize("tools", [["cc"], ["clang", "-fuse-ld=lld"]])
def test_dwarf(kymo, record, tmp_path, tools):
    """Without frame pointers, through the C library; linkers may place segments apart from their place in the file."""
    if not all(map(shutil.which, (tools[0], *(["ld.lld"] if len(tools) > 1 else [])))):
        pytest.skip(f"no {' '.join(tools)}")
    program = tmp_path / "sorter"
    subprocess.run([*tools, "-x", "c", "-O2", "-fomit-frame-pointer", "-w", "-o", program, "-"], input=SORTER, text=True,
                   check=True)
    trace, _ = record("--sample", "cpu-clock:499Hz", "--stacks", "dwarf", "--follow", command=[str(program), "0.5"])
    tree = json.loads(kymo("report", "flame", "--json", "--comm", "sorter", "--limit", "0", trace).out)
    rows = tree["reports"][0]["tables"][0]["rows"]
    of = collections.Counter()
    for row in rows:
        of[row["function"]] = max(of[row["function"]], row["share"])
    assert of["main"] > 0.9 and of["sort_all"] > 0.85
    path = []
    for row in rows:
        del path[row["depth"]:]
        path.append(row["function"])
        if row["function"] == "compare":
            assert path[path.index("main"):path.index("main") + 2] == ["main", "sort_all"], path
    assert of["compare"] > 0.005
    assert "--stacks: 'x' is unknown" in kymo("record", "--sample", "9", "--stacks", "x", "--", "true", code=2).err


LIBRARY = "void run(void (*call)(void)) { volatile char room[64]; room[3] = 1; call(); room[4] = room[3]; }"
TRUNCATER = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const char *library;
static volatile unsigned long sink;

static void busy(void)
{
	struct timespec begin, now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	do {
		for (int i = 0; i < 1000; i++)
			sink += i;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	} while (now.tv_sec - begin.tv_sec + (now.tv_nsec - begin.tv_nsec) / 1e9 < 0.5);
}

/* The caller's code is gone, so there is no way back. */
static void call(void)
{
	busy();
	if (truncate(library, 0) < 0)
		_exit(1);
	busy();
	_exit(7);
}

int main(int argc, char **argv)
{
	void (*run)(void (*)(void));

	library = argv[1];
	run = (void (*)(void (*)(void)))dlsym(dlopen(library, RTLD_NOW), "run");
	run(call);
	return 1;
}
"""


def test_file_that_is_truncated(kymo_bin, needs_root_tracefs, tmp_path):
    """A program truncates a library in which the recorder looks for frames: the recording goes on."""
    program, library = tmp_path / "truncater", tmp_path / "library.so"
    subprocess.run(["cc", "-x", "c", "-O2", "-w", "-o", program, "-"], input=TRUNCATER, text=True, check=True)
    subprocess.run(["cc", "-x", "c", "-O2", "-fPIC", "-shared", "-fomit-frame-pointer", "-o", library, "-"], input=LIBRARY, text=True,
                   check=True)
    done = subprocess.run([kymo_bin, "record", "-o", tmp_path / "trace", "--sample", "cpu-clock:499Hz", "--stacks",
                           "dwarf", "--follow", "--", program, library], capture_output=True, text=True)
    assert done.returncode == 7 and "Recorded " in done.stderr, done
    assert os.path.getsize(library) == 0


# Fifteen registers are where expressions of 200 steps say, which end with an operation that does not belong there: elfutils 0.188
# leaves the stack of such an expression in memory. For registers up to number 50 million, it takes 1.6 GB.
EXPRESSIONS = """
	.irp number, 0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14, 15
	bad \\number
	.endr
"""
REGISTERS = "\t.cfi_escape 0x07, 0x80, 0xe1, 0xeb, 0x17\n"
# 250 frames of a function with such tables.
HOSTILE = """
	.macro bad reg
	.cfi_escape 0x10, \\reg, 0xc9, 0x01
	.rept 200
	.cfi_escape 0x30
	.endr
	.cfi_escape 0x97
	.endm
spin:	.cfi_startproc
	.cfi_def_cfa 7, 8
	TABLES
	nop
inside:	dec %rbx
	jnz inside
	mov $60, %eax
	xor %edi, %edi
	syscall
	.cfi_endproc
	.globl main
main:	mov $250, %ecx
	lea inside + 1(%rip), %rdx
again:	push %rdx
	dec %ecx
	jnz again
	movabs $3000000000, %rbx
	jmp spin
	.section .note.GNU-stack, "", @progbits
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="a program in x86-64's assembly language")
@pytest.mark.parametrize("tables, most", [(EXPRESSIONS, 250), (REGISTERS, 1)], ids=["expressions", "registers"])
def test_tables_that_take_memory(kymo, kymo_bin, needs_root_tracefs, tmp_path, tables, most):
    """A process whose stacks leave 7 MiB behind in each sample loses its tables; a frame that takes gigabytes ends its stack."""
    if SANITIZED:
        pytest.skip("libdw leaks what the test is about")
    program, trace = tmp_path / "hostile", tmp_path / "trace"
    subprocess.run(["cc", "-x", "assembler", "-o", program, "-"], input=HOSTILE.replace("TABLES", tables), text=True, check=True)
    # A process begins with the memory that its parent has had: a small one.
    measure = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", measure, kymo_bin, "record", "-o", trace, "--no-symbols", "--sample", "cpu-clock:499Hz",
                           "--stacks", "dwarf", "--follow", "--", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    lengths = [len(event["context"]["callstack_user"]) for event in
               map(json.loads, kymo("convert", "--to", "json", trace).out.splitlines()) if event["event"] == "sample"]
    assert lengths.count(1) > 50 and max(lengths) >= 0.8 * most, lengths
    assert int(done.stdout.split()[-1]) < 150 * 1024
