# SPDX-License-Identifier: MIT
"""forge_rings.py KIND N: what a hostile program puts beside its own ring file, in the current directory, a session's:
N ring files that are copies of it, but for KIND:

    same      nothing: the same program, over and over, which ends at once
    held      the same, and they do not end
    labels    it describes 40 events of 10 enumerations, which have 1024 long labels in common: 1 MiB that would be
              60 MiB of metadata
    plain     as many small events as there is room for: 1 MiB
    growing   the same in large ones, told one after the other, for as long as this runs
"""

import glob
import os
import struct
import subprocess
import sys
import time

CLIENT_OFFSET, FIELDS, FIELD_BYTES, LABEL_BYTES = 64, 32, 24, 24
BLOB_BYTES, ENUM, INTEGER = 1 << 20, 5, 1


def event(number, provider, name, fields, labels, share):
    """A struct ky_event_record; with @share, all fields have the labels of the first."""
    n_copies = (1 if share else len(fields)) if labels else 0
    labels_at = FIELDS + FIELD_BYTES * len(fields)
    labels_at += -labels_at % 8
    text_at = labels_at + n_copies * len(labels) * LABEL_BYTES
    texts, places = bytearray(), {}

    def text(word, again=False):
        if again or word not in places:
            places[word] = text_at + len(texts)
            texts.extend(word.encode() + b"\0")
        return places[word]

    head = struct.pack("=4I", text(provider), text(name), text("a.c"), 1) + struct.pack("=2H4B", 0, 0, 6, 0,
                                                                                        len(fields), 0)
    described, listed = b"", b""
    for i, field in enumerate(fields):
        at = labels_at + (0 if share else i * len(labels) * LABEL_BYTES)
        described += struct.pack("=I4B4I", text(field), ENUM if labels else INTEGER, 8, 0, 10, 0,
                                 at if labels else 0, len(labels), 0)
        if labels and i < n_copies:
            listed += b"".join(struct.pack("=qqII", k, k, text(label, not share), 0)
                               for k, label in enumerate(labels))
    body = (struct.pack("=II", 0, number) + head + described).ljust(labels_at, b"\0") + listed + texts
    body += b"\0" * (-len(body) % 8)
    return struct.pack("=I", len(body)) + body[4:]


def events(kind):
    if kind in ("same", "held"):
        return []
    if kind == "plain":
        return [event(i, "p", f"e{i}", ["f"], [], False) for i in range(1000, 17000)]
    if kind == "growing":
        labels = [f"label{i:03}" for i in range(100)]
        return [event(i, "p", f"e{i}", [f"f{k}" for k in range(4)], labels, False) for i in range(1000, 1075)]
    labels = ["l" * 120 + f"{0:06}"] * 1024
    return [event(i, "forged", f"event_{i}", [f"f{k}" for k in range(10)], labels, True) for i in range(1000, 1042)]


class Ring:
    def __init__(self, source, name):
        self.temp = f".{name}.forged"
        subprocess.run(["cp", "--sparse=always", source, self.temp], check=True)
        self.name = name
        self.file = open(self.temp, "r+b", buffering=0)
        self.blob = struct.unpack("=Q", os.pread(self.file.fileno(), 8, CLIENT_OFFSET))[0]
        self.bytes = struct.unpack("=Q", os.pread(self.file.fileno(), 8, self.blob + 16))[0]
        os.pwrite(self.file.fileno(), os.urandom(16), self.blob + 40)  # a trace of its own

    def describe(self, record):
        if self.bytes + len(record) > BLOB_BYTES:
            return False
        os.pwrite(self.file.fileno(), record, self.blob + self.bytes)
        self.bytes += len(record)
        os.pwrite(self.file.fileno(), struct.pack("=Q", self.bytes), self.blob + 16)
        return True

    def publish(self):
        os.rename(self.temp, self.name)


def main():
    kind, count = sys.argv[1], int(sys.argv[2])
    source = [name for name in sorted(glob.glob("*.ring")) if "forged" not in name][0]
    records, rings = events(kind), []
    for i in range(count):
        ring = Ring(source, f"{os.getpid()}{i:05}-1-forged.ring")
        for record in records[:1] if kind == "growing" else records:
            ring.describe(record)
        ring.publish()
        if kind == "same":
            ring.file.close()
        else:
            rings.append(ring)
    print("forged", flush=True)
    for record in records[1:] if kind == "growing" else []:
        for ring in rings:
            ring.describe(record)
        time.sleep(0.05)
    print("told", flush=True)
    while True:  # they are somebody's while this runs
        time.sleep(100)


if __name__ == "__main__":
    main()
