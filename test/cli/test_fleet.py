# SPDX-License-Identifier: MIT
"""kymo fleet: rows of many machines in one store, of SQLite and of a real ClickHouse server."""

import http.server
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import threading
import time
import urllib.request

import hostile_names
import pytest
import relays

ALL_TABLES = ("syscall", "cpu_slice", "thread_state", "thread", "cpu_state", "irq", "block_request", "network", "lock_wait", "counter", "host")
TABLES = ("syscall", "cpu_slice", "thread_state", "irq", "block_request", "counter", "host")

CONFIG = """<yandex><logger><level>error</level><log>{dir}/log</log><errorlog>{dir}/errors</errorlog></logger>
<http_port>{http}</http_port><https_port>{https}</https_port><tcp_port>{tcp}</tcp_port>
<openSSL><server><certificateFile>{dir}/server.pem</certificateFile><privateKeyFile>{dir}/server.key</privateKeyFile>
<verificationMode>none</verificationMode><loadDefaultCAFile>false</loadDefaultCAFile></server></openSSL><listen_host>127.0.0.1</listen_host>
<listen_host>127.0.0.2</listen_host><path>{dir}/data/</path>
<tmp_path>{dir}/tmp/</tmp_path><users_config>{dir}/users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>67108864</mark_cache_size><timezone>UTC</timezone>{shards}</yandex>"""
SHARD = """<shard><replica><host>127.0.0.1</host><port>{port}</port><user>kymo</user><password>se:cr%t</password></replica></shard>"""
USERS = """<yandex><profiles><default/></profiles><quotas><default/></quotas><users><kymo><password>se:cr%t</password>
<networks><ip>127.0.0.0/8</ip></networks><profile>default</profile><quota>default</quota></kymo></users></yandex>"""


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def make_certificates(folder):
    """An authority of our own, ca.pem, and a certificate for localhost and 127.0.0.1 that it signs."""
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n", encoding="ascii")
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj"]
    for step in ([*new, "/CN=authority", "-x509", "-keyout", "ca.key", "-out", "ca.pem"],
                 [*new, "/CN=server", "-keyout", "server.key", "-out", "server.csr"],
                 ["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial",
                  "-extfile", "names", "-out", "server.pem"]):
        subprocess.run(step, cwd=folder, check=True, capture_output=True, timeout=60)


