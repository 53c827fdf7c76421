# SPDX-License-Identifier: MIT
"""Trackers over probes in programs: functions, their results and SDT probes, against what the program itself knows."""

import os
import re
import shlex
import shutil
import subprocess

import pytest

from conftest import ROOT
from test_latency import needs_bpf  # noqa: F401 (a fixture)
from test_latency_track import count_of, track  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("needs_bpf", "needs_root_tracefs")

# Two threads handle 30 requests each; one begins in a thread and ends in the other. It prints how long the naps took, in ns.
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <sys/sdt.h>

struct request { long pad; unsigned low : 3, kind : 5; short id; const char *path; };
static char slow[] = "/slow/path/that/is/long", fast[] = "/fast";
static long shortest_ns[2] = {1L << 60, 1L << 60}, total_ns[2];
static struct request handed[30];
static pthread_barrier_t both;

#define KEEP __asm__ volatile("" ::: "memory")
__attribute__((noinline)) int begin_request(struct request *r) { KEEP; return r->id; }
__attribute__((noinline)) int end_request(struct request *r, int status) { KEEP; return status; }
__attribute__((noinline)) long nap(int thread, long ns)
{
	struct timespec time = {0, ns}, from, to;

	clock_gettime(CLOCK_MONOTONIC, &from);
	nanosleep(&time, NULL);
	clock_gettime(CLOCK_MONOTONIC, &to);
	ns = (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
	shortest_ns[thread] = ns < shortest_ns[thread] ? ns : shortest_ns[thread];
	total_ns[thread] += ns;
	return -thread;
}

static long counter;
__attribute__((noipa)) long many(long a, long b, long c, long d, long e, long f, long seventh, short eighth)
{
	return a + b + c + d + e + f + seventh + eighth;
}

static void *work(void *data)
{
	int thread = (int)(long)data;

	for (int i = 0; i < 30; i++) {
		struct request r = {0, 5, thread + 9, thread * 1000 + i, thread ? slow : fast};

		((volatile char *)r.path)[0] = '/';
		begin_request(&r);
		DTRACE_PROBE2(shop, begin, r.id, r.path);
		nap(thread, thread ? 4000000 : 1000000);
		DTRACE_PROBE1(shop, end, r.id);
		end_request(&r, thread ? 500 : 200);
		if (thread)
			handed[i] = (struct request){.id = (short)(-1 - i)};
		if (thread)
			begin_request(&handed[i]);
	}
	for (int i = 0; i < 10 && thread; i++) {
		counter = 3 * i;
		KEEP;
		DTRACE_PROBE2(shop, global, counter, 42);
		many(1, 2, 3, 4, 5, 6, i + 100, (short)-i);
	}
	pthread_barrier_wait(&both);
	for (int i = 0; i < 30 && !thread; i++)
		end_request(&handed[i], 0);
	return NULL;
}

int main(void)
{
	pthread_t threads[2];

	getchar();
	pthread_barrier_init(&both, NULL, 2);
	for (long i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("%ld %ld %ld %ld\n", shortest_ns[0], total_ns[0], shortest_ns[1], total_ns[1]);
	return 0;
}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    directory = tmp_path_factory.mktemp("probes")
    (directory / "server.c").write_text(PROGRAM)
    subprocess.run(["gcc", "-g", "-O2", "-pthread", "-o", directory / "server", directory / "server.c"], check=True)
    return directory / "server"


def run(server):
    out = subprocess.run([server], input="\n", capture_output=True, text=True, check=True).stdout
    return [int(number) for number in out.split()]


def figures(result, name):
    [series] = [one for one in result["series"] if (one["layer"], one["name"]) == ("track", name)]
    return series["windows"]["now"]


def test_functions_results_and_sdt_probes(track, server):
    by_id = f"uprobe:{server}:begin_request(id=r->id, path=r->path, kind=r->kind) if %s\n    -> " \
            f"uprobe:{server}:end_request(id=r->id, status) if %s by id"
    tracked = track("--track", "slow: " + by_id % ('path =~ "/slow*" && kind == 10 && id >= 0', "status == 500"), "--over", "1h",
                    "--track", "fast: " + by_id % ('path == "/fast"', "status == 200"), "--over", "1h",
                    "--track", "cut: " + by_id % ('path == "/slow/path/that"', "id > -10000"), "--over", "1h",
                    "--track", "handed: " + by_id % ("id < 0", "id < 0"), "--over", "0s", "--stacks",
                    "--track", f"nap: uprobe:{server}:nap if arg1 & 1 == 1 -> uretprobe:{server}:nap if retval < 0", "--over", "1h",
                    "--track", f"sdt: sdt:{server}:begin(id=arg1, path=arg2:string) if path =~ \"/f*\" -> sdt:{server}:shop:end "
                    "by id=arg1", "--over", "1h",
                    "--track", f"global: sdt:{server}:global if arg1 > 12 && arg2 == 42 -> uprobe:{server}:many", "--over", "1h",
                    "--track", f"stack: uprobe:{server}:many(seventh, eighth) if seventh >= 104 && eighth <= -4 -> "
                    f"uretprobe:{server}:many if retval == 121", "--over", "1h",
                    "--track", f"raw: uprobe:{server}:many(x=arg7, y=$stack2:s16) if x >= 104 && y == -9 -> uretprobe:{server}:many",
                    "--over", "1h",
                    "--track", f"mixed: uprobe:{server}:nap -> syscall_exit_clock_nanosleep", "--over", "1h")
    fast_shortest, fast_total, slow_shortest, slow_total = run(server)
    news, result = tracked.end()
    for name in ("slow", "fast", "handed", "nap", "sdt"):
        assert count_of(result, name) == 30, (name, result["trackers"])
    assert count_of(result, "mixed") == 60 and count_of(result, "cut") == 0
    # A variable of the program, and arguments on the stack.
    assert [count_of(result, name) for name in ("global", "stack", "raw")] == [5, 6, 1]
    # What is around the naps lasts as long as they do, and as little longer as the program does not see.
    for name, shortest, total in (("slow", slow_shortest, slow_total), ("nap", slow_shortest, slow_total),
                                  ("fast", fast_shortest, fast_total), ("sdt", fast_shortest, fast_total)):
        histogram = figures(result, name)
        assert histogram["sum_ns"] >= total and histogram["max_ns"] >= shortest
        assert histogram["buckets"][0][1] > shortest, "none is shorter than the shortest nap"
    # One thread waits, and another one ends its wait.
    assert len(news) == 30
    for one in news:
        assert one["begin"]["pid"] == one["end"]["pid"] and one["begin"]["tid"] != one["end"]["tid"]
        assert one["begin"]["comm"] == "server" and one["begin"]["user_stack"] and one["end"]["user_stack"]
        assert -30 <= one["key"]["id"] <= -1
    assert all(one["unreadable"] == 0 == one["open"] for one in result["trackers"] if one["name"] != "cut")


def test_bpftrace_counts_the_same(track, server, tmp_path):
    bpftrace = shutil.which("bpftrace") or pytest.skip("bpftrace is not installed")
    script = f"""
        uprobe:{server}:nap {{ @begin[tid] = nsecs; }}
        uretprobe:{server}:nap /@begin[tid]/ {{ @n = count(); @sum = sum(nsecs - @begin[tid]); delete(@begin[tid]); }}"""
    tracked = track("--track", f"nap: uprobe:{server}:nap -> uretprobe:{server}:nap", "--over", "1h")
    (tmp_path / "run.sh").write_text(f"echo | {server} >/dev/null\n")
    out = subprocess.run([bpftrace, "-e", script, "-c", f"/bin/sh {tmp_path}/run.sh"], capture_output=True, text=True, timeout=60).stdout
    _, result = tracked.end()
    theirs = {name: int(number) for name, number in re.findall(r"@(n|sum): (\d+)", out)}
    ours = figures(result, "nap")
    assert ours["count"] == theirs["n"] == 60
    # Both run at the same probes, one after the other.
    assert abs(ours["sum_ns"] - theirs["sum"]) < 0.05 * theirs["sum"] + 60 * 100000


def test_mistakes(kymo, server):
    def wrong(tracker, reason):
        assert reason in kymo("latency", "--once", "--track", tracker, code=2).err

    end = f"-> uprobe:{server}:nap"
    wrong(f"a: uprobe:/no/file:f {end}", "there is no file '/no/file'")
    wrong(f"a: uprobe:{server}:nothing {end}", "there is no function 'nothing'")
    wrong(f"a: uprobe:{server}:nap(nothing) {end}", "there is no parameter 'nothing'; the function has: thread, ns")
    wrong(f"a: uprobe:{server}:nap($retval) {end}", "has only a result; uprobe: has arguments, uretprobe: has $retval")
    wrong(f"a: uretprobe:{server}:nap(ns) {end}", "no result among its arguments")
    wrong(f"a: sdt:{server}:* {end}", "is 3 probes")
    wrong(f"a: sdt:{server}:nothing {end}", "no probe matches")
    wrong(f"a: uprobe:{server}:nap(ns) if thread == 1 {end}", "has no field 'thread'")
    wrong(f"a: uprobe:{server}:begin_request(path=r->path) if path == 'sixteen letters.' {end}", "the text is too long: at most 15 bytes")
    wrong(f"a: uprobe:{server}:begin_request(path=r->path) {end} by path=arg1", "the key of a tracker is a number")


def test_commands_of_the_page(kymo, tmp_path):
    """Each command of docs/latency.md is taken as it stands there, and measures for a moment."""
    (tmp_path / "server.c").write_text("struct request { long id; const char *path; };\n"
                                       "__attribute__((noipa)) long handle(struct request *request) { return request->id; }\n"
                                       "__attribute__((noipa)) int reply(struct request *request, int status) { return status + !request; }\n"
                                       "int main(void) { struct request one = {1, \"/\"}; return (int)handle(&one) + reply(&one, -1); }\n")
    subprocess.run(["gcc", "-g", "-O1", "-o", tmp_path / "server", tmp_path / "server.c"], check=True)
    with open(os.path.join(ROOT, "docs", "latency.md"), encoding="utf-8") as page:
        commands = re.findall(r"^    (?:\$ )?sudo kymo latency((?:[^\n']|'[^']*')*)$", page.read(), re.M)
    assert len(commands) >= 10 and any("\n" in command for command in commands)
    for command in commands:
        args = [re.sub(r"^127\.0\.0\.1:\d+$", "127.0.0.1:0", arg) for arg in shlex.split(command, comments=True)]
        done = kymo("latency", *args, "--once", "--every", "100ms", code=0, cwd=tmp_path)
        assert "kymo: measuring" in done.err, done
