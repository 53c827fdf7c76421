# SPDX-License-Identifier: MIT
"""kymo record --syscall-content: vectors and messages, of programs of 64 and of 32 bits."""

import json
import subprocess

import pytest

import messages


def recorded(kymo, trace, pid):
    out = kymo("convert", "--to", "json", "--filter", f"$ctx.tid == {pid}", trace).out
    return [(event["event"], event["fields"]) for event in map(json.loads, out.splitlines())]


@pytest.mark.parametrize("bits", [64, 32])
def test_all_of_them(kymo, peer, with_content, tmp_path, bits):
    program = messages.build(tmp_path, bits)
    try:
        subprocess.run([program], check=True, capture_output=True)
    except OSError:
        pytest.skip(f"this kernel runs no programs of {bits} bits")
    trace, done = with_content("-k", messages.EVENTS, "--syscall-content=all", "--follow", command=[program])
    messages.check(recorded(kymo, trace, int(done.out)), "compat_" if bits == 32 else "")
    theirs = peer("babeltrace2", trace)
    assert theirs.code == 0 and theirs.out.count("\n") == kymo("print", trace).out.count("\n")


def test_addresses_alone(kymo, with_content, tmp_path):
    """With paths, contents are left where they are."""
    program = messages.build(tmp_path, 64)
    trace, done = with_content("-k", messages.EVENTS, "--syscall-content=paths", "--follow", command=[program])
    found = [entry for entry, _ in messages.of(recorded(kymo, trace, int(done.out)), "sendmmsg", "")]
    assert [len(entry["mmsg_messages"]) for entry in found][:10] == [4, 1024, 1024, 5, 3, 2, 2, 200, 0, 0]
    assert [messages.status(entry) for entry in found][:10] == [
        "read", "read", "truncated", "unreadable", "unreadable", "read", "truncated", "read", "unreadable", "read"]
    assert not any("data" in message for entry in found for message in entry["mmsg_messages"])
