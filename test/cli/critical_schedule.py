# SPDX-License-Identifier: MIT
"""Random schedules of a small machine, as events, and the critical path of them by a second computation."""

import collections
import random

from oracle_figures import Event

CPUS = 2
TIDS = range(100, 106)


class Schedule:
    """Threads that run, block, wake each other, and take the CPU from each other."""

    def __init__(self, seed, n_steps=400):
        self.random = random.Random(seed)
        self.events, self.ns = [], 10**9
        self.current = [None] * CPUS
        self.ready = [collections.deque() for _ in range(CPUS)]
        self.blocked = set()
        # By thread: [begin, end, kind, waker] in their order; kind: run, ready, blocked.
        self.time = {tid: [] for tid in TIDS}
        for cpu, tid in enumerate(TIDS[:CPUS]):
            self.switch(cpu, tid, 1)
        self.blocked |= set(TIDS[CPUS:])
        while len(self.events) < n_steps:
            self.step()
        self.ns += 1000
        for cpu in range(CPUS):
            if self.current[cpu]:
                self.switch(cpu, None, 1)
        for parts in self.time.values():
            if parts and parts[-1][1] is None:
                parts[-1][1] = self.ns

    def tell(self, cpu, name, **fields):
        self.events.append(Event(self.ns, cpu, name, {}, fields | {"perf_tid": self.current[cpu] or 0}))

    def go(self, tid, kind, waker=None):
        """The thread is in this state from now on."""
        if self.time[tid]:
            self.time[tid][-1][1] = self.ns
            self.time[tid][-1][3] = waker
        self.time[tid].append([self.ns, None, kind, None])

    def switch(self, cpu, tid, state):
        self.ns += self.random.randint(1, 500)
        prev = self.current[cpu] or 0
        self.tell(cpu, "sched_switch", prev_comm=f"t{prev}" if prev else "swapper", prev_tid=prev, prev_prio=20,
                  prev_state=state if prev else 0, next_comm=f"t{tid}" if tid else "swapper",
                  next_tid=tid or 0, next_prio=20)
        if prev:
            self.go(prev, "blocked" if state else "ready")
            if state:
                self.blocked.add(prev)
            else:
                self.ready[cpu].append(prev)
        self.current[cpu] = tid
        if tid:
            self.go(tid, "run")

    def next_ready(self, cpu):
        return self.ready[cpu].popleft() if self.ready[cpu] else None

    def step(self):
        cpu = self.random.randrange(CPUS)
        self.ns += self.random.randint(1000, 20000)
        if not self.current[cpu]:
            tid = self.next_ready(cpu)
            if tid:
                self.switch(cpu, tid, 0)
            return
        what = self.random.random()
        others = any(self.ready[c] or (c != cpu and self.current[c]) for c in range(CPUS))
        if what < 0.35 and self.blocked:
            tid, to = self.random.choice(sorted(self.blocked)), self.random.randrange(CPUS)
            self.blocked.discard(tid)
            for name in ("sched_waking", "sched_wakeup"):
                self.tell(cpu, name, comm=f"t{tid}", tid=tid, prio=20, target_cpu=to)
            self.go(tid, "ready", self.current[cpu])
            self.ready[to].append(tid)
        elif what < 0.75 and others:
            self.switch(cpu, self.next_ready(cpu), 1)
        elif self.ready[cpu]:
            self.switch(cpu, self.next_ready(cpu), 0)

    def path(self, tid, begin, end):
        """[thread, begin, end] of the critical path."""
        found = []
        first = self.time[tid][0][0]
        if begin < first:  # unknown until then
            found.append([tid, begin, min(first, end)])
        for part_begin, part_end, kind, waker in self.time[tid]:
            first, last = max(part_begin, begin), min(part_end, end)
            if first >= last:
                continue
            if kind == "blocked" and waker:
                found += self.path(waker, first, last)
            else:
                found.append([tid, first, last])
        return found

    def woken(self, tid, ns):
        """The last wake-up of the thread before @ns: when and by whom."""
        for part_begin, part_end, kind, waker in reversed(self.time[tid]):
            if kind == "blocked" and part_end is not None and part_end <= ns and part_begin < ns:
                return part_end, waker
        return None, None

    def chain(self, tid, begin, end):
        """As perfetto: from a waker to who woke that one, and so on; never back to what the waker did before its wait."""
        found = []
        while end > begin:
            since, waker = self.woken(tid, end)
            if since is None or since <= begin or not waker:
                found.append([tid, begin, end])
                break
            if since < end:
                found.append([tid, since, end])
            tid, end = waker, since
        return found[::-1]

    def path_of_perfetto(self, tid, begin, end):
        found = []
        for part_begin, part_end, kind, waker in self.time[tid]:
            first, last = max(part_begin, begin), min(part_end, end)
            if first < last:
                found += self.chain(waker, first, last) if kind == "blocked" and waker \
                    else [[tid, first, last]]
        return found

    def times(self, tid, begin, end, path=None):
        times = collections.Counter()
        for thread, first, last in (path or self.path)(tid, begin, end):
            times[thread] += last - first
        return times