class Server:
    """A ClickHouse server of our own, which may be killed and started again."""

    def __init__(self, program, folder, ports=None, others=()):
        """@ports: HTTP, HTTPS and the native protocol; @others: of all servers of a cluster, the last of these."""
        self.program, self.folder, self.process = program, folder, None
        self.port, self.tls_port, self.tcp_port = ports or free_ports(3)
        shards = "".join(SHARD.format(port=port) for port in others)
        config = CONFIG.format(dir=folder, http=self.port, https=self.tls_port, tcp=self.tcp_port,
                               shards=f"<remote_servers><fleet>{shards}</fleet></remote_servers>" if others else "")
        (folder / "config.xml").write_text(config, encoding="utf-8")
        make_certificates(folder)
        (folder / "users.xml").write_text(USERS, encoding="utf-8")
        for name in ("data", "tmp"):
            (folder / name).mkdir()
        self.url = f"http://127.0.0.1:{self.port}"
        self.key = folder / "fleet-key"
        self.key.write_text("user kymo\npassword se:cr%t\n", encoding="utf-8")
        self.key.chmod(0o600)

    def start(self):
        self.process = subprocess.Popen([self.program, f"--config-file={self.folder}/config.xml"], cwd=self.folder,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 100
        while time.monotonic() < until:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/ping", timeout=5).read()
                return
            except OSError:
                assert self.process.poll() is None, (self.folder / "errors").read_text(encoding="utf-8")[-2000:]
                time.sleep(0.1)
        pytest.fail("the server does not start")

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def one_server(tmp_path_factory):
    program = shutil.which("clickhouse-server", path=os.environ["PATH"] + ":/usr/sbin")
    if not program:
        pytest.skip("clickhouse-server is not installed: tools/install-deps test")
    own = Server(program, tmp_path_factory.mktemp("clickhouse"))
    own.start()
    os.environ["KYMO_FLEET_KEY"] = str(own.key)
    yield own
    del os.environ["KYMO_FLEET_KEY"]
    own.kill()


@pytest.fixture
def server(one_server):
    """What a test starts ends with it: also a server that it killed and started again."""
    if one_server.process.poll() is not None:
        one_server.start()
    return one_server


def ask(kymo, store, statement):
    return json.loads(kymo("query", "--json", "--fleet", store, statement).out)


def ask_schema(kymo, store):
    return json.loads(kymo("query", "--json", "--fleet", store, "--schema").out)


def count(kymo, store, table):
    return int(ask(kymo, store, f"SELECT count(*) AS n FROM {table}")[0]["n"])


def load(kymo, store, *args):
    return json.loads(kymo("fleet", "load", "--json", "--to", store, *args).out)


def check_same(kymo, store, trace, is_exact=True):
    """The store has what the trace has."""
    for table in TABLES:
        [there] = json.loads(kymo("query", "--json", trace, f"SELECT count(*) AS n FROM {table}").out)
        assert count(kymo, store, table) == there["n"], table
    # Old servers compute ends.
    for table in ("syscall", "thread_state", "cpu_slice", "cpu_state", "irq", "block_request", "lock_wait"):
        [row] = ask(kymo, store, f'SELECT count(*) AS n, count("end") AS ends, sum("end" - time - duration) AS rest FROM {table}')
        assert row["n"] == row["ends"] and not int(row["rest"] or 0), table
    question = "SELECT name, count(*) AS n, sum(duration) AS ns FROM syscall GROUP BY name ORDER BY name"
    there = json.loads(kymo("query", "--json", trace, question).out)
    # A recording that grows has a slightly other clock.
    for ours, theirs in zip(ask(kymo, store, question), there, strict=True):
        assert (ours["name"], int(ours["n"])) == (theirs["name"], theirs["n"])
        assert int(ours["ns"]) == (theirs["ns"] if is_exact else pytest.approx(theirs["ns"], rel=1e-3))


def check_once(kymo, store, trace):
    first = load(kymo, store, trace)
    assert first["rows"] > 1000 and not first["known_rows"]
    check_same(kymo, store, trace)
    assert load(kymo, store, trace) == {"rows": 0, "batches": 0, "known_rows": first["rows"]}
    assert load(kymo, store, "--again", trace)["rows"] == first["rows"]
    check_same(kymo, store, trace)


def check_texts(kymo, store, trace):
    """Paths and arguments stay out, until somebody asks for them."""
    load(kymo, store, "-t", "syscall", "-e", "syscall_entry_openat", "--host", "quiet", trace)
    for statement in ("SELECT args FROM syscall", "SELECT filename FROM syscall_entry_openat"):
        assert kymo("query", "--fleet", store, statement, code=None).code != 0
    load(kymo, store, "-t", "syscall", "-e", "syscall_entry_openat", "--host", "open", "--with-texts", trace)
    files = ask(kymo, store, "SELECT host, count(filename) AS n FROM syscall_entry_openat GROUP BY host ORDER BY host")
    assert [row["host"] for row in files] == ["open", "quiet"]
    assert int(files[0]["n"]) > 0 and not int(files[1]["n"])


def check_reports(kymo, store, trace):
    """Rows of reports have the figures of the reports, once."""
    args = ["-t", "host", "--report", "syscalls", "--report", "cpu", trace]
    first = load(kymo, store, *args)
    assert load(kymo, store, *args) == {"rows": 0, "batches": 0, "known_rows": first["rows"] + first["known_rows"]}
    [shown] = json.loads(kymo("report", "syscalls", "--json", "-t", "syscalls", "--limit", "0", trace).out)["reports"]
    [table] = [table for table in shown["tables"] if table["name"] == "syscalls"]
    there = ask(kymo, store, "SELECT syscall, count, total FROM report_syscalls_syscalls ORDER BY syscall")
    assert [(row["syscall"], int(row["count"]), row["total"] and int(row["total"])) for row in there] == sorted(
        (row["syscall"], row["count"], row["total"]) for row in table["rows"])
    schema = ask_schema(kymo, store)
    assert all(row["about"] for row in schema)
    [busy] = [row["about"] for row in schema if (row["table"], row["column"]) == ("report_cpu_cpus", "busy")]
    assert busy.endswith(" In ns.")
    columns = {row["column"] for row in schema if row["table"] == "report_cpu_threads"}
    assert {"time", "end", "host", "process_tid", "process_comm", "usage_ppm"} <= columns


def report(kymo, *args):
    """The rows of each table: {"syscalls.threads": [...]}, and what else is said."""
    said = json.loads(kymo("report", "--json", "--limit", "0", *args).out)
    return {f"{one['name']}.{table['name']}": table["rows"] for one in said["reports"] for table in one["tables"]}, said


def check_reports_of_hosts(kymo, store, places, small, tmp_path, prepare=lambda: None):
    """@places load web-0, which has two traces, and db-1, which has one; @store has both, after @prepare."""
    names = ["syscalls", "sched", "cpu", "irq", "block"]
    halves = [tmp_path / "first", tmp_path / "second"]
    kymo("convert", "--end", "50%", "-o", halves[0], small)
    kymo("convert", "--begin", "50%", "-o", halves[1], small)
    loads = [argument for name in names for argument in ("--report", name)]
    load(kymo, places[0], "-t", "host", *loads, "--host", "web-0", *halves)
    load(kymo, places[1], "-t", "host", *loads, "--host", "db-1", small)
    prepare()
    alone, first, second = (report(kymo, ",".join(names), trace)[0] for trace in (small, *halves))
    fleet, said = report(kymo, ",".join(names), "--fleet", store)
    assert (said["hosts"], said["stored_traces"], said["traces"]) == (2, 3, [])
    assert any("several traces" in note for one in said["reports"] for note in one["notes"])

    # Of one trace, the figures are those of the report.
    for name in ("syscalls.syscalls", "syscalls.freq", "sched.total", "sched.cpus", "cpu.cpus", "irq.irqs", "block.disks"):
        key = next(iter(alone[name][0]))
        theirs = {json.dumps([row[key], row.get("from"), row.get("op"), row.get("kind")]): row for row in alone[name]}
        ours = [row for row in fleet[name] if row["host"] == "db-1"]
        assert len(ours) == len(theirs), name
        for row in ours:
            other = theirs[json.dumps([row[key], row.get("from"), row.get("op"), row.get("kind")])]
            for column in set(row) - {"host"}:
                # The store has integers.
                wanted = other[column]
                if isinstance(wanted, (int, float)):
                    wanted = pytest.approx(wanted, abs=2e-6 if abs(wanted) < 1000 and "mean" in column else 1)
                assert row[column] == wanted, (name, column)

    # Of several ones, sums, maxima and means are made anew, and percentiles are not.
    calls = {row["syscall"]: row for row in fleet["syscalls.syscalls"] if row["host"] == "web-0"}
    others = {row["syscall"]: row for row in second["syscalls.syscalls"]}
    for row in first["syscalls.syscalls"]:
        ours, other = calls[row["syscall"]], others.get(row["syscall"])
        if not other:
            assert ours["p99"] == row["p99"]
            continue
        assert ours["count"] == row["count"] + other["count"] and ours["failed"] == row["failed"] + other["failed"]
        if row["count"] and other["count"]:
            assert (ours["max"], ours["min"]) == (max(row["max"], other["max"]), min(row["min"], other["min"]))
            assert ours["total"] == row["total"] + other["total"]
            assert ours["avg"] == pytest.approx(ours["total"] / ours["count"], abs=1)
            assert ours["p99"] is None
    [busy] = [row for row in fleet["cpu.cpus"] if (row["host"], row["cpu"]) == ("web-0", 1)]
    pair = [row for one in (first, second) for row in one["cpu.cpus"] if row["cpu"] == 1]
    assert busy["busy"] == sum(row["busy"] for row in pair)
    assert busy["usage"] == pytest.approx(sum(row["usage"] * (row["busy"] + row["idle"]) for row in pair) / sum(row["busy"] + row["idle"] for row in pair), rel=1e-3)
    tops = [row["duration"] for row in fleet["syscalls.top"]]
    assert tops == sorted(tops, reverse=True) and {row["host"] for row in fleet["syscalls.top"]} == {"web-0", "db-1"}

    merged, _ = report(kymo, "syscalls,cpu", "--merge-hosts", "--fleet", store)
    both = {row["syscall"]: row for row in merged["syscalls.syscalls"]}
    for name in ("syscalls.syscalls", "syscalls.threads"):
        assert sum(row["count"] for row in merged[name]) == sum(row["count"] for one in (alone, first, second) for row in one[name]) > 1000
    assert {row["hosts"] for row in both.values()} <= {1, 2} and both["read"]["hosts"] == 2
    assert all(row["process"]["tid"] is None for row in merged["cpu.threads"])

    def hosts(*args):
        return {row["host"] for row in report(kymo, "syscalls", "-t", "syscalls", "--fleet", store, *args)[0]["syscalls.syscalls"]}

    assert hosts("--hosts", "web-?") == {"web-0"} and hosts("--hosts", "!web*") == {"db-1"}
    assert report(kymo, "cpu", "--since", "1ns", "--fleet", store)[1]["stored_traces"] == 2
    assert hosts("--hosts", "*", "--hosts", "!*1", "--hosts", "db-1") == {"web-0", "db-1"} and hosts("--hosts", "*'\\%_[") == set()
    text = kymo("report", "syscalls", "--fleet", store, "-n", "2", "--sort", "count").out
    assert "2 hosts, 3 traces" in text and "Host " in text and "more rows" in text
    assert "no rows of report locks" in kymo("report", "locks", "--fleet", store, code=1).err
    assert "exclude each other" in kymo("report", "cpu", "--fleet", store, "--comm", "a", code=2).err


def check_parameters(kymo, store):
    """Values that want to be more than values; what stands in quotes or comments is no parameter."""
    values = {"a": "x' OR 1 = 1 --", "b": "\\' OR 1 --", "c": "-12", "d": "1.5", "n": "openat"}
    [row] = json.loads(kymo("query", "--json", "--fleet", store, *[f"-p{name}={value}" for name, value in values.items()],
                            "SELECT :a AS a, :b AS b, :c + 0 AS c, :d + 0 AS d, ':a' AS quoted, count(*) AS n /* :a ' */ FROM syscall "
                            "WHERE name = :n -- :b '").out)
    assert {name: row[name] for name in ("a", "b", "quoted")} == {"a": values["a"], "b": values["b"], "quoted": ":a"}
    assert (int(row["c"]), float(row["d"])) == (-12, 1.5) and int(row["n"]) > 0


def check_own_report(kymo, store, trace, tmp_path, n_hosts=1):
    """A user's own report has the same rows of a store as of the trace that it has, once for each host."""
    path = pathlib.Path(__file__).parents[2] / "examples" / "slow-calls.sql"
    for args in ((), ("--param", "least=100000", "--sort", "took"), ("-t", "programs")):
        of_trace, of_store = (report(kymo, path, *args, *where)[1]["reports"][0]["tables"] for where in ((trace,), ("--fleet", store)))
        assert [table["columns"] for table in of_store] == [table["columns"] for table in of_trace]
        if len(of_trace) == 2:
            rows = {str(row): 0 for row in of_trace[0]["rows"]}
            for row in of_store[0]["rows"]:
                rows[str(row)] += 1
            assert set(rows.values()) == {n_hosts} and len(rows) > 20
        assert [(row["comm"], row["calls"], row["total"]) for row in of_store[-1]["rows"]] == [
            (row["comm"], row["calls"] * n_hosts, row["total"] * n_hosts) for row in of_trace[-1]["rows"]]
    text = kymo("report", path, "--fleet", store, "-n", "1").out
    assert f"{n_hosts} host" in text and "Slow calls of each program" in text and "more rows: --limit 0 shows all" in text
    # A range, statements with texts that look like an end, a column's class by its name; and errors.
    own = tmp_path / "own.sql"
    own.write_text("-- title: Late; or not\nSELECT ';' AS a /* ; */;; -- ;\nSELECT host, duration, time FROM syscall WHERE time >= :begin ORDER BY time;\n",
                   encoding="ascii")
    whole, late = (report(kymo, own, "--fleet", store, *args)[1] for args in ((), ("--since", "500ms")))
    assert late["range"]["begin_ns"] == late["range"]["end_ns"] - 5 * 10**8 and late["range"]["end_ns"] == whole["range"]["end_ns"]
    [first, second] = late["reports"][0]["tables"]
    assert first["rows"] == [{"a": ";"}] and late["reports"][0]["summary"] == "Late; or not"
    assert [column["class"] for column in second["columns"]] == ["text", "duration", "timestamp"]
    assert second["rows"] == [row for row in whole["reports"][0]["tables"][1]["rows"] if row["time"] >= late["range"]["begin_ns"]] != []
    assert "--hosts and a report of your own" in kymo("report", own, "--fleet", store, "--hosts", "x", code=2).err
    assert "there are rows, rows2" in kymo("report", own, "--fleet", store, "-t", "x", code=2).err
    for text, error in (("SELECT x FROM syscall", "x"), ("-- column a kilo: x\nSELECT 1 AS a", "a class such as"), (" -- ", "has no SELECT")):
        own.write_text(text, encoding="ascii")
        assert error in kymo("report", own, "--fleet", store, code=None).err
    assert "needs the parameter :begin" in kymo("report", own, "--fleet", store, "--since", "1h", code=2).err


def check_hostile(kymo, store, tmp_path):
    """Names of hosts, events and fields that want to be statements."""
    evil = ["syscall", "kymo_batch", "ünï\u202e", "a\"); DROP TABLE host; --", "'); DROP TABLE host; --", "b\\'", "c`", "\\\");", "x\ty\nz"]
    log = tmp_path / "evil.json"
    lines = [json.dumps({"time": 1795000000 + i, "message": name, name: name, "event": name}) for i, name in enumerate(evil)]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name in evil:
        load(kymo, store, "--host", name, "-t", "log", "-t", "host", "-e", "*", "--with-texts", log)
    hosts = {row["host"] for row in ask(kymo, store, "SELECT host, count(*) AS n FROM host GROUP BY host")}
    assert set(evil) <= hosts
    messages = {row["message"] for row in ask(kymo, store, "SELECT DISTINCT message FROM log")}
    assert set(evil) <= messages


def check_types(kymo, store, tmp_path, wanted):
    """Fields of one name that have other types in other traces, and real numbers."""
    for i, values in enumerate((("x", 7, 0.5), (5, "y", 3), (2.5, 0.25, "z"))):
        log = tmp_path / f"types{i}.json"
        line = {"message": "m", **dict(zip("abc", values))}
        log.write_text("".join(json.dumps({"time": 1795000000 + n, **line}) + "\n" for n in range(5)), encoding="utf-8")
        load(kymo, store, "--host", f"h{i}", "-t", "host", "-e", "log*", "--with-texts", log)
    rows = ask(kymo, store, "SELECT host, max(a) AS a, max(b) AS b, max(c) AS c, count(*) AS n FROM log_2 GROUP BY host ORDER BY host")
    assert [(row["a"], row["b"], row["c"], int(row["n"])) for row in rows] == [(*row, 5) for row in wanted]


def check_hostile_fields(kymo, store, trace, events):
    """Names that want to be statements, are those of the store's own tables, or become the same word; 10,000 fields of one event."""
    first = load(kymo, store, "-t", "host", "-e", "*", "--with-texts", trace)
    assert first["rows"] == 3 * len(events) + 1
    assert load(kymo, store, "-t", "host", "-e", "*", "--with-texts", trace) == {"rows": 0, "batches": 0, "known_rows": first["rows"]}
    columns = {}
    for row in ask_schema(kymo, store):
        if not row["table"].startswith("kymo") and row["column"] not in ("trace", "batch"):
            columns.setdefault(row["table"], []).append(row["column"])
    assert len(columns) == len({name for name, _ in events}) + 1 - 1  # a table for each event but one (two have no name), and host
    for table in ("all_names", "many", "same", "event_kymo_batch", "event_report_syscalls_syscalls", "event_2", "syscall_2"):
        fields = [name for name in columns[table] if name not in ("time", "cpu", "host", "stream")]
        assert len(fields) > (1800 if table in ("many", "same") else 0)
        sums = ", ".join(f'sum("{name}") AS s{i}' for i, name in enumerate(fields[:100] + fields[-10:]))
        [row] = ask(kymo, store, f"SELECT {sums} FROM {table} WHERE host = '{hostile_names.HOST_SQL}'")
        assert {int(value) for value in row.values()} == {3}, table
    assert count(kymo, store, "kymo_batch") >= len(columns)


@pytest.fixture(scope="session")
def hostile(tmp_path_factory):
    path = tmp_path_factory.mktemp("hostile") / "trace"
    return path, hostile_names.make(path, hostile_names.HOST)


@pytest.fixture(scope="session")
def small(lttng_kernel):
    return lttng_kernel


def test_local_store(kymo, small, tmp_path):
    store = tmp_path / "fleet"
    check_once(kymo, store, small)
    assert (store / "fleet.db").stat().st_mode & 0o777 == 0o600
    # Statements can only read.
    for statement in ("DELETE FROM syscall", "DROP TABLE host", f"ATTACH '{tmp_path}/x.db' AS x", "PRAGMA journal_mode = DELETE"):
        assert kymo("query", "--fleet", store, statement, code=None).code != 0
    assert "cannot open" in kymo("query", "--fleet", tmp_path / "nothing", "SELECT 1", code=1).err
    check_texts(kymo, tmp_path / "texts", small)
    check_hostile(kymo, tmp_path / "hostile", tmp_path)
    check_parameters(kymo, store)
    check_own_report(kymo, store, small, tmp_path)
    check_reports(kymo, store, small)
    assert "no report" in kymo("fleet", "load", "--to", store, "--report", "nothing", small, code=2).err
    # All of it is old.
    load(kymo, store, "--keep", "1h", small)
    assert {table: count(kymo, store, table) for table in ALL_TABLES} == dict.fromkeys(ALL_TABLES, 0)


def test_store_with_a_damaged_list_of_columns(kymo, small, tmp_path):
    """It is no store without tables."""
    store = tmp_path / "fleet"
    load(kymo, store, "-t", "host", small)
    with sqlite3.connect(store / "fleet.db") as data_base:
        [[page]] = data_base.execute("SELECT rootpage FROM sqlite_master WHERE name = 'kymo_column'").fetchall()
        [[page_bytes]] = data_base.execute("PRAGMA page_size").fetchall()
    with open(store / "fleet.db", "r+b") as file:
        file.seek((page - 1) * page_bytes)
        file.write(b"\xff" * 100)
    said = kymo("query", "--fleet", store, "SELECT count(*) FROM host", code=1).err
    assert "the store cannot be read" in said and "fleet.db" in said


def test_stores_that_are_none(kymo, small, tmp_path):
    """SQLite would wait at a FIFO, and take the tables of other programs for ours."""
    pipe, other = tmp_path / "pipe", tmp_path / "other"
    pipe.mkdir()
    other.mkdir()
    os.mkfifo(pipe / "fleet.db")
    data_base = sqlite3.connect(other / "fleet.db")
    data_base.execute("CREATE TABLE host (a)")
    data_base.close()
    before = (other / "fleet.db").read_bytes()
    for store, why in ((pipe, "is not a regular file"), (other, "is another program's data base")):
        assert why in kymo("fleet", "load", "--to", store, small, code=1).err
    assert (other / "fleet.db").read_bytes() == before and os.listdir(other) == ["fleet.db"]
    for store, why in ((pipe, "is not a regular file"), (other, "is no store of Kymo")):
        assert why in kymo("query", "--fleet", store, "SELECT 1", code=1).err
        assert why in kymo("fleet", "why", "--from", store, code=1).err


def test_server_that_lies(kymo):
    """A row of more columns than there are names, and answers without an end, also where a line ends."""
    plain = "HTTP/1.1 200 OK\r\n\r\na\nString"
    chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\na\nString\n\r\n2\r\nx\n\r\n"
    answers = [plain + "\tString" * 500 + "\n" + "x\t" * 500 + "x\n", plain + "\nx\ty\n", plain + "\nx",
               "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\na\nString\nx\n", chunked, chunked + "2\r\n",
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n", "x" * 100000, "", chunked + "0\r\n\r\n"]

    class Liar(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(answers[0].encode())

        def log_message(self, *_args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Liar) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        while len(answers) > 1:
            done = kymo("query", "--fleet", f"http://127.0.0.1:{server.server_port}", "SELECT 1", code=1)
            assert re.search("columns instead of 1|is cut|not one of an HTTP server|broke", done.err), answers[0]
            answers.pop(0)
        assert kymo("query", "--csv", "--fleet", f"http://127.0.0.1:{server.server_port}", "SELECT 1").out == "a\nx\n"
        server.shutdown()


def test_killed_while_loading(kymo, kymo_bin, small, tmp_path):
    store = tmp_path / "fleet"
    dice = random.Random(7)
    for _ in range(8):
        one = subprocess.Popen([kymo_bin, "fleet", "load", "-e", "*", "--to", store, small], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        try:
            one.wait(dice.uniform(0, 0.3))
        except subprocess.TimeoutExpired:
            one.send_signal(signal.SIGKILL)
            one.wait()
    both = [subprocess.Popen([kymo_bin, "fleet", "load", "-e", "*", "--to", store, small], stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait(120) for one in both] == [0, 0]
    check_same(kymo, store, small)
    events = json.loads(kymo("query", "--json", small, "SELECT name, count(*) AS n FROM event WHERE name LIKE 's%' GROUP BY name").out)
    assert events and [count(kymo, store, row["name"]) for row in events] == [row["n"] for row in events]


def slower(trace, folder, times):
    """The same machine, where everything takes longer: its clock has fewer cycles in a second."""
    shutil.copytree(trace, folder)
    for metadata in folder.rglob("metadata"):
        text = metadata.read_bytes()
        # Its packets keep their sizes.
        metadata.write_bytes(re.sub(rb"freq = (\d+);", lambda m: (b"freq = %d" % (int(m[1]) // times)).ljust(len(m[0]) - 1) + b";", text))
    return folder


def check_why(kymo, store, small, tmp_path):
    sick = slower(small, tmp_path / f"sick-{len(str(store))}", 3)
    tables = ["-t", "syscall", "-t", "cpu_slice", "-t", "host"]
    for number in range(4):
        load(kymo, store, *tables, "--host", f"web-{number}", small)
    assert json.loads(kymo("fleet", "why", "--json", "--since", "100000h", "--from", store).out)["findings"] == []
    load(kymo, store, *tables, "--host", "db-1", sick)
    why = json.loads(kymo("fleet", "why", "--json", "--since", "1000000h", "--from", store).out)
    assert why["hosts"] == 5 and why["measures"] >= 2
    assert {row["name"] for row in why["findings"]} == {"db-1"}
    calls = [row for row in why["findings"] if row["measure"] == "latency of system calls"]
    assert len(calls) == 1 and 2.5 < calls[0]["value"] / calls[0]["usual"] < 3.5
    assert "db-1" in kymo("fleet", "why", "--since", "1000000h", "--from", store).out


def test_why_of_a_local_store(kymo, small, tmp_path):
    check_why(kymo, tmp_path / "fleet", small, tmp_path)


def test_hostile_fields(kymo, server, hostile, tmp_path):
    check_hostile_fields(kymo, tmp_path / "fleet", *hostile)
    check_hostile_fields(kymo, f"{server.url}/fields", *hostile)


def test_types_of_fields(kymo, server, tmp_path):
    check_types(kymo, tmp_path / "fleet", tmp_path, [("x", 7, 0.5), (5, "y", 3), (2.5, 0.25, "z")])
    # The first trace says which types the columns of a server have.
    check_types(kymo, f"{server.url}/types", tmp_path, [("x", 7, 0.5), ("5", None, 3), ("2.5", 0, None)])


def test_reports_of_hosts(kymo, small, tmp_path):
    store = tmp_path / "fleet"
    check_reports_of_hosts(kymo, store, (store, store), small, tmp_path)
    [row] = ask(kymo, store, "SELECT count(DISTINCT trace) AS n FROM report_cpu_cpus")
    assert row["n"] == 3
    # A load leaves one file, which may be copied.
    load(kymo, store, "-t", "host", small)
    assert os.listdir(store) == ["fleet.db"]
    for words in (("query", "--fleet", store, 'SELECT "traec" FROM report_cpu_cpus'), ("report", tmp_path / "own.sql", "--fleet", store)):
        (tmp_path / "own.sql").write_text(words[-1] if words[0] == "query" else 'SELECT "traec" FROM report_cpu_cpus', encoding="ascii")
        said = kymo(*words, code=2).err
        assert "no such column" in said and f"kymo query --schema --fleet {store} lists tables and columns" in said


def test_server(kymo, server, small, tmp_path):
    check_once(kymo, f"{server.url}/once", small)
    check_texts(kymo, f"{server.url}/texts", small)
    check_hostile(kymo, f"{server.url}/hostile", tmp_path)
    check_why(kymo, f"{server.url}/why", small, tmp_path)
    check_parameters(kymo, f"{server.url}/once")
    check_own_report(kymo, f"{server.url}/once", small, tmp_path)
    check_reports(kymo, f"{server.url}/once", small)
    load(kymo, f"{server.url}/once", "--keep", "1h", small)
    once = f"{server.url}/once"
    assert {table: count(kymo, once, table) for table in ALL_TABLES} == dict.fromkeys(ALL_TABLES, 0)
    wrong = f"http://nobody@127.0.0.1:{server.port}"
    assert "nobody" in kymo("query", "--fleet", wrong, "SELECT 1", code=1).err
    assert "Syntax error" in kymo("query", "--fleet", f"{server.url}/once", "SELEC 1", code=1).err
    for place in ("http://", "http://a:b:c/d", "http://localhost/a'b", "http://localhost:99x"):
        assert kymo("query", "--fleet", place, "SELECT 1", code=None).code != 0


def test_tables_of_before(kymo, server, small):
    """A load into tables with other types: those of an earlier Kymo."""
    store = server.url + "/before"
    kymo("fleet", "load", "--to", store, "-t", "loss", small)
    kymo("query", "--fleet", store, "CREATE TABLE syscall (trace LowCardinality(String), batch Int64, time Int64, end Nullable(Int64), "
         "duration Nullable(Int64), name Nullable(String), tid Nullable(Int64), host LowCardinality(String)) "
         "ENGINE = MergeTree PARTITION BY toYYYYMMDD(toDateTime(intDiv(time, 1000000000))) ORDER BY (host, time)")
    check_once(kymo, store, small)
    types = {row["column"]: row["type"] for row in ask_schema(kymo, store) if row["table"] == "syscall"}
    assert (types["tid"], types["name"], types["pid"]) == ("Nullable(Int64)", "Nullable(String)", "Nullable(Int32)")


def test_tls_and_users(kymo, server, small, tmp_path, monkeypatch):
    """Certificates are checked, by authority and name; a password is never in a command line, nor in a file that others can read."""
    store, key = f"https://localhost:{server.tls_port}/tls", tmp_path / "key"

    def refused(place=store):
        return kymo("query", "--fleet", place, "SELECT 1", code=None)

    def write(text):
        key.write_text(text, encoding="utf-8")
        key.chmod(0o600)

    assert "not trusted" in refused().err
    monkeypatch.setenv("KYMO_FLEET_CA", str(server.folder / "ca.pem"))
    assert load(kymo, store, "-t", "syscall", small)["rows"] > 1000
    assert count(kymo, store, "syscall") == count(kymo, f"https://127.0.0.1:{server.tls_port}/tls", "syscall") > 1000
    assert "not trusted: IP address mismatch" in refused(f"https://127.0.0.2:{server.tls_port}").err
    # The server reads the begin of TLS as a line of HTTP, and refuses it or waits for its end: that depends on random bytes.
    said = refused(f"https://localhost:{server.port}").err
    assert re.search("does not (speak|answer in) TLS", said) and f"is port {server.port} the server's https_port?" in said
    assert refused(f"http://localhost:{server.tls_port}").code == 1
    monkeypatch.delenv("KYMO_FLEET_CA")
    # One file for several servers.
    monkeypatch.setenv("KYMO_FLEET_KEY", str(key))
    write(f"# ours\nserver elsewhere\nuser x\npassword y\nserver localhost:{server.tls_port}\nuser kymo\npassword se:cr%t\n"
          f"ca {server.folder}/ca.pem\n")
    assert count(kymo, store, "syscall") > 1000
    assert "default" in refused(server.url).err
    key.chmod(0o640)
    done = refused()
    assert done.code == 2 and "other users can read" in done.err and "chmod 600" in done.err
    write("pasword x\n")
    assert f"{key}:1: the line makes no sense" in refused().err
    write("password wrong\nuser kymo\n")
    assert refused(server.url).code == 1
    monkeypatch.setenv("KYMO_FLEET_PASSWORD", "se:cr%t")
    assert refused(f"{server.url}/tls").code == 0
    done = refused("http://kymo:secret@localhost")
    assert done.code == 2 and "others would see it" in done.err and "secret" not in done.err


def test_server_killed_while_loading(kymo, kymo_bin, server, small):
    url, dice = f"{server.url}/killed", random.Random(5)
    for _ in range(2):
        one = subprocess.Popen([kymo_bin, "fleet", "load", "--to", url, small], stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
        time.sleep(dice.uniform(0, 0.4))
        server.kill()
        assert one.wait(60) in (0, 1)
        server.start()
    load(kymo, url, small)
    check_same(kymo, url, small)


def distribute(kymo, server, own, every):
    kymo("query", "--fleet", f"{server.url}/default", f"CREATE DATABASE {every}")
    for row in ask(kymo, f"{server.url}/{own}", "SHOW TABLES"):
        kymo("query", "--fleet", f"{server.url}/{own}",
             f"CREATE TABLE {every}.{row['name']} AS {own}.{row['name']} ENGINE = Distributed(fleet, {own}, {row['name']})")


def test_two_shards(kymo, server, small, tmp_path):
    """As docs/fleet.md has it: each server has its own rows, and both answer for all."""
    ports = free_ports(6)
    pair = []
    for number in (0, 1):
        folder = tmp_path / f"shard-{number}"
        folder.mkdir()
        pair.append(Server(server.program, folder, ports[number * 3:number * 3 + 3], (ports[2], ports[5])))
    try:
        for one in pair:
            one.start()
        for number, one in enumerate(pair):
            load(kymo, f"{one.url}/fleet", "--host", f"web-{number}", small)
        places = [f"{one.url}/reports" for one in pair]
        check_reports_of_hosts(kymo, f"{pair[0].url}/all_reports", places, small, tmp_path,
                               lambda: distribute(kymo, pair[0], "reports", "all_reports"))
        for one in pair:
            distribute(kymo, one, "fleet", "all_hosts")
        n = count(kymo, f"{pair[0].url}/fleet", "syscall")
        for one in pair:
            question = "SELECT host, count(*) AS n, sum(duration) AS ns FROM syscall GROUP BY host ORDER BY host"
            rows = ask(kymo, f"{one.url}/all_hosts", question)
            assert [(row["host"], int(row["n"])) for row in rows] == [("web-0", n), ("web-1", n)]
            assert rows[0]["ns"] == rows[1]["ns"]
            assert json.loads(kymo("fleet", "why", "--json", "--since", "100000h", "--from", f"{one.url}/all_hosts").out)["hosts"] == 2
        check_own_report(kymo, f"{pair[1].url}/all_hosts", small, tmp_path, n_hosts=2)
    finally:
        for one in pair:
            if one.process:
                one.kill()


def test_chunks_of_one_recording(kymo, record, tmp_path):
    """Chunks have one identity, and are loaded one by one."""
    record("--rotate-every", "1s", "-k", "sched_switch", output=tmp_path / "rotated", command=("sleep", "2"))
    chunks = [*(tmp_path / "rotated" / "archives").iterdir(), tmp_path / "rotated" / "kernel"]
    assert len(chunks) > 1
    for again in (False, True):
        for chunk in chunks:
            loaded = load(kymo, tmp_path / "fleet", "-t", "cpu_slice", chunk)
            rows = json.loads(kymo("query", "--json", chunk, "SELECT count(*) AS n FROM cpu_slice").out)[0]["n"]
            assert loaded["known_rows" if again else "rows"] == rows


# Events that a busy machine has few of, and who makes some.
FEW = "syscall:execve,syscall:wait4,sched_process_*"
WORK = "while ! read -t 0.1 line; do date; done"


def wait_for(what, said=None, seconds=200):
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, said
        time.sleep(0.1)


def wait_said(relay, words):
    wait_for(lambda: any(words in line for line in relay.said), relay.said)


def slices(kymo, store):
    """The ends of the slices that are in the store."""
    done = kymo("query", "--json", "--fleet", store, "SELECT n_rows FROM kymo_batch WHERE of = 'kymo_slice_done'", code=None)
    return [int(row["n_rows"]) for row in json.loads(done.out)] if done.code == 0 else []


def check_growing(kymo, store, trace, whole):
    wait_for(lambda: max(slices(kymo, store), default=0) == 2 ** 63 - 1)
    assert whole or len(slices(kymo, store)) > 1
    check_same(kymo, store, trace, False)
    for table in ("cpu_state", "thread", "counter"):
        [there] = json.loads(kymo("query", "--json", trace, f"SELECT count(*) AS n FROM {table}").out)
        assert count(kymo, store, table) == there["n"], table
    loaded = load(kymo, store, trace)
    assert loaded["rows"] == 0 and loaded["known_rows"] > 10


@pytest.mark.usefixtures("loopback", "needs_root_tracefs")
def test_relay_fills_a_server(kymo, kymo_bin, server, tmp_path):
    """While a recording arrives, the server is killed, and then the relay: in the end each row is there once."""
    store = f"{server.url}/relay"
    with relays.relays(kymo_bin, tmp_path / "relay", "--clickhouse", store) as begin:
        relay = begin()
        with subprocess.Popen([kymo_bin, "record", "-k", FEW, "-o", relay.address("web"), "--", "bash", "-c", WORK],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as recorder:
            wait_for(lambda: slices(kymo, store), relay.said)
            server.kill()
            relay.kill()
            relay.begin()
            wait_said(relay, "does not answer")
            server.start()
            wait_said(relay, "answers again")
            recorder.communicate(b"\n", timeout=200)
        check_growing(kymo, store, relay.trace("web"), False)


@pytest.mark.usefixtures("loopback", "needs_root_tracefs")
def test_relay_fills_a_directory(kymo, kymo_bin, tmp_path):
    """Chunks of a rotated recording are loaded one by one; a loader that is killed begins again."""
    store = tmp_path / "fleet"
    with relays.relays(kymo_bin, tmp_path / "relay", "--clickhouse", store) as begin:
        relay = begin()
        children = f"/proc/{relay.process.pid}/task/{relay.process.pid}/children"
        wait_for(lambda: pathlib.Path(children).read_text(encoding="ascii"))
        loader = int(pathlib.Path(children).read_text(encoding="ascii"))
        kymo("record", "-k", FEW, "-o", relay.address("web"), "--rotate-every", "1s", "--", "sh", "-c", "sleep 1; date; sleep 1.2; date")
        os.kill(loader, signal.SIGKILL)
        trace = relay.trace("web")
        chunks = [*(os.path.join(trace, "archives", name) for name in os.listdir(f"{trace}/archives")), f"{trace}/kernel"]
        rows = [json.loads(kymo("query", "--json", chunk, "SELECT count(*) AS n FROM syscall").out)[0]["n"] for chunk in chunks]
        wait_for(lambda: slices(kymo, store).count(2 ** 63 - 1) == len(chunks), relay.said)
        assert count(kymo, store, "syscall") == sum(rows) > 0
        wait_said(relay, "starts again")
        # The relay's address is another way to the same recording.
        there = [json.loads(kymo("query", "--json", place, "SELECT count(*) AS n FROM syscall").out)[0]["n"] for place in (relay.address("web"), trace)]
        for place in (relay.address("web"), trace):
            loaded = load(kymo, tmp_path / "address", "-t", "syscall", place)
            assert loaded["rows"] + loaded["known_rows"] == there[0] == there[1] >= sum(rows)
        assert loaded["rows"] == 0
    # Reports come with the last slice.
    for _ in range(2):
        kymo("fleet", "follow", "--once", "--to", tmp_path / "reports", "--report", "syscalls", tmp_path / "relay")
        rows = report(kymo, "syscalls", "-t", "syscalls", "--fleet", tmp_path / "reports")[0]["syscalls.syscalls"]
        alone = [report(kymo, "syscalls", "-t", "syscalls", chunk)[0]["syscalls.syscalls"] for chunk in chunks]
        assert sum(row["count"] for row in rows) == sum(row["count"] for one in alone for row in one) > 0
