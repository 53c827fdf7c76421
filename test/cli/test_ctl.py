# SPDX-License-Identifier: MIT
"""kymo ctl: a recording changes while it runs.

Programs run in a box of their own, as in test_user.py.
"""

import json
import os
import platform
import re
import subprocess

import pytest

from test_user import KYMO, box, events, names, nothing_left, pytestmark  # noqa: F401 (a fixture)

CTL = """
ready() { [ "$(kymo sessions | grep -c ' for ')" = ${1:-1} ]; }
joined() { ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1; }
recorded() { ls out/ust/pid/*/metadata >/dev/null 2>&1; }
begin() { kymo record "$@" & recorder=$!; wait_for ready; }
land() { kymo ctl --stop || exit 95; wait $recorder || exit 97; }
"""


@pytest.fixture
def ctl(box):  # noqa: F811
    """Runs a script, after which nothing may be left."""
    return lambda script: box(CTL + script + nothing_left())


AS_NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"


def count(path):
    found = {}
    for name in names(path):
        found[name] = found.get(name, 0) + 1
    return found


def numbers(lines):
    return [int(re.search("i = ([0-9]+)", line).group(1)) for line in lines]


def test_events_come_and_go(ctl):
    """In one trace, of programs that run and of programs that start; nothing is lost."""
    done = ctl("""
$T/modes numbers 1000000 200 & a=$!
begin --user 'modes:number' -o out
wait_for joined
sleeps $a 200
kymo ctl --enable-event 'modes:other' || exit 96
$T/modes numbers 10 0
sleeps $a 200
kymo ctl --disable-event 'modes:*' || exit 96
sleeps $a 50
$T/modes numbers 10 0
kymo ctl --enable-event 'modes:other' || exit 96
sleeps $a 50
kymo sessions
kill $a
land
""")
    short, long = sorted((count(trace) for trace in done.traces()), key=lambda c: sum(c.values()))
    assert short == {"modes:number": 10, "modes:other": 10}
    assert long["modes:other"] > 100 and long["modes:number"] > 200
    assert "--user modes:other" in done.out and "--user modes:number" not in done.out
    assert "; 0 lost." in done.err
    found = events([t for t in done.traces() if len(events(t)) > 20][0])
    kinds = re.sub("n+", "n", re.sub("(no)+", "b", "".join(
        "n" if "modes:number" in line else "o" for line in found)))
    assert re.fullmatch("nbn?o+", kinds), kinds[:100]


def test_filters_and_levels(ctl):
    done = ctl("""
begin --user 'shop:depth' -o out
kymo ctl --enable-event 'shop:order_placed' --filter 'total_cents > 1000' || exit 96
kymo ctl --enable-event 'shop:*' --loglevel WARNING.. || exit 96
$T/shop 1
kymo ctl --disable-event 'shop:*' -e 'shop:order_placed' --filter 'total_cents < 1000' || exit 96
$T/shop 1
land
""")
    kinds = sorted(sorted(set(names(trace))) for trace in done.traces())
    assert ["shop:depth", "shop:forms", "shop:order_placed"] in kinds
    assert all("total_cents = 1" in line for trace in done.traces() for line in events(trace)
               if "order_placed" in line and len(events(trace)) > 2)


def test_mistakes_change_nothing(ctl):
    done = ctl("""
$T/shop 1000000 1000 & a=$!
begin --user 'shop:depth' -o out
kymo ctl && exit 94
kymo ctl --disable-event x --filter x && exit 94
kymo ctl --enable-event shop && exit 94
kymo ctl --enable-event 'shop:* if depth > 1' && exit 94
kymo record --user 'shop:* if depth > 1' -o none && exit 94
kymo ctl --enable-event 'shop:*' --filter 'nonsense >' && exit 94
kymo ctl --enable-event 'shop:order_placed' --filter 'no_such > 1' && exit 94
kymo ctl --enable-event 'shop:*' --loglevel LOUD && exit 94
kymo ctl --disable-kernel 'sched_switch' && exit 94
kymo ctl nobody --stop && exit 94
wait_for recorded
kill $a
land
""")
    assert set(names(done.traces()[0])) == {"shop:depth"}
    for message in ("say what is to be changed", "'shop:*' matches all events of a provider", "no_such",
                    "option of its own for 'depth > 1': filter", "'LOUD' is not a log level", "does not record the kernel",
                    "no recording 'nobody' is running", "--filter and --loglevel need --enable-event"):
        assert message in done.err, message


