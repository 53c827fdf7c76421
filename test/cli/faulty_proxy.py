# SPDX-License-Identifier: MIT
"""A proxy between a recorder and a relay, whose connections break.

    with FaultyProxy(port) as proxy:
        ... connect to proxy.port ...
        proxy.cut()          every connection ends at once
        proxy.reset()        the same, with a reset (RST)
        proxy.blackhole()    what comes in until now and from now on goes nowhere; new connections work
        proxy.refuse(True)   new connections are refused
        proxy.delay = 0.05   seconds for each piece
"""

import selectors
import socket
import struct
import threading
import time


class FaultyProxy:
    def __init__(self, port, piece=65536):
        self.target, self.piece, self.delay = port, piece, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.pairs, self.holes, self.refuses, self.stops = [], set(), False, False
        self.connections = self.bytes = 0
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stops = True
        self.thread.join()
        for pair in self.pairs:
            for end in pair:
                end.close()
        self.listener.close()

    def cut(self, linger=False):
        with self.lock:
            for pair in self.pairs:
                for end in pair:
                    if linger:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    end.close()
            self.pairs.clear()

    def reset(self):
        self.cut(linger=True)

    def blackhole(self):
        with self.lock:
            self.holes |= set(self.pairs)

    def refuse(self, refuses):
        self.refuses = refuses

    def _accept(self):
        client, _ = self.listener.accept()
        if self.refuses:
            client.close()
            return
        try:
            relay = socket.create_connection(("127.0.0.1", self.target), timeout=5)
        except OSError:
            client.close()
            return
        with self.lock:
            self.connections += 1
            self.pairs.append((client, relay))

    def _forward(self, pair, source):
        target = pair[1] if source is pair[0] else pair[0]
        data = source.recv(self.piece)
        if self.delay:
            time.sleep(self.delay)
        if not data:
            raise OSError("closed")
        self.bytes += len(data)
        if pair not in self.holes:
            target.sendall(data)

    def _run(self):
        while not self.stops:
            with selectors.DefaultSelector() as selector:
                selector.register(self.listener, selectors.EVENT_READ)
                with self.lock:
                    for pair in self.pairs:
                        for end in pair:
                            selector.register(end, selectors.EVENT_READ, pair)
                    ready = selector.select(0.02)
                    for key, _ in ready:
                        if key.data is None or key.data not in self.pairs:
                            continue
                        try:
                            self._forward(key.data, key.fileobj)
                        except OSError:
                            self.pairs.remove(key.data)
                            for end in key.data:
                                end.close()
            if any(key.fileobj is self.listener for key, _ in ready):
                self._accept()
