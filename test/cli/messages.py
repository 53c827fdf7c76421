# SPDX-License-Identifier: MIT
"""test/machine/messages.c, and what is expected of each of its calls."""

import os
import subprocess

from machine import SOURCES

FLAGS = ("-O1", "-static", "-nostdlib", "-ffreestanding", "-no-pie", "-fno-pic", "-fno-stack-protector")
TEXT = bytes(ord("a") + i % 26 for i in range(600))
# What is recorded of it: with all, 512 bytes of each buffer.
EVENTS = "syscall:*msg,syscall:getsockname,syscall:readv,syscall:writev,syscall:pwritev"
EVENTS += "," + ",".join(f"compat_syscall_*_{name}" for name in (
    "*msg", "*msg_time32", "getsockname", "readv", "writev", "pwritev"))


def build(directory, bits):
    """The program, as messages-32 or messages-64."""
    path = os.path.join(directory, f"messages-{bits}")
    subprocess.run(["gcc", *FLAGS, f"-m{bits}", "-o", path, os.path.join(SOURCES, "messages.c")], check=True,
                   stdin=subprocess.DEVNULL)
    return path


def status(fields):
    """The label of content_status."""
    value = fields["content_status"]
    return value["labels"][0] if isinstance(value, dict) else value


def family(message):
    value = message["family"]
    return value["value"] if isinstance(value, dict) else value


def of(found, name, prefix):
    """[(entry's fields, exit's fields)] of one call."""
    pairs = []
    for event, fields in found:
        if event == f"{prefix}syscall_entry_{name}":
            pairs.append((fields, None))
        elif event == f"{prefix}syscall_exit_{name}" and pairs:
            pairs[-1] = (pairs[-1][0], fields)
    return pairs


def check_sent(calls):
    """Those that fail, by their mark."""
    for entry, leave in calls:
        assert leave["ret"] == -9 and entry["fd"] == 999
    by_mark = {entry["flags"]: (entry["mmsg_messages"], status(entry)) for entry, _ in calls}
    assert sorted(by_mark) == list(range(1, 11)) and len(calls) == 10
    plain = (2, 53, [10, 0, 0, 7], 8, TEXT[:8])

    def short(message):
        return family(message), message["dport"], message["v4addr"], message["bytes"], bytes(message["data"])

    messages, state = by_mark[1]
    assert [short(message) for message in messages] == [
        (2, 53, [10, 0, 0, 7], 8, b"abcklmno"), (10, 0x1234, [], 8, TEXT[:8]), (0, 0, [], 0, b""),
        # Of ten pieces the first eight are recorded.
        (2, 53, [10, 0, 0, 7], 20, b"".join(TEXT[i:i + 2] for i in range(8)))]
    assert messages[1]["v6addr"] == [0] * 15 + [1] and state == "truncated"
    messages, state = by_mark[2]
    assert len(messages) == 1024 and state == "read" and all(short(message) == plain for message in messages)
    assert len(by_mark[3][0]) == 1024 and by_mark[3][1] == "truncated"
    messages, state = by_mark[4]
    assert [short(message) for message in messages] == 3 * [plain] + [(0, 0, [], 8, TEXT[:8]), plain]
    assert state == "unreadable"
    messages, state = by_mark[5]
    assert [short(message) for message in messages] == 2 * [plain] + [(2, 53, [10, 0, 0, 7], 0, b"")]
    assert state == "unreadable"
    assert short(by_mark[6][0][0])[3:] == (0, b"") and short(by_mark[6][0][1]) == plain
    assert by_mark[6][1] == "unreadable"
    assert [message["bytes"] for message in by_mark[7][0]] == [8, 128] and by_mark[7][1] == "truncated"
    messages, state = by_mark[8]
    assert 64 <= len(messages) < 200 and state == "truncated"
    assert all(bytes(message["data"]) == TEXT[:500] for message in messages)
    assert by_mark[9] == ([], "unreadable") and by_mark[10] == ([], "read")


def check(found, prefix=""):
    """found: [(event, fields)] of the program's calls, in order. prefix: "compat_" for 32 bits."""
    sends = of(found, "sendmmsg", prefix)
    check_sent(sends[:10])
    expected = [TEXT[i:i + i % 5 + 1] for i in range(10)]
    assert [[bytes(message["data"]) for message in entry["mmsg_messages"]] for entry, _ in sends[10:]] == [
        [text] for text in expected]
    to, = {message["sun_path"] for entry, _ in sends[10:] for message in entry["mmsg_messages"]}
    assert to == of(found, "getsockname", prefix)[0][1]["sun_path"] and to.startswith("@")
    leaves = [leave for _, leave in of(found, "recvmmsg", prefix)]
    if prefix:  # the first one has a time of 64 bits
        leaves += [leave for _, leave in of(found, "recvmmsg_time32", prefix)]
    assert [leave["ret"] for leave in leaves] == [2, 3, 3, -11]
    got = [[bytes(message["data"]) for message in leave["mmsg_messages"]] for leave in leaves]
    assert got == [expected[:2], expected[2:5], expected[7:10], []]
    messages = [message for leave in leaves for message in leave["mmsg_messages"]]
    assert [message["len"] for message in messages] == [1, 2, 3, 4, 5, 3, 4, 5]
    assert all(message["bytes"] == 12 for message in messages) and all(status(leave) == "read" for leave in leaves)
    sender, = {message["sun_path"] for message in messages}
    assert sender.startswith("@") and sender != to
    (_, leave), = of(found, "recvmsg", prefix)
    assert (leave["sun_path"], leave["msg_bytes"], bytes(leave["msg_data"])) == (sender, 12, expected[5])
    (_, leave), = of(found, "readv", prefix)
    assert (leave["vec_bytes"], bytes(leave["vec_data"])) == (12, expected[6])
    writes = [(entry["vlen"], entry["vec_bytes"], bytes(entry["vec_data"]), status(entry))
              for entry, _ in of(found, "writev", prefix)]
    first = b"".join(TEXT[i:i + 2] for i in range(8))
    assert writes == [(3, 8, b"abcklmno", "read"), (1024, 2048, first, "truncated"),
                      (1030, 2048, first, "truncated"), (3, 0, b"", "unreadable")]
    (entry, _), = of(found, "pwritev", prefix)
    assert (entry["pos_l"], entry["pos_h"], bytes(entry["vec_data"])) == (7, 9, b"abc")
    sent = [(entry["flags"], family(entry), entry["dport"], entry["msg_bytes"], bytes(entry["msg_data"]), status(entry))
            for entry, _ in of(found, "sendmsg", prefix)]
    assert sent == [(1, 2, 53, 8, b"abcklmno", "read"), (2, 0, 0, 8, b"abcklmno", "read"),
                    (3, 0, 0, 0, b"", "unreadable")]