def test_one_of_several(ctl):
    done = ctl("""
for name in a b; do kymo record --user 'modes:number' -o $name & done
wait_for 'ready 2'
kymo ctl --stop && exit 96
kymo ctl b --enable-event 'modes:other' || exit 96
$T/modes numbers 10 0
kymo ctl a --stop
wait_for ready
kymo ctl --stop
wait
""")
    assert "name one of" in done.err
    assert set(names(done.traces("a")[0])) == {"modes:number"}
    assert set(names(done.traces("b")[0])) == {"modes:number", "modes:other"}


def test_changes_while_programs_start(ctl):
    """Whoever starts at the moment of a change has the new rules in the end, and the end."""
    done = ctl("""
begin --user 'modes:other' -o out
for i in $(seq 30); do $T/modes numbers 100000 1000 & done
for i in $(seq 10); do
    kymo ctl --enable-event 'modes:number' || exit 96
    kymo ctl --disable-event 'modes:number' || exit 96
done
kymo ctl --disable-event '*' --enable-event 'modes:number' || exit 96
wait_for '[ $(ls out/ust/pid/*/metadata | wc -l) = 30 ]'
for program in $(jobs -p | grep -v "^$recorder$"); do sleeps $program 100; done
kill $(jobs -p | grep -v "^$recorder$")
land
""")
    assert len(done.traces()) == 30
    for trace in done.traces():
        tail = names(trace)[-20:]
        assert set(tail) == {"modes:number"}, tail


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks at the registers of system calls")
@pytest.mark.parametrize("change, found", [
    ("kymo ctl --disable-event '*' --enable-event 'modes:number'", {"modes:number"}),
    ("kill -TERM $recorder; wait $recorder", None),
    ("kill -KILL $recorder; wait $recorder", None),
])
def test_changes_between_reading_and_joining(box, change, found):
    """A program is stopped when it has read the rules, before anybody can see that it has; then they change."""
    done = box(CTL + f"""
begin --user 'modes:other' -o out
$T/hold session $T/modes numbers 200 1000 >held & holder=$!
wait_for '[ -s held ]'
{change}
kill -CONT $(head -n 1 held)
wait $holder || exit 96
{"land" if found else "! ls /dev/shm/kymo-0/*/*.ring 2>/dev/null || exit 94"}
""")
    if found:
        assert len(done.traces()) == 1, done.err + done.out
        (trace,) = done.traces()
        assert set(names(trace)) == found and len(names(trace)) == 200


def test_flight_recorder_changes(ctl):
    done = ctl("""
$T/modes numbers 1000000 200 & a=$!
begin --overwrite --user 'modes:number' -o out
wait_for joined
sleeps $a 50
kymo ctl --disable-event '*' --enable-event 'modes:other' || exit 96
sleeps $a 50
kymo snapshot -o snap || exit 95
kill $a
land
""")
    assert set(names(done.traces("snap")[0])) == {"modes:number", "modes:other"}
    assert names(done.traces("snap")[0])[-1] == "modes:other"


def gap(path):
    """The longest time between two events of a trace, in seconds, and the names of all."""
    done = subprocess.run(["babeltrace2", "--clock-seconds", path], capture_output=True, text=True, check=True)
    times = [float(line[1:line.index("]")]) for line in done.stdout.splitlines() if "modes:" in line]
    return max(b - a for a, b in zip(times, times[1:])), done.stderr


