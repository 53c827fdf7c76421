# SPDX-License-Identifier: MIT
"""Relays of Kymo for tests."""

import contextlib
import glob
import re
import socket
import subprocess
import threading

HOST = socket.gethostname()

# What a relay says about its ports, one line for each kind.
KYMO, LTTNG, LIVE = r"Listening at \S+, port (\d+)\. Recordings go to ", r"ports (\d+) and (\d+), for LTTng", r"net://\S+:(\d+)"


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Relay:
    """
    A relay with ports of its own choice: for recorders, and those that its options ask for. It can be killed, and begun
    again at the same port for recorders.
    """

    def __init__(self, kymo_bin, path, *options):
        self.bin, self.dir, self.options, self.port = kymo_bin, str(path), options, 0
        self.begin()

    def begin(self):
        self.process = subprocess.Popen([self.bin, "relay", "--dir", self.dir, "--listen", f"localhost:{self.port}",
                                         *self.options], stderr=subprocess.PIPE, text=True)
        self.said, self.is_over = [], False
        self.port, = self._ports(KYMO)
        self.lttng = self._ports(LTTNG) if "--lttng" in self.options else None
        self.live = self._ports(LIVE)[0] if "--live" in self.options else None
        self.thread = threading.Thread(target=lambda: self.said.extend(self.process.stderr))
        self.thread.start()

    def _ports(self, pattern):
        """The ports in the next line that has some."""
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(pattern, line):
                return [int(port) for port in found.groups()]
        raise AssertionError((pattern, self.said))

    def _wait(self):
        code = self.process.wait(timeout=60)
        self.thread.join()
        self.process.stderr.close()
        self.is_over = True
        return code

    def kill(self):
        self.process.kill()
        self._wait()

    def end(self):
        """Returns what it has said."""
        self.process.terminate()
        assert self._wait() == 0, self.said
        return "".join(self.said)

    def address(self, name, port=None):
        return f"kymo://localhost:{port or self.port}/{name}"

    def url(self, name, host=HOST):
        """Where viewers find a recording."""
        return f"net://localhost:{self.live}/host/{host}/{name}"

    def lttng_options(self):
        """What makes a session of LTTng use the relay."""
        return [f"--ctrl-url=tcp4://127.0.0.1:{self.lttng[0]}", f"--data-url=tcp4://127.0.0.1:{self.lttng[1]}"]

    def trace(self, name):
        found, = glob.glob(f"{self.dir}/*/{name}")
        return found


@contextlib.contextmanager
def relays(kymo_bin, place, *always):
    """begin(*options) -> Relay, as often as needed; all have the options @always, and end well."""
    made = []

    def begin(*options, path=place):
        made.append(Relay(kymo_bin, path, *always, *options))
        return made[-1]

    yield begin
    for one in made:
        if not one.is_over:
            one.end()
