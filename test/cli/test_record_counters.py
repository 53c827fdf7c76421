# SPDX-License-Identifier: MIT
"""kymo record --context perf:...: counters of CPUs and threads at events of the kernel.

Software counters are there everywhere. The test compares their values with getrusage() of the program,
and with the events that they count. Where the machine keeps the recorder from its work for long, readings may be
lost, which is said; then once more.
"""

import json
import os
import re
import subprocess

import pytest

# getppid() is the mark; before and after it, the program says how often it was switched and has faulted.
PROGRAM = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static long said[64][4];

static void usage(long *faults, long *switches)
{
	struct rusage now;

	getrusage(RUSAGE_THREAD, &now);
	*faults = now.ru_minflt + now.ru_majflt;
	*switches = now.ru_nvcsw + now.ru_nivcsw;
}

int main(void)
{
	volatile char *memory;

	memory = mmap(0, 640 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	madvise((void *)memory, 640 * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < 64; i++)
		said[i][0] = 0; /* its pages are there */
	for (int i = 0; i < 64; i++) {
		usage(&said[i][0], &said[i][2]);
		syscall(SYS_getppid);
		usage(&said[i][1], &said[i][3]);
		for (int k = 0; k < 10; k++)
			memory[(i * 10 + k) * 4096] = 1;
		if (i % 8 == 0)
			usleep(1);
	}
	printf("%d\n", getpid());
	for (int i = 0; i < 64; i++)
		printf("%ld %ld %ld %ld\n", said[i][0], said[i][1], said[i][2], said[i][3]);
	return 0;
}
"""

CPU = ("perf_cpu_page_faults", "perf_cpu_context_switches")
THREAD = ("perf_thread_page_faults", "perf_thread_context_switches")
CONTEXT = ",".join(name.replace("_", ":", 2).replace("_", "-") for name in CPU + THREAD)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("counters") / "marks"
    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-o", path, "-"], input=PROGRAM, text=True, check=True)
    return path


def load(kymo, trace):
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    return [event for event in map(json.loads, lines) if not event["event"].startswith("lttng_")]


def values(event, names):
    return [event["context"][name] for name in names]


@pytest.fixture(scope="module")
def events(kymo, needs_root_tracefs, without_losses, program, tmp_path_factory):
    """(events, what the program said)"""
    directory = tmp_path_factory.mktemp("counted")
    counter = iter(range(9))

    def record(*options, command):
        out = directory / str(next(counter))
        return out, kymo("record", "-o", out, *options, "--", *command)

    trace, done = without_losses(record, "-k", "sched_switch,syscall:getppid", "-c", CONTEXT,
                                 command=["taskset", "-c", min(os.sched_getaffinity(0)), program],
                                 is_whole=lambda done: "counters of" not in done.err)
    lines = done.out.split("\n")
    said = [tuple(map(int, line.split())) for line in lines[1:65]]
    return load(kymo, trace), int(lines[0]), said, trace


def test_threads_are_told_what_getrusage_tells_them(events):
    found, tid, said, _ = events
    marks = [event for event in found
             if event["event"] == "syscall_entry_getppid" and event["context"]["tid"] == tid]
    assert len(marks) == len(said) == 64
    for mark, (faults, faults_after, switches, switches_after) in zip(marks, said):
        assert faults <= mark["context"][THREAD[0]] <= faults_after
        assert switches <= mark["context"][THREAD[1]] <= switches_after


def test_cpus_count_what_happens_on_them(events):
    """Switches one by one; and all of a thread's faults, while it stays on one CPU."""
    found, tid, _, _ = events
    marks = [event for event in found
             if event["event"] == "syscall_entry_getppid" and event["context"]["tid"] == tid]
    cpus, compared = {}, {}
    for event in found:
        cpus.setdefault(event["packet"]["cpu_id"], []).append(event)
    for cpu, of_cpu in cpus.items():
        series = [values(event, CPU) for event in of_cpu]
        assert all(a <= b for one, two in zip(series, series[1:]) for a, b in zip(one, two))
        # Not every kernel tells of all switches: those from idle are missing on some CPUs, or of some threads.
        switches = [event for event in of_cpu if event["event"] == "sched_switch"]
        pairs = [(a["context"][CPU[1]], b["context"][CPU[1]]) for a, b in zip(switches, switches[1:])
                 if a["fields"]["next_tid"] == b["fields"]["prev_tid"]]
        assert all(a + 1 == b for a, b in pairs)
        compared[cpu] = len(pairs)
    # It sleeps eight times.
    assert sum(compared[cpu] for cpu in {event["packet"]["cpu_id"] for event in marks}) >= 8, compared
    of_cpu, of_thread = ([event["context"][name] for event in marks] for name in (CPU[0], THREAD[0]))
    for i in range(63):
        assert of_cpu[i + 1] - of_cpu[i] >= of_thread[i + 1] - of_thread[i] >= 10


def test_other_readers(events, peer, kymo):
    _, tid, _, trace = events
    ours = kymo("print", trace).out
    assert peer("babeltrace2", trace).out == ours
    assert re.search(r"\{ tid = %d, perf_cpu_page_faults = \d+, perf_cpu_context_switches = \d+, "
                     r"perf_thread_page_faults = \d+, perf_thread_context_switches = \d+ \}" % tid, ours)


def test_interrupts_and_filters(record, kymo):
    """In interrupts, beside events that a filter leaves out, and with other context fields: never less than before."""
    trace, done = record("-b", "16M", "-k", "irq_softirq_*,sched_waking,syscall:getppid", "-k",
                         "sched_switch if next_prio < 0 && $ctx.perf_cpu_page_faults >= 0", "-c",
                         "procname,preemptible,perf:page-faults", command=[
                             "/usr/bin/python3", "-c", "import time\nfor _ in range(300): time.sleep(0.001)"])
    last = {}
    found = load(kymo, trace)
    for event in found:
        cpu, now = event["packet"]["cpu_id"], event["context"]["perf_cpu_page_faults"]
        assert now >= last.get(cpu, 0)
        last[cpu] = now
    lost = re.search(r"counters of (\d+) events were lost", done.err)
    assert len(found) > 100 and max(last.values()) > 0
    assert not lost or int(lost[1]) < len(found)


def test_event_that_came_later(kymo, kymo_bin, needs_root_tracefs, program, tmp_path):
    out = tmp_path / "later"
    script = f"""
i=0; until {kymo_bin} sessions | grep -q later; do i=$((i + 1)); [ $i -lt 500 ] || exit 9; sleep 0.02; done
{kymo_bin} ctl {out} --enable-kernel syscall:getppid > /dev/null && {program}"""
    done = kymo("record", "-o", out, "-k", "sched_process_exit", "-c", "perf:thread:page-faults", "--", "sh", "-c",
                script)
    tid = int(done.out.split()[0])
    marks = [event for event in load(kymo, out)
             if event["event"] == "syscall_entry_getppid" and event["context"]["tid"] == tid]
    assert marks[-1]["context"]["perf_thread_page_faults"] >= 640


def test_which_there_are(kymo, needs_root_tracefs):
    counters = {one["name"]: one for one in json.loads(kymo("list", "--counters", "--json").out)["counters"]}
    assert counters["page-faults"] == {"name": "page-faults", "kernel_cpu": True, "kernel_thread": True,
                                       "programs": True}
    assert not counters["cpu-clock"]["kernel_thread"]
    text = kymo("list", "--counters").out
    assert all(name in text for name in counters)
    assert "page-faults" in next(check["text"] for check in json.loads(kymo("doctor", "--json").out)["checks"]
                                 if check["name"] == "counters")


def test_mistakes(kymo, needs_root_tracefs, tmp_path):
    def fails(context, *options, code=2):
        done = kymo("record", "-o", tmp_path / "t", "-c", context, *options, "--", "true", code=code)
        assert len(done.err.strip().splitlines()) == 1 and not (tmp_path / "t").exists(), done
        return done.err

    assert "'kymo list --counters' shows" in fails("perf:nonsense")
    assert "for a counter of the CPU, try perf:cpu:cpu-cycles" in fails("perf:thread:cpu-cycles")
    assert "BPF" in fails("perf:page-faults", "--raw")
    assert "--clock=monotonic" in fails("perf:page-faults", "--clock", "tsc")
    everything = ",".join(f"perf:cpu:{name}" for name in (
        "cpu-clock", "task-clock", "page-faults", "context-switches", "cpu-migrations", "minor-faults",
        "major-faults", "alignment-faults", "emulation-faults"))
    assert "at most 8" in fails(everything)
    counters = json.loads(kymo("list", "--counters", "--json").out)["counters"]
    if "cpu-cycles" not in [one["name"] for one in counters]:
        said = fails("perf:cpu:cpu-cycles", code=1)
        assert "this machine has no such counter" in said and "this machine has: cpu-clock" in said