def test_pause(ctl):
    """Programs that run and programs that start record nothing, lose nothing, and go on in the same trace."""
    done = ctl("""
$T/modes numbers 1000000 200 & a=$!
begin --user 'modes:*' -o out
wait_for joined
sleeps $a 50
kymo ctl --pause || exit 96
kymo ctl --pause && exit 94
kymo ctl --status | grep 'paused now, ' || exit 93
$T/modes numbers 10 0
sleeps $a 2000
kymo ctl --resume || exit 92
kymo ctl --resume && exit 94
sleeps $a 50
$T/modes numbers 20 0
kymo sessions
kill $a
land
""")
    short, long = sorted((names(trace) for trace in done.traces()), key=len)
    assert short == ["modes:number"] * 20 + ["modes:other"] * 20 or len(short) == 40
    assert len(done.traces()) == 2
    longest, said = gap([t for t in done.traces() if len(names(t)) == len(long)][0])
    assert longest > 2000 * 0.0002 and "discarded" not in said
    assert " in 1 pause" in done.out and "; 0 lost." in done.err
    assert "the recording is paused already" in done.err and "the recording is not paused" in done.err
    assert re.search("paused for .* in 1 pause", done.err)


def test_changes_in_a_pause(ctl):
    """They take effect when the recording resumes; it may also end in a pause."""
    done = ctl("""
$T/modes numbers 1000000 200 & a=$!
begin --user 'modes:number' -o out
wait_for joined
sleeps $a 50
kymo ctl --pause --disable-event '*' --enable-event 'modes:other' || exit 96
sleeps $a 100
kymo ctl --resume || exit 95
sleeps $a 50
kymo ctl --pause || exit 94
sleeps $a 50
kill $a
land
""")
    (trace,) = done.traces()
    kinds = re.sub("n+", "n", re.sub("o+", "o", "".join("n" if n == "modes:number" else "o" for n in names(trace))))
    assert kinds == "no"


def test_processes_are_chosen(ctl):
    """Programs join and leave while they run; what they recorded stays."""
    done = ctl("""
for name in a b c; do $T/modes numbers 1000000 200 & eval "$name=\\$!"; done
begin --user 'modes:number' --pid $a -o out
wait_for joined
sleeps $a 20
kymo ctl --remove-pid $a && exit 94
kymo ctl --add-pid 999999 && exit 94
kymo ctl --add-pid $b || exit 96
sleeps $b 50
wait_for '[ $(ls /dev/shm/kymo-0/*/*.ring | wc -l) = 2 ]'
kymo ctl --remove-pid $a || exit 95
sleeps $a 500
kymo ctl --status --json >status.json
kill $a $b $c
land
echo $a $b
""")
    a, b = done.out.splitlines()[-1].split()
    by_pid = {re.search("-([0-9]+)", os.path.basename(t)).group(1): names(t) for t in done.traces()}
    assert set(by_pid) == {a, b}, by_pid.keys()
    with open(os.path.join(done.cwd, "status.json"), encoding="utf-8") as file:
        status = json.load(file)
    listed = {one["pid"]: one for one in status["program_list"]}
    assert set(listed) == {int(a), int(b)} and listed[int(b)]["events"] > 50 and listed[int(b)]["name"] == "modes"
    assert listed[int(a)]["ended"] and listed[int(a)]["events"] == len(by_pid[a]) and not listed[int(b)]["ended"]
    assert "would have no programs left" in done.err and "there is no process 999999" in done.err
    assert "; 0 lost." in done.err


def test_users_are_chosen(ctl):
    """A recording of one user's programs takes another user's, and then leaves the first one's."""
    done = ctl(f"""
chmod 755 .
$T/modes numbers 1000000 200 & a=$!
{AS_NOBODY} $T/modes numbers 1000000 200 & b=$!
begin --user 'modes:number' --uid 0 -o out
wait_for joined
sleeps $a 20
kymo ctl --add-uid nobody || exit 96
wait_for 'ls /dev/shm/kymo-65534/*/*.ring >/dev/null 2>&1'
kymo ctl --remove-uid root || exit 95
sleeps $a 50
sleeps $b 300
kymo ctl --status --json >status.json
sleeps $a 300
kymo ctl --status --json >later.json
kill $a $b
land
""")
    counts = []
    for name in ("status.json", "later.json"):
        with open(os.path.join(done.cwd, name), encoding="utf-8") as file:
            counts.append({one["pid"]: one["events"] for one in json.load(file)["program_list"]})
    grown = {pid: counts[1][pid] - counts[0][pid] for pid in counts[0]}
    assert len(grown) == 2 and sorted(grown.values())[0] == 0 and sorted(grown.values())[1] > 100, grown


