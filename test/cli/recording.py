# SPDX-License-Identifier: MIT
"""Recordings of the kernel: that are changed while they run, and one beside the other."""

import json
import signal
import subprocess
import time


class Recording:
    """kymo record with these options, from when others can ask it until stop()."""

    def __init__(self, kymo, kymo_bin, tracefs, out, *options):
        self.kymo = kymo
        self.tracefs = tracefs
        self.out = out
        # A ring that others, who may be many, do not fill before it is read.
        self.process = subprocess.Popen([kymo_bin, "record", "-b", "16M", "-o", out, *map(str, options)],
                                        stderr=subprocess.PIPE)
        while str(out) not in self.outputs():
            assert self.process.poll() is None, self.process.stderr.read()
            time.sleep(0.02)

    def outputs(self):
        listed = json.loads(self.kymo("sessions", "--json").out)
        return [one.get("output") for one in listed["recordings"]]

    def ctl(self, *options, code=0):
        done = self.kymo("ctl", self.out, *options, code=None)
        assert self.process.poll() is None, (self.process.returncode, self.process.stderr.read())
        assert done.code == code, done
        return done

    def stop(self):
        """(event name, fields, context) of all events but the state dump."""
        self.process.send_signal(signal.SIGINT)
        _, err = self.process.communicate()
        assert self.process.returncode == 0 and b"; 0 lost." in err, err
        lines = self.kymo("convert", "--to", "json", self.out).out.splitlines()
        events = [json.loads(line) for line in lines]
        return [(e["event"], e["fields"], e["context"]) for e in events
                if not e["event"].startswith("lttng_statedump")]


def middle_of(ours, theirs):
    """What @theirs has before and behind @ours, which is a part of it without gaps."""
    for i in range(len(theirs) - len(ours) + 1):
        if theirs[i:i + len(ours)] == ours:
            return theirs[:i], theirs[i + len(ours):]
    raise AssertionError((ours, theirs))
