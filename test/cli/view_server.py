# SPDX-License-Identifier: MIT
"""A running server of `kymo view`, and requests as they are."""

import http.client
import os
import signal
import subprocess

import pytest

PATIENCE_S = 120


class ViewServer:
    """self.link is what it prints; port is the subclass's."""

    def __init__(self, kymo_bin, *args, env=None, **more):
        environ = dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC")
        environ.pop("DISPLAY", None)
        environ.pop("WAYLAND_DISPLAY", None)
        environ.update(env or {})
        self.process = subprocess.Popen([kymo_bin, "view", *map(str, args)], env=environ, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            error = self.process.communicate()[1]
            assert "this build has no" in error, error
            pytest.skip(f"no viewer: {error}")

    def end(self):
        """Ctrl-C. What it wrote to the standard error."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        error = self.process.communicate(timeout=PATIENCE_S)[1]
        assert self.process.returncode == 0, error
        assert "Sanitizer" not in error and "runtime error" not in error, error
        return error

    def request(self, method, path, body=None, headers=None, host="127.0.0.1"):
        """Status, headers, body of the answer. A header that is None is not sent."""
        connection = http.client.HTTPConnection(host, self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in {"Host": f"127.0.0.1:{self.port}", **(headers or {})}.items():
                if value is not None:
                    connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()
