# SPDX-License-Identifier: MIT
"""kymo latency --listen: the real Prometheus scrapes it, promtool checks it, others get nothing out of it."""

import json
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse
import urllib.request

import pytest

from test_latency import Load, needs_bpf  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("needs_bpf", "loopback")

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture
def listen(kymo_bin):
    running = []

    def begin(*args):
        process = subprocess.Popen([kymo_bin, "latency", "--listen", "127.0.0.1:0", "--every", "100ms", *map(str, args)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running.append(process)
        line = process.stderr.readline()
        url = re.fullmatch(r"kymo: metrics at (http://127.0.0.1:\d+/metrics)\n", line)
        assert url, line + process.stderr.read()
        assert process.stderr.readline().startswith("kymo: measuring")
        return url[1]
    yield begin
    for process in running:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, "")
        assert not out


def get(url, **headers):
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.headers["Content-Type"], answer.read().decode()


def samples(text):
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line and line[0] != "#"}


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.05)
    return found


def test_promtool(listen):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    url = listen("--by", "process", "--layers", "syscall,wakeup,softirq")
    wait_for(lambda: "kymo_latency_seconds_bucket" in get(url)[1])
    kind, text = get(url)
    assert kind.startswith("text/plain; version=0.0.4")
    done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done


def test_counts_and_buckets(listen):
    load = Load("import os\nfor _ in range(1000): os.getppid()")
    url = listen("--pid", load.pid, "--layers", "syscall", "--syscalls", "getppid")
    load.go()
    labels = 'layer="syscall",name="getppid"'
    found = wait_for(lambda: (all_ := samples(get(url)[1])).get(f"kymo_latency_seconds_count{{{labels}}}") == 1000 and all_)
    assert 0 < found[f"kymo_latency_seconds_sum{{{labels}}}"] < 10
    buckets = [(float(match[1]), n) for name, n in found.items()
               if (match := re.fullmatch(rf'kymo_latency_seconds_bucket{{{labels},le="([^"]*)"}}', name))]
    assert buckets == sorted(buckets) and [n for _, n in buckets] == sorted(n for _, n in buckets)
    assert buckets[-1] == (float("inf"), 1000)
    # Below each bound is a power of two.
    assert all((round(le * 1e9) + 1).bit_count() == 1 for le, _ in buckets[:-1])


@pytest.fixture
def prometheus(tmp_path):
    """prometheus(url, *args) -> query(text) of a Prometheus that scrapes url."""
    binary = shutil.which("prometheus")
    if not binary:
        pytest.skip("prometheus is not installed")
    running = []

    def begin(url, *args):
        (tmp_path / "config.yml").write_text(
            "global: {scrape_interval: 200ms, scrape_timeout: 200ms}\nscrape_configs:\n"
            f"- job_name: kymo\n  static_configs: [{{targets: ['{urllib.parse.urlsplit(url).netloc}']}}]\n")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with open(tmp_path / "log", "w", encoding="utf-8") as log:
            server = subprocess.Popen([binary, f"--config.file={tmp_path}/config.yml", f"--storage.tsdb.path={tmp_path}/data",
                                       f"--web.listen-address=127.0.0.1:{port}", *args], stdout=log, stderr=log)
        running.append(server)

        def query(text):
            try:
                answer = get(f"http://127.0.0.1:{port}/api/v1/query?query={urllib.parse.quote(text)}")[1]
            except OSError:
                assert server.poll() is None, (tmp_path / "log").read_text()
                return None
            return json.loads(answer)["data"]["result"]
        return query

    yield begin
    for server in running:
        server.kill()
        server.wait()


def test_prometheus_scrapes_it(listen, prometheus):
    url = listen("--track", "s: syscall:clock_nanosleep -> syscall:clock_nanosleep", "--over", "1h", "--layers", "syscall,wakeup")
    assert get(url, Accept=OPEN_METRICS)[1].endswith("# EOF\n")
    query = prometheus(url)
    found = wait_for(lambda: query('kymo_latency_seconds_count{layer="syscall",name="read"}'), 120)
    assert float(found[0]["value"][1]) > 0
    assert query("up")[0]["value"][1] == "1"
    assert wait_for(lambda: query('histogram_quantile(0.99, rate(kymo_latency_seconds_bucket{layer="wakeup"}[5s]))'))
    assert query("kymo_latency_tracker_open")
    assert not query("kymo_latency_lost_total{what='requests'} > 0")


