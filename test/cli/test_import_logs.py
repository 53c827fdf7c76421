# SPDX-License-Identifier: MIT
"""Logs whose lines have fields by name: any order, any set, any JSON; journald's own tool judges."""

import json
import os
import random
import shutil
import subprocess

import pytest

from test_import import events_of


def test_fields_in_any_order_and_any_set(kymo, tmp_path):
    """journald writes the fields of JSON in the order of a hash table: the same fields are the same kind of event."""
    chance = random.Random(7)
    names = [f"field{i}" for i in range(9)]
    with open(tmp_path / "a.json", "w", encoding="ascii") as file:
        for i in range(66000):
            chance.shuffle(names)
            file.write('{"time":%d,%s}\n' % (1764181493 + i, ",".join(f'"{name}":"{name}{i}"' for name in names)))
    done = kymo("convert", "--to", "json", tmp_path / "a.json")
    events = [json.loads(line) for line in done.out.splitlines()]
    assert len(events) == 66000
    assert all(event["fields"] == {f"field{n}": f"field{n}{i}" for n in range(9)} for i, event in enumerate(events))
    # Any set of twenty fields: more sets than a trace has kinds of events.
    with open(tmp_path / "b.json", "w", encoding="ascii") as file:
        for i in range(9000):
            file.write('{"time":%d,%s}\n' % (1764181493 + i, ",".join(f'"f{n}":{n}' for n in range(20) if (i * 7919 + 1) >> n % 16 & 1)))
    events = events_of(kymo, tmp_path / "b.json")
    assert len(events) == 9000
    for i, event in enumerate(events):
        expected = {f"f{n}": n for n in range(20) if (i * 7919 + 1) >> n % 16 & 1}
        assert event["fields"] in (expected, {"fields": " ".join(f"{name}={n}" for name, n in expected.items())})


JSON_LINES = [
    r'{"a":"x\ny\"\/\u00e9","b":-1,"c":0.25,"d":true,"e":null,"f":1e3}', '{ "a" : "\u00fc" , "b":[1,2], "c":{} }',
    '{"a":1,"a":2}', '{"a":null,"a":2}', '{"a":12345678901234567890}', '{"a":"\xff"}', '{"a":"x\ty"}', "{}", '{"a":1} x', '{"a":01}',
    '{"a":-0}', '{"a":0.5,"b":"' + "x" * 300 + r'\tz"}', '{"a":tru}', '{"a":"' + r'\\' + '"}',
]


def test_lines_of_json_are_what_python_says(kymo, tmp_path):
    """The fast way for simple lines, and jansson for all others."""
    path = tmp_path / "a.json"
    path.write_bytes(b"".join(line.encode("latin-1" if "\xff" in line else "utf-8") + b"\n" for line in JSON_LINES))
    for line, event in zip(JSON_LINES, events_of(kymo, path, "--log-format", "json")):
        try:
            value = json.loads(line, strict=True)
            assert "\xff" not in line
        except (AssertionError, ValueError):
            assert event["event"] == "line", line
            continue
        expected = {name: json.dumps(one, separators=(",", ":")) if isinstance(one, (list, dict)) else
                    float(one) if isinstance(one, int) and one > 2**63 else one
                    for name, one in value.items() if one is not None}
        assert event["fields"] == expected, line


def test_times_as_programs_write_them(kymo, tmp_path):
    """Python's logging, Spark, glog (Kubernetes): the level and the text; in the last, the letter is the level."""
    for line, level, message in (("2012-07-02 10:22:40,672:DEBUG:foo bar", "DEBUG", "DEBUG:foo bar"),
                                 ("2016-09-28 04:30:31, Info     CBS    Loaded it", "Info", "Info     CBS    Loaded it"),
                                 ("17/06/09 20:10:40 INFO executor.Backend: Registered", "INFO", "INFO executor.Backend: Registered"),
                                 ("E0517 15:04:22.619632 1952 main.cc:253] Log every 3", "ERROR", "1952 main.cc:253] Log every 3")):
        (tmp_path / "app.log").write_text(f"{line}\n{line}\nnot such a line\n")
        events = events_of(kymo, tmp_path / "app.log")
        assert [event["event"] for event in events] == ["log", "log", "line"]
        assert events[0]["fields"] == {"level": level, "message": message}
    assert events[0]["timestamp_ns"] % 10**9 == 619632000
    (tmp_path / "app.log").write_text("E0517 15:04:22.619632\n17/06/09 20:10:40 no level\n")
    refusal = kymo("print", tmp_path / "app.log", code=1).err
    assert "no file of a known format" in refusal and "give a log format" in refusal
    (tmp_path / "app.log").write_text("")
    assert "app.log: the file is empty, so it has no events" in kymo("print", tmp_path / "app.log", code=1).err


JOURNAL_REMOTE = "/lib/systemd/systemd-journal-remote"


@pytest.mark.parametrize("form", ["export", "json"])
def test_what_journalctl_writes(kymo, tmp_path, form):
    """A journal of real files: its export and its JSON are read, and have the messages and fields that journalctl shows."""
    if not os.path.exists(JOURNAL_REMOTE) or not shutil.which("journalctl"):
        pytest.skip("systemd-journal-remote is not installed: tools/install-deps test")
    with open(tmp_path / "made", "w", encoding="utf-8") as file:
        for i in range(300):
            file.write(f"__CURSOR=s=1;i={i:x}\n__REALTIME_TIMESTAMP={1_764_181_493_000_000 + i * 137}\n__MONOTONIC_TIMESTAMP={i * 137}\n"
                       f"_BOOT_ID={'1' * 32}\nPRIORITY={i % 8}\nSYSLOG_IDENTIFIER=app{i % 7}\n_PID={1000 + i % 50}\n_HOSTNAME=höst\n"
                       f"MESSAGE=request {i} \"took\" {i % 991} µs\n\n")
    journal = tmp_path / "one.journal"
    done = subprocess.run([JOURNAL_REMOTE, "-o", journal, tmp_path / "made"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"systemd-journal-remote cannot write a journal here: {done.stderr[-300:]}")

    def say(how):
        return subprocess.run(["journalctl", "--no-pager", "-o", how, "--file", journal], capture_output=True, check=True).stdout

    (tmp_path / "j").write_bytes(say(form))
    told = [json.loads(line) for line in say("json").splitlines()]
    events = [json.loads(line) for line in kymo("convert", "--to", "json", tmp_path / "j").out.splitlines()]
    assert [(event["timestamp_ns"], event["fields"]["MESSAGE"]) for event in events] == \
        [(int(line["__REALTIME_TIMESTAMP"]) * 1000, line["MESSAGE"]) for line in told] and len(told) == 300
    assert all({name: str(event["fields"].get(name)) for name in line if not name.startswith("__")} ==
               {name: value for name, value in line.items() if not name.startswith("__")} for event, line in zip(events, told))
