# SPDX-License-Identifier: MIT
"""A viewer of LTTng's live protocol: requests as any viewer sends them, and what the relay answers."""

import collections
import socket
import struct

CONNECT, LIST, ATTACH, INDEX, PACKET, METADATA, STREAMS, CREATE, DETACH = range(1, 10)
BEGIN, LAST = 1, 2
NEW_METADATA, NEW_STREAM = 1, 2
OK, RETRY, HUP, ERROR, INACTIVE = range(1, 6)

Session = collections.namedtuple("Session", "id timer clients streams host name format")
Stream = collections.namedtuple("Stream", "id trace is_metadata path channel")
Index = collections.namedtuple("Index", "offset size content begin end discarded class_id status flags")


class Viewer:
    def __init__(self, port, minor=4, connects=True):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60)
        self.minor = minor
        if connects:
            self.send(CONNECT, struct.pack(">QIII", 0, 2, minor, 1))
            _, major, self.theirs, _ = self.take("QIII")
            assert major == 2

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, command, body=b"", size=None):
        self.socket.sendall(struct.pack(">QII", len(body) if size is None else size, command, 0) + body)

    def read(self, size):
        data = b""
        while len(data) < size:
            part = self.socket.recv(size - len(data))
            if not part:
                raise EOFError
            data += part
        return data

    def take(self, layout):
        return struct.unpack(">" + layout, self.read(struct.calcsize(">" + layout)))

    def is_closed(self):
        """Whether the relay ends the connection."""
        try:
            return not self.socket.recv(1)
        except ConnectionResetError:
            return True

    def sessions(self):
        self.send(LIST)
        found = []
        for _ in range(self.take("I")[0]):
            if self.minor >= 15:
                *head, host, name, form = self.take("QIIIIII")
                found.append(Session(*head, self.read(host).decode(), self.read(name).decode(), form))
            else:
                *head, host, name = self.take("QIII64s255s")
                found.append(Session(*head, host.rstrip(b"\0").decode(), name.rstrip(b"\0").decode(), 0))
        return found

    def create(self):
        self.send(CREATE)
        assert self.take("I") == (1,)

    def _streams(self, count):
        for _ in range(count):
            number, trace, is_metadata, path, channel = self.take("QQI4096s255s")
            yield Stream(number, trace, is_metadata, path.rstrip(b"\0").decode(), channel.rstrip(b"\0").decode())

    def attach(self, session, seek=BEGIN):
        self.send(ATTACH, struct.pack(">QQI", session, 0, seek))
        status, count = self.take("II")
        return status, list(self._streams(count))

    def new_streams(self, session):
        self.send(STREAMS, struct.pack(">Q", session))
        status, count = self.take("II")
        return status, list(self._streams(count))

    def index(self, stream):
        self.send(INDEX, struct.pack(">Q", stream))
        return Index(*self.take("7QII"))

    def packet(self, stream, offset, size):
        self.send(PACKET, struct.pack(">QQI", stream, offset, size))
        status, size, _ = self.take("III")
        return status, self.read(size)

    def metadata(self, stream):
        self.send(METADATA, struct.pack(">Q", stream))
        size, status = self.take("QI")
        return status, self.read(size)

    def detach(self, session):
        self.send(DETACH, struct.pack(">Q", session))
        return self.take("I")[0]
