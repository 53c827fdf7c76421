# SPDX-License-Identifier: MIT
"""Lines as real programs write them: each finds its format, its time, its level and its text."""

import json

import pytest

from test_import import events_of


def read(kymo, path, text, fmt):
    """The events of a log with these lines, which must all be of the format that Kymo finds by itself, and what Kymo says besides."""
    path.write_text(text, encoding="utf-8")
    assert f"tracer_name = {fmt}\n" in kymo("info", path).out
    done = kymo("convert", "--to", "json", path, env={"TZ": "UTC"})
    assert "not of the format" not in done.err
    return [json.loads(line) for line in done.out.splitlines()], done.err


PROGRAMS = [
    # Java, with the thread before the level; Tomcat, BIND.
    ("2023-04-06T09:05:54,991Z [http-nio-8080-exec-9] WARN  o.a.g.Auth - failed", 1680771954991000000, "WARN", "[http-nio-8080-exec-9] WARN  o.a.g.Auth - failed"),
    ("13-Mar-2019 11:29:06.901 INFO [main] org.camunda.bpm stopped", 1552476546901000000, "INFO", "INFO [main] org.camunda.bpm stopped"),
    ("13-Mar-2019 11:29:07.483 FINE [main] Stopping filters", 1552476547483000000, "FINE", "FINE [main] Stopping filters"),
    ("24-Jul-2013 14:16:55 client 194.145.196.18#4795: all is fine", 1374675415000000000, None, "client 194.145.196.18#4795: all is fine"),
    # MySQL and MariaDB.
    ("2020-04-16T05:13:40.861234Z 344 [Note] Access denied", 1587014020861234000, "Note", "344 [Note] Access denied"),
    ("2021-11-09  5:13:11 8 [Warning] Access denied", 1636434791000000000, "Warning", "8 [Warning] Access denied"),
    ("130324  0:04:00 [ERROR] Access denied", 1364083440000000000, "ERROR", "[ERROR] Access denied"),
    ("130324 10:04:00 [Note] Access denied", 1364119440000000000, "Note", "[Note] Access denied"),
    # A colon behind the time, or behind its zone (PostgreSQL on RDS).
    ("2011-12-25 17:09:20: (http_auth.c.875) no such user", 1324832960000000000, None, "(http_auth.c.875) no such user"),
    ("2019-02-05 09:30:01 UTC:10.1.17.194(1234):user@db:[19003]:LOG:  ready", 1549359001000000000, None, "10.1.17.194(1234):user@db:[19003]:LOG:  ready"),
    # vsftpd; the X server, and kernels that write no six digits; endlessh.
    ("Mon Jun  8 12:08:44 2020 [pid 27245] CONNECT", 1591618124000000000, None, "[pid 27245] CONNECT"),
    ("[     6.319] (II) LoadModule", 6319000000, None, "(II) LoadModule"),
    ("[00041.807] 01174.01179> reset", 41807000000, None, "01174.01179> reset"),
    ("[   1.0500000] cpu0: vendor", 1050000000, None, "cpu0: vendor"),
    ("2022-02-13T10:42:17.813Z ACCEPT host=::ffff:1.2.3.4 port=39590 fd=4", 1644748937813000000, None, "ACCEPT host=::ffff:1.2.3.4 port=39590 fd=4"),
    # Monolog; Serilog.
    ("[2026-02-05 12:34:56] local.ERROR: no such file", 1770294896000000000, "ERROR", "local.ERROR: no such file"),
    ("2023-04-23 21:53:37.311 -05:00 [WRN] Failed login", 1682304817311000000, "WRN", "[WRN] Failed login"),
    ("[2023-02-12 12:16:05.729 +01:00] [INF] [79] Started", 1676200565729000000, "INF", "[INF] [79] Started"),
    ("2023-04-23 21:53:37 a note, and no err.error here", 1682286817000000000, None, "a note, and no err.error here"),
]


@pytest.mark.parametrize("line, ns, level, message", PROGRAMS)
def test_lines_that_begin_with_a_time(kymo, tmp_path, line, ns, level, message):
    events, _ = read(kymo, tmp_path / "a.log", f"{line}\n" * 2, "program")
    fields = {**({"level": level} if level else {}), "message": message}
    assert [(event["timestamp_ns"], event["event"], event["fields"]) for event in events] == [(ns, "log", fields)] * 2


def test_times_since_a_start_are_not_put_among_wall_times(kymo, tmp_path):
    (tmp_path / "a.log").write_text("2017-10-30 22:59:19: a\n[     6.319] b\n[    6.000319] c\n")
    events = events_of(kymo, tmp_path / "a.log")
    assert [event["event"] for event in events] == ["log", "line", "line"] and len({event["timestamp_ns"] for event in events}) == 1


