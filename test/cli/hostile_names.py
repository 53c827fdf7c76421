# SPDX-License-Identifier: MIT
"""A CTF 2 trace whose hosts, events and fields have names that want to be more than names, and very many of them."""

import json
import os
import struct

NAMES = [
    "select", "SELECT", "end", "time", "host", "trace", "batch", "cpu", "tid", "name", "from", "table", "index", "primary", "kymo_batch",
    "sqlite_master", "sqlite_x", "event", "syscall", "a\"b", "a'b", "a`b", "a\\b", "a\\", "'", "\"", "`", "\\", "\\'", "\\\"", "''", "\"\"",
    "\"; DROP TABLE host; --", "'; DROP TABLE host; --", "`; DROP TABLE host; --", "x) ENGINE = Memory; --", "x\" Int64, \"y", "/* x", "-- x",
    "a\tb", "a\nb", "a\rb", "a\0b", "\0", "a b", " ", "", "1", "1a", "%s%n%d", "${x}", "{x:String}", ":x", "?1", "@x", "$x", "\u202eevil",
    "\ufeffx", "\uffff", "ünïcode", "日本", "日木", "\U0001f600", "_", "__", "x" * 300, "x" * 299 + "y", "y" * 5000, "..", "../x", "a.b", "a.b.c",
    "kymo_column", "kymo:batch", "report_syscalls_syscalls", "_part", "_table",
    "NULL", "true", "rowid", "oid", "_rowid_", "TIME", "Time", "time_", "field_time", "context_time", "field_field_time", "\x1b[31m", "\x7f",
]
MANY = 10000
# A host's name, and the same in a text of SQL that both engines read.
HOST = "a'b\"c`d; DROP TABLE host; --"
HOST_SQL = HOST.replace("'", "''")


def uint(bits=8, **more):
    return {"type": "fixed-length-unsigned-integer", "length": bits, "byte-order": "little-endian", **more}


def structure(names):
    return {"type": "structure", "member-classes": [{"name": name, "field-class": uint()} for name in names]}


def distinct(prefix, n):
    """Names that are different, and become the same when only ASCII's letters stay."""
    return [prefix + chr(0x4E00 + i) for i in range(n)]


def make(path, host, many=MANY, kinds=30, n_events=3):
    """Each class of events has @n_events events, whose fields are 1. Returns the names of the classes with those of their fields."""
    events = [(name, [name]) for name in NAMES]
    events += [("all names", NAMES), ("many", [f"f{i}" for i in range(many)]), ("same", distinct("", many))]
    events += [(name, ["x"]) for name in distinct("e", kinds)]
    head = {"type": "structure", "member-classes": [
        {"name": "id", "field-class": uint(32, roles=["event-record-class-id"])},
        {"name": "time", "field-class": uint(64, roles=["default-clock-timestamp"])}]}
    fragments = [
        {"type": "preamble", "version": 2},
        {"type": "trace-class", "environment": {"hostname": host}},
        {"type": "clock-class", "id": "c", "name": "c", "frequency": 1000000000, "origin": "unix-epoch", "offset-from-origin": {"seconds": 1795000000}},
        {"type": "data-stream-class", "id": 0, "default-clock-class-id": "c", "event-record-header-field-class": head},
    ]
    fragments += [{"type": "event-record-class", "id": i, "name": name, "payload-field-class": structure(fields)}
                  for i, (name, fields) in enumerate(events)]
    os.makedirs(path)
    with open(os.path.join(path, "metadata"), "w", encoding="utf-8") as file:
        file.write("".join("\x1e" + json.dumps(fragment) + "\n" for fragment in fragments))
    with open(os.path.join(path, "data"), "wb") as file:
        for turn in range(n_events):
            for i, (_, fields) in enumerate(events):
                file.write(struct.pack("<IQ", i, turn * len(events) + i) + b"\1" * len(fields))
    return events
