# SPDX-License-Identifier: MIT
"""A consumer daemon of LTTng, as a relay sees it: the control and the data connection of one session."""

import os
import socket
import struct

OK = 10


class Closed(Exception):
    """The relay has closed the connection."""


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.settimeout(60)

    def send(self, data):
        self.socket.sendall(data)

    def take(self, size):
        data = b""
        while len(data) < size:
            try:
                part = self.socket.recv(size - len(data))
            except ConnectionResetError:
                part = b""
            if not part:
                raise Closed
            data += part
        return data

    def unpack(self, layout):
        return struct.unpack(">" + layout, self.take(struct.calcsize(">" + layout)))

    def close(self):
        self.socket.close()


class Daemon:
    """Speaks version 2.minor. A context manager, at whose end the connections are closed."""

    def __init__(self, ports, minor=13):
        self.control, self.data, self.minor = Connection(ports[0]), Connection(ports[1]), minor
        self.send(5, struct.pack(">2I", 2, minor))
        assert self.control.unpack("2I") == (2, 13)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.control.close()
        self.data.close()

    def send(self, command, payload=b"", size=None):
        self.control.send(struct.pack(">QQII", 0, len(payload) if size is None else size, command, 0) + payload)

    def ask(self, command, payload=b""):
        self.send(command, payload)
        return self.control.unpack("I")[0]

    def create(self, name, host="board", number=7, created=1700000000, live=0, snapshot=0, path="", daemon=None,
               chunk=None):
        if self.minor < 4:
            self.send(2)
        elif self.minor < 11:
            self.send(2, struct.pack(">255s64sII", name.encode(), host.encode(), live, snapshot))
        else:
            names = [text.encode() + b"\0" for text in (name, host, path)]
            self.send(2, struct.pack(">4IBB16sQQBQ", *map(len, names), live, snapshot, 0, daemon or os.urandom(16), number, created,
                                     chunk is not None, chunk or 0) + b"".join(names))
        self.session, code = self.control.unpack("QI")
        path = b""
        if self.minor >= 11:
            path = self.control.take(self.control.unpack("I")[0])
        return code, path.rstrip(b"\0").decode()

    def chunk(self, number, name="", created=1700000000):
        name = name.encode() + b"\0" if name else b""
        return self.ask(19, struct.pack(">QQI", number, created, len(name)) + name)

    def close_chunk(self, number, command=None, closed=1700000010):
        self.send(20, struct.pack(">QQBI", number, closed, command is not None, command or 0))
        code, size = self.control.unpack("II")
        return code, self.control.take(size).rstrip(b"\0").decode()

    def chunk_exists(self, number):
        self.send(21, struct.pack(">Q", number))
        return self.control.unpack("IB")

    def add(self, channel, path="ust/uid/0/64-bit", file_bytes=0, files=0):
        if self.minor < 11:
            payload = struct.pack(">264s4096s", channel.encode(), path.encode())
            if self.minor > 1:
                payload += struct.pack(">QQ", file_bytes, files)
        else:
            names = [text.encode() + b"\0" for text in (channel, path)]
            payload = struct.pack(">IIQQQ", *map(len, names), file_bytes, files, 0) + b"".join(names)
        self.send(1, payload)
        handle, code = self.control.unpack("QI")
        return handle if code == OK else None

    def packet(self, stream, number, data, padding=0):
        self.data.send(struct.pack(">QQQII", 0, stream, number, len(data), padding) + data)

    def index(self, stream, number, size, begin, end, discarded=0, class_id=0, instance=0, sequence=None, content=None):
        """@size: of the packet in bytes; 0: only the time @end."""
        payload = struct.pack(">8Q", stream, number, size * 8, size * 8 if content is None else content, begin, end,
                              discarded, class_id)
        if self.minor >= 8:
            payload += struct.pack(">QQ", instance, number if sequence is None else sequence)
        return self.ask(13, payload)

    def metadata(self, stream, data, padding=0):
        self.send(6, struct.pack(">QI", stream, padding) + data)

    def rotate(self, streams, chunk, padding=7):
        payload = struct.pack(f">IB{padding}xQ", len(streams), chunk is not None, chunk or 0)
        return self.ask(18, payload + b"".join(struct.pack(">QQ", *position) for position in streams))

    def is_pending(self, stream, number):
        return self.ask(8, struct.pack(">QQ", stream, number))

    def close_stream(self, stream, number):
        return self.ask(7, struct.pack(">QQ", stream, number))


def entries(index_path):
    """The records of an index: offset, packet and content in bits, begin, end, discarded, class, instance, sequence."""
    with open(index_path, "rb") as file:
        data = file.read()
    assert data[:4] == b"\xc1\xf1\xdc\xc1"
    size, = struct.unpack(">I", data[12:16])
    return [struct.unpack(">9Q" if size == 72 else ">7Q", data[at:at + size]) for at in range(16, len(data), size)]


def streams_of(trace):
    """The names of the trace's streams that have packets."""
    return [name for name in sorted(os.listdir(trace)) if name not in ("metadata", "index") and
            os.path.getsize(os.path.join(trace, name))]


def send_trace(daemon, trace, path, live=False):
    """Sends the complete trace, as in one chunk: the packets of all streams in turns. Returns the streams' handles."""
    stream = daemon.add("metadata", path)
    text = open(os.path.join(trace, "metadata"), "rb").read()
    for at in range(0, len(text), 4096):
        daemon.metadata(stream, text[at:at + 4096])
    handles = {name: daemon.add(name, path) for name in streams_of(trace)}
    assert daemon.ask(16) == OK
    records = {name: entries(os.path.join(trace, "index", name + ".idx")) for name in handles}
    for number in range(max(map(len, records.values()))):
        for name, handle in handles.items():
            if number >= len(records[name]):
                continue
            record = records[name][number]
            with open(os.path.join(trace, name), "rb") as file:
                file.seek(record[0])
                data = file.read(record[1] // 8)
            used = -(-record[2] // 8)
            if number % 2:
                assert daemon.index(handle, number, len(data), *record[3:7], *record[7:], content=record[2]) == OK
            daemon.packet(handle, number, data[:used], len(data) - used)
            if not number % 2:
                assert daemon.index(handle, number, len(data), *record[3:7], *record[7:], content=record[2]) == OK
    return {"metadata": (stream, 0), **{name: (handle, len(records[name]) - 1) for name, handle in handles.items()}}
