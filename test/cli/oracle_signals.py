# SPDX-License-Identifier: MIT
"""Second computation: signals."""

import collections
import signal

from oracle_figures import close

CAUSES = {0: "kill", -1: "queue", -2: "timer", -3: "message", -4: "async I/O", -5: "poll", -6: "tgkill", 128: "kernel"}
OF_SIGNAL = {signal.SIGCHLD: "child", signal.SIGTRAP: "trap", signal.SIGIO: "input", signal.SIGSYS: "seccomp"}


def name_of(number):
    return signal.Signals(number).name if 0 < number < 32 else f"SIGRTMIN+{number - 32}"


def cause_of(code, number):
    return CAUSES.get(code, OF_SIGNAL.get(number, "fault") if 0 < code < 128 else str(code))


def check_signals(report, events):
    sent = [event for event in events if event.name == "signal_generate" and event.fields["tid"] > 0]
    kinds, to = collections.defaultdict(list), collections.Counter()
    for event in sent:
        fields = event.fields
        cause = cause_of(fields["code"], fields["sig"])
        # A timer and the kernel interrupt any thread: it has not sent the signal.
        sender = None if cause in ("timer", "kernel") else event.context.get("tid") or None
        kinds[fields["tid"], sender, name_of(fields["sig"]), cause].append(bool(fields["result"]))
        to[fields["tid"]] += 1
    seconds = (events[-1].ns - events[0].ns) / 1e9
    found = {(row["receiver"]["tid"], (row["by"] or {}).get("tid"), row["signal"], row["cause"]): row
             for row in report["signals"]}
    assert set(found) == set(kinds)
    for key, row in found.items():
        assert (row["count"], row["ignored"]) == (len(kinds[key]), sum(kinds[key]))
        assert close(row["rate"], row["count"] / seconds)
    assert {row["receiver"]["tid"]: row["count"] for row in report["receivers"]} == to
    assert all(close(row["rate"], row["count"] / seconds) for row in report["receivers"])
    assert [(row["time"], row["receiver"]["tid"], (row["by"] or {}).get("tid"), row["signal"], row["cause"],
             row["ignored"] == "yes") for row in report["log"]] == \
        [(e.ns, e.fields["tid"], e.context.get("tid") or None, name_of(e.fields["sig"]), cause_of(e.fields["code"], e.fields["sig"]),
          bool(e.fields["result"])) for e in sent]