def test_clear(ctl):
    """The present trace goes, and the recording goes on in a new one."""
    done = ctl("""
$T/modes numbers 1000000 200 & a=$!
begin --user 'modes:number' -o out
wait_for joined
sleeps $a 100
kymo ctl --clear || exit 96
ls out
sleeps $a 50
kill $a; wait $a
land
""")
    (trace,) = done.traces()
    first = numbers(events(trace))[0]
    assert first > 90
    assert "; 0 lost." in done.err and "were cleared" in done.err
    assert not os.path.exists(os.path.join(done.cwd, "out", "archives"))
    recorded = int(re.search("Recorded ([0-9]+) events", done.err).group(1))
    assert recorded == len(events(trace, dump=True))


def test_flight_recorder_is_cleared(ctl):
    """Exactly the events after it are in the snapshot, also in a sub-buffer that has older ones."""
    done = ctl("""
begin --overwrite --user 'modes:*' -o out
$T/modes numbers 10 0
$T/modes numbers 1000000 5000 & a=$!
wait_for '[ $(ls /dev/shm/kymo-0/*/*.ring | wc -l) = 2 ]'
sleeps $a 50
kill -STOP $a
kymo snapshot -o before || exit 96
kymo ctl --clear || exit 95
kymo snapshot -o empty && exit 94
kill -CONT $a
sleeps $a 20
kymo snapshot -o after || exit 93
kill $a; wait $a
land
""")
    assert len(done.traces("before")) == 2 and len(done.traces("after")) == 1
    long = max((events(t) for t in done.traces("before")), key=len)
    before, after = numbers(long), numbers(events(done.traces("after")[0]))
    assert after[0] in (before[-1], before[-1] + 1) and len(after) > 20
    assert after == sorted(after)


def test_kernel(ctl):
    done = ctl("""
begin --comm modes --kernel 'syscall_entry_getppid,syscall_exit_getppid' -o out
kymo ctl --disable-kernel 'syscall_exit_*' || exit 96
kymo ctl --enable-kernel 'no_such_event' && exit 94
$T/modes steps 100
kymo ctl --enable-kernel 'syscall_exit_getppid' --disable-kernel 'syscall_entry_getppid' || exit 96
$T/modes steps 200
land
""")
    shown = subprocess.run([KYMO, "print", os.path.join(done.cwd, "out")], capture_output=True,
                           text=True, check=True).stdout
    assert 100 <= shown.count("entry_getppid") < 200 and shown.count("exit_getppid") >= 200
    assert "this kernel has no event 'no_such_event'" in done.err


SILENT = """
import glob, socket, time
clients = []
for i in range(40):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.connect(glob.glob("/dev/shm/kymo-recordings-0/*")[0])
    clients.append(client)
print("connected", flush=True)
time.sleep(1000)
"""


def test_clients_that_say_nothing(ctl):
    """More of them than the recorder keeps: other clients are served at once all the same."""
    done = ctl(f"""
begin --overwrite --user 'modes:*' -o out
$T/modes numbers 10 0
/usr/bin/python3 -c '{SILENT}' >connected & silent=$!
wait_for '[ -s connected ]'
timeout 60 kymo sessions || exit 96
timeout 60 kymo ctl --enable-event 'shop:*' || exit 94
timeout 60 kymo snapshot -o snapshot || exit 93
[ $(ls /proc/$recorder/fd | wc -l) -lt 60 ] || exit 92
timeout 60 kymo ctl --stop || exit 91
wait $recorder || exit 90
kill $silent
""")
    assert "flight recorder" in done.out
    assert len(done.traces("snapshot")) == 1


def test_silent_clients_are_dropped(box):
    """Their descriptors are the recorder's again."""
    box(CTL + f"""
begin --user 'modes:*' -o out
before=$(ls /proc/$recorder/fd | wc -l)
/usr/bin/python3 -c '{SILENT}' >connected & silent=$!
wait_for '[ -s connected ]'
wait_for '[ $(ls /proc/$recorder/fd | wc -l) -gt $((before + 20)) ]'
wait_for '[ $(ls /proc/$recorder/fd | wc -l) -lt $((before + 5)) ]'
land
kill $silent
""")


