# SPDX-License-Identifier: MIT
"""Chromium without a window, spoken to over a pipe with its own debugging protocol: no port, no
driver, no package but the browser's."""

import contextlib
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time

PATIENCE_S = 200


class Browser:
    """One page. `trouble` are errors and warnings of its console; `requests` the addresses it asked for."""

    def __init__(self, profile, flags=()):
        to_browser, self.write = os.pipe()
        self.read, from_browser = os.pipe()
        program = shutil.which("chromium")
        # --no-sandbox: root has none. Nothing that Chromium does of its own may reach the network.
        words = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                 "--no-first-run", "--disable-background-networking", "--disable-extensions",
                 "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe",
                 f"--user-data-dir={profile}", *flags, "about:blank"]

        def place():  # where the browser looks for them
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            for end, fd in zip(ends, (3, 4)):
                os.dup2(end, fd)

        self.process = subprocess.Popen(words, preexec_fn=place, pass_fds=(3, 4), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.session = b"", 0, None
        self.trouble, self.requests, self.loaded = [], [], set()
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=target["targetId"],
                                 flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Page.setLifecycleEventsEnabled", enabled=True)

    def close(self):
        """End what was started here: the browser and its helpers are one process group."""
        for end in (self.write, self.read):
            os.close(end)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def message(self):
        """The next one; what it tells of the page is kept."""
        until = time.monotonic() + PATIENCE_S
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.read], [], [], max(until - time.monotonic(), 0))
            data = os.read(self.read, 1 << 20) if ready else b""
            assert data, "the browser ended, or says nothing"
            self.buffer += data
        text, self.buffer = self.buffer.split(b"\0", 1)
        message = json.loads(text)
        method, params = message.get("method"), message.get("params", {})
        if method == "Page.lifecycleEvent" and params["name"] == "load":
            self.loaded.add(params["loaderId"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.trouble.append(params["exceptionDetails"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.trouble.append(params["args"])
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.trouble.append(params["entry"])
        return message

    def call(self, method, **params):
        """One command and its result."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session:
            command["sessionId"] = self.session
        data = json.dumps(command).encode() + b"\0"
        while data:
            data = data[os.write(self.write, data):]
        while True:
            message = self.message()
            if message.get("id") == self.number:
                assert "error" not in message, message
                return message["result"]

    def open(self, path, scheme="file"):
        """Load a file, and all of it."""
        document = self.call("Page.navigate", url=f"{scheme}://{path}")["loaderId"]
        while document not in self.loaded:  # and not the one before it, which may be late
            self.message()

    def value(self, script):
        """What an expression in the page is."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def look(self, width, height, scheme):
        """The size of the window, and what the user's desktop is: light or dark."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