def test_logs_of_containers(kymo, tmp_path):
    """Kubernetes writes the stream, and whether the text goes on in the next line; the stream is no host of syslog."""
    times = ("2022-01-28T16:04:05.673552828Z", "2022-01-28T17:04:05.673552829+01:00", "2022-01-28T16:04:05.67355283Z")
    text = f"{times[0]} stderr F app: [ERROR]  x\n{times[1]} stdout P   indented\n{times[2]} stdout F\n"
    events, _ = read(kymo, tmp_path / "a.log", text, "program")
    assert [(event["timestamp_ns"], event["fields"]) for event in events] == [
        (1643385845673552828, {"level": "ERROR", "output": "stderr", "tag": "F", "message": "app: [ERROR]  x"}),
        (1643385845673552829, {"output": "stdout", "tag": "P", "message": "  indented"}),
        (1643385845673552830, {"output": "stdout", "tag": "F", "message": ""})]


def test_virtual_hosts_of_access_logs(kymo, tmp_path):
    text = 'a.example.com:443 ::1 - - [06/Aug/2024:00:01:35 +0000] "GET / HTTP/1.1" 200 6383 "-" "x"\n'
    event = read(kymo, tmp_path / "a.log", text, "access")[0][0]
    assert event["timestamp_ns"] == 1722902495000000000 and list(event["fields"].items())[:3] == [("vhost", "a.example.com:443"), ("client", "::1"), ("user", "-")]
    for front in ("1.2.3.4 - john doe", "::1 - john doe"):
        (tmp_path / "a.log").write_text(text.replace("a.example.com:443 ::1 - -", front))
        assert "no file of a known format" in kymo("print", tmp_path / "a.log", code=1).err


TIMES = [
    ("json", '{"t":{"$date":"2022-07-28T18:00:00.903+02:00"},"s":"I"}', 1659024000903000000, {"s": "I"}),
    ("json", '{"t":{"$date":1659024000903},"s":"I"}', 1659024000903000000, {"s": "I"}),
    ("json", '{"@t":"2016-06-07T03:44:57.8532799Z","m":"x"}', 1465271097853279900, {"m": "x"}),
    ("json", '{"requestReceivedTimestamp":"2023-05-17T15:08:22.763960Z","stageTimestamp":"2023-05-17T15:08:30.619910Z","n":1}', 1684336110619910000,
     {"requestReceivedTimestamp": "2023-05-17T15:08:22.763960Z", "n": 1}),
    ("logfmt", 'date=2024-10-14 time=13:46:40 eventtime=1728938800841267391 tz="-0700" n=1', 1728938800841267391,
     {"date": "2024-10-14", "time": "13:46:40", "tz": "-0700", "n": 1}),
    ("logfmt", 'date=2024-10-14 time=13:46:40 tz="-0700" n=1', 1728938800000000000, {"date": "2024-10-14", "time": "13:46:40", "tz": "-0700", "n": 1}),
    ("logfmt", 'ts=1764181493 a=1234567890123456789 b=-9223372036854775808 c=18446744073709551615 d=99999999999999999999 e="1234567890123456789"',
     1764181493000000000, {"a": 1234567890123456789, "b": -2**63, "c": 2**64 - 1, "d": "9" * 20, "e": "1234567890123456789"}),
]


@pytest.mark.parametrize("fmt, line, ns, fields", TIMES)
def test_names_of_times(kymo, tmp_path, fmt, line, ns, fields):
    (event,), says = read(kymo, tmp_path / "a.log", line + "\n", fmt)
    assert (event["timestamp_ns"], event["fields"]) == (ns, fields) and "no time" not in says


def test_events_without_a_time_are_counted(kymo, tmp_path):
    says = "have no time that Kymo knows: they have the time of the event before; a log format with a group 'time' may find it"
    path = tmp_path / "a.log"
    events, told = read(kymo, path, '{"time":1764181493,"n":1}\n{"when_it_was":"2026-11-26T18:24:53Z"}\n{"n":2}\n', "json")
    assert f"2 events {says}" in told and {event["timestamp_ns"] for event in events} == {1764181493 * 10**9}
    assert f"3 events {says}" in kymo("print", "--log-format", "(?<n>[0-9]+)", path).err
    assert "no time" not in kymo("print", "--log-format", '"n":(?<time>[0-9]+)', "--log-time", "%s", path).err