def test_recorder_that_is_stopped(box):
    """Nobody waits for it for ever, and the message says what is the matter."""
    done = box(CTL + """
begin --user 'modes:*' -o out
kill -STOP $recorder
timeout 100 kymo sessions || exit 96
timeout 100 kymo sessions --json || exit 96
timeout 100 kymo ctl --stop; [ $? = 1 ] || exit 94
kill -CONT $recorder
land
""")
    assert "does not answer within" in done.out and '"error": "does not answer"' in done.out
    assert "1 of your recordings did not answer" in done.err


def test_rules_are_listed_with_their_conditions(box):
    done = box(CTL + """
begin --user 'modes:*' --filter 'i > 3' --exclude 'modes:other' -o out
kymo ctl --enable-event 'shop:*' --filter 'items > 100' --loglevel warning
kymo sessions
kymo sessions --json >list.json
land
""")
    for line in ("--user modes:*", "--filter i > 3", "--exclude modes:other", "--filter items > 100",
                 "--loglevel warning"):
        assert line in done.out.lower(), done.out
    with open(os.path.join(done.cwd, "list.json"), encoding="utf-8") as file:
        (one,) = json.load(file)["recordings"]
    first, second = one["user_rules"]
    assert first == {"pattern": "modes:*", "filter": ["i > 3"], "exclude": ["modes:other"]}
    assert second["pattern"] == "shop:*" and second["filter"] == ["items > 100"] and second["loglevel"]


def test_events_that_no_program_has(box):
    done = box(CTL + """
$T/modes numbers 1000000 200 & a=$!
begin --user 'modes:other' -o out
wait_for joined
kymo ctl --enable-event 'nosuch:*' || exit 96
kymo ctl --enable-event 'modes:num*' || exit 96
kill $a
land
""")
    assert "no running program has an event that matches 'nosuch:*'" in done.err
    assert "modes:num" not in done.err


def test_root_reaches_other_users_recordings(ctl):
    """But its own come first: nobody else makes them ambiguous. Other users see only their own."""
    done = ctl(f"""
mkdir -m 777 theirs && chmod 755 . && cd theirs
{AS_NOBODY} kymo record --overwrite --user 'modes:*' -o out & recorder=$!
wait_for ready
kymo sessions
kymo ctl --disable-event '*' --enable-event 'modes:number' || exit 96
{AS_NOBODY} $T/modes numbers 10 0
kymo snapshot || exit 95
stat -c '%U' out-snapshot-1
cd ..
kymo record --overwrite --user 'modes:*' -o out & own=$!
wait_for 'ready 2'
kymo snapshot -o own && exit 94
kymo ctl --stop || exit 93
wait $own || exit 92
(cd theirs; {AS_NOBODY} kymo sessions) | grep -c ' for '
cd theirs
land
""")
    assert "flight recorder of nobody, for " in done.out
    assert done.out.splitlines()[-2:] == ["nobody", "1"]
    assert "no events were recorded yet" in done.err


def test_what_others_put_among_sockets(box):
    """Root neither hangs nor removes anything where another user's directory leads somewhere else."""
    done = box(CTL + f"""
mkdir precious && {AS_NOBODY} true
/usr/bin/python3 - <<'PY'
import os, socket
socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind("precious/dead")
PY
place=/dev/shm/kymo-recordings-65534
{AS_NOBODY} sh -c "mkdir -m 700 $place; ln -s $PWD/precious /dev/shm/kymo-recordings-65533"
{AS_NOBODY} /usr/bin/python3 - $place <<'PY' & liar=$!
import os, socket, sys, time
for i in range(50):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.bind(f"{{sys.argv[1]}}/{{i}}")
    s.listen(1)
    globals()[f"s{{i}}"] = s
socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).bind(f"{{sys.argv[1]}}/dead")
os.symlink("/run/systemd/notify", f"{{sys.argv[1]}}/link")
open("/dev/shm/lies", "w").close()
time.sleep(1000)
PY
wait_for '[ -e /dev/shm/lies ]'
timeout 60 kymo sessions || exit 96
timeout 60 kymo ctl --stop 0; [ $? = 1 ] || exit 95
[ -S precious/dead ] && [ -S $place/dead ] || exit 94
kymo record --user 'modes:number' -o out & recorder=$!
wait_for 'kymo sessions | grep -q out'
land
kill $liar
""")
    assert "does not answer" in done.out