def test_prometheus_scrapes_native_histograms(listen, prometheus):
    load = Load("import os, time\nfor _ in range(1000): os.getppid()\nfor i in range(40): time.sleep(0.001 + 0.0005 * (i % 4))")
    url = listen("--pid", load.pid, "--layers", "syscall", "--syscalls", "getppid,clock_nanosleep", "--track",
                 "s: syscall:clock_nanosleep -> syscall:clock_nanosleep", "--over", "1h")
    query = prometheus(url, "--enable-feature=native-histograms")
    load.go()
    series = 'kymo_latency_seconds{layer="syscall",name="%s"}'
    of = {name: wait_for(lambda name=name, n=n: [one for one in query(f"histogram_count({series % name})") or () if
                                                 float(one["value"][1]) == n], 120)
          for name, n in {"getppid": 1000, "clock_nanosleep": 40}.items()}
    assert of["getppid"][0]["metric"]["job"] == "kymo"
    # Native: there are no series of buckets, and quantiles are within a bucket of ours and a bucket of theirs.
    assert not query("kymo_latency_seconds_bucket")
    with_text = samples(get(url)[1])
    assert float(query(f"histogram_sum({series % 'clock_nanosleep'})")[0]["value"][1]) == pytest.approx(
        with_text['kymo_latency_seconds_sum{layer="syscall",name="clock_nanosleep"}'])
    assert float(query(f"histogram_quantile(0.01, {series % 'clock_nanosleep'})")[0]["value"][1]) > 0.001 / 1.2
    for name in of:
        longest = with_text[f'kymo_latency_longest_seconds{{layer="syscall",name="{name}"}}']
        highest = float(query(f"histogram_quantile(1, {series % name})")[0]["value"][1])
        assert longest / 1.2 < highest < longest * 1.2, name
    assert query("kymo_latency_tracker_open")[0]["metric"]["tracker"] == "s"
    assert len(query("kymo_latency_lost_total")) == 4
    assert query("up")[0]["value"][1] == "1"


def test_hostile_names_stay_labels(listen):
    load = Load("import ctypes, os\nctypes.CDLL(None).prctl(15, b'a\"} 1\\n\\\\\\x1b\\xff')\nfor _ in range(50): os.getppid()\n"
                "sys.stdin.readline()")
    url = listen("--by", "process", "--layers", "syscall", "--syscalls", "getppid", "--pid", load.pid)
    load.process.stdin.write("\n")
    load.process.stdin.flush()
    found = wait_for(lambda: [line for line in get(url)[1].splitlines() if "seconds_count" in line and "getppid" in line])
    assert found == ['kymo_latency_seconds_count{layer="syscall",name="getppid",'
                     f'owner="a\\"}} 1\\\\x0a\\\\\\\\x1b\\\\xff {load.pid}",owner_id="{load.pid}"}} 50']
    load.go()


def exchange(url, data):
    host, port = urllib.parse.urlsplit(url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while more := client.recv(65536):
            answer += more
        return answer


def test_wrong_requests(listen):
    url = listen("--layers", "wakeup")
    host = b"Host: 127.0.0.1\r\n"
    for request, status in {b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n": b"403",
                            b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n": b"403",
                            b"GET /metrics HTTP/1.1\r\n\r\n": b"403",
                            b"POST /metrics HTTP/1.1\r\n" + host + b"\r\n": b"405",
                            b"GET /metricsx HTTP/1.1\r\n" + host + b"\r\n": b"404",
                            b"GET / HTTP/1.1\r\n" + host + b"\r\n": b"404",
                            b"GET /\0 HTTP/1.1\r\n" + host + b"\r\n": b"400",
                            b"x" * 8191: b"431"}.items():
        assert exchange(url, request).startswith(b"HTTP/1.1 " + status), request[:60]
    assert exchange(url, b"GET /met") == b""
    # Silent clients keep nobody out for good: each has its time.
    netloc = urllib.parse.urlsplit(url).netloc.split(":")
    silent = [socket.create_connection((netloc[0], int(netloc[1]))) for _ in range(40)]
    assert exchange(url, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").startswith(b"HTTP/1.1 200")
    for one in silent:
        one.close()


def test_wrong_addresses(kymo):
    for address in ("0.0.0.0:9435", "example.com:80", "127.0.0.1", "127.0.0.1:70000", "[::]:1"):
        done = kymo("latency", "--listen", address, code=2)
        assert "--listen needs 127.0.0.1:PORT" in done.err