def test_tags_of_syslog(kymo, tmp_path):
    """A tag has no "="; proftpd has no colon behind the PID."""
    text = "Jan 10 00:00:00 myhost proftpd[12345] a.example.com (1.2.3.4): USER x\nJan 10 00:00:01 myhost x=::1 y\nJan 10 00:00:02 myhost a[b] c: d\nJan 10 00:00:03 myhost [5] e\n"
    events, _ = read(kymo, tmp_path / "a.log", text, "syslog")
    assert [event["fields"] for event in events] == [
        {"host": "myhost", "program": "proftpd", "pid": 12345, "message": "a.example.com (1.2.3.4): USER x"},
        {"host": "myhost", "program": "", "message": "x=::1 y"}, {"host": "myhost", "program": "", "message": "a[b] c: d"},
        {"host": "myhost", "program": "", "message": "[5] e"}]
    # Behind other times than syslog's own, a tag without a colon may be anything.
    read(kymo, tmp_path / "a.log", "2021-05-28 18:08:34,399 worker task[498819] started\n", "program")


def test_log_of_auditd(kymo, tmp_path):
    """Fields behind a group separator are in words; user records have a text in quotes; values without a mark may be hexadecimal."""
    front = "type={} msg=audit(1684329817.579:{}): "
    text = (front.format("SYSCALL", 2996) + 'arch=c000003e syscall=59 success=no exit=-2 a0=10 a1= pid=27031 comm="a b" key=(null)\x1dARCH=x86_64 UID="bui"\n' +
            front.format("USER_AUTH", 2997) + "pid=1 uid=0 msg='op=PAM:auth acct=\"root\" note=it's exe=\"/bin/su\" res=success'\x1dUID=\"root\"\n" +
            "node=h1 " + front.format("AVC", 2998) + 'avc:  denied  { read } for  pid=7 name="x"alone\n' +
            front.format("EOE", 2999) + "\n" + front.format("DAEMON_END", 3000) + "op=terminate text='no end\n")
    events, _ = read(kymo, tmp_path / "a.log", text, "audit")
    assert [(event["timestamp_ns"], event["event"]) for event in events] == [
        (1684329817579000000, "audit:" + name) for name in ("SYSCALL", "USER_AUTH", "AVC", "EOE", "DAEMON_END")]
    assert [event["fields"] for event in events] == [
        {"type": "SYSCALL", "serial": 2996, "arch": "c000003e", "syscall": 59, "success": "no", "exit": -2, "a0": "10", "a1": "", "pid": 27031,
         "comm": "a b", "key": "(null)", "ARCH": "x86_64", "UID": "bui"},
        {"type": "USER_AUTH", "serial": 2997, "pid": 1, "uid": 0, "msg": 'op=PAM:auth acct="root" note=it\'s exe="/bin/su" res=success', "UID": "root"},
        {"node": "h1", "type": "AVC", "serial": 2998, "message": "avc:  denied  { read } for", "pid": 7, "name": "x", "alone": 1},
        {"type": "EOE", "serial": 2999}, {"type": "DAEMON_END", "serial": 3000, "op": "terminate", "text": "no end"}]
    assert len(events_of(kymo, tmp_path / "a.log")) == 5


def test_times_of_one_kind(kymo, tmp_path):
    """The first line decides whether times in brackets count from a start; numbers since 1970 are wall times."""
    for text, times in (("[1700000000.123] a\n[1700000001.123] b\n", [1700000000123000000, 1700000001123000000]),
                        ("[12.345] a\n2020-01-01 00:00:00 c\n[    12.347] d\n", [12345000000, 12345000000, 12347000000])):
        (tmp_path / "a.log").write_text(text)
        assert [event["timestamp_ns"] for event in events_of(kymo, tmp_path / "a.log")] == times


def test_syslog_whose_first_line_has_no_tag(kymo, tmp_path):
    events, _ = read(kymo, tmp_path / "a.log", "2026-11-01T00:56:06.123456Z host last message repeated 2 times\n2026-11-01T00:56:07.123456Z host sshd[12]: hello\n",
                     "syslog")
    assert events[1]["fields"] == {"host": "host", "program": "sshd", "pid": 12, "message": "hello"}


def test_dates_with_other_times(kymo, tmp_path):
    """A zone may be a number; what is no time changes nothing."""
    front = "date=2024-10-14 time={} level=info msg=a x=1\n"
    events, _ = read(kymo, tmp_path / "a.log", front.format("13:46:40 tz=-1000") + front.format('"13:46:40 foo"'), "logfmt")
    assert [event["timestamp_ns"] for event in events] == [1728949600000000000] * 2


def test_comma_of_java_without_a_level(kymo, tmp_path):
    events, _ = read(kymo, tmp_path / "a.log", "2026-11-28T00:56:06,123 main Foo text\n", "program")
    assert events[0]["fields"]["message"] == "main Foo text"
