# SPDX-License-Identifier: MIT
"""Policies of kymo daemon: members of a group record the kernel without being root, and get the trace, and nothing more."""

import array
import glob
import json
import os
import re
import resource
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time

import pytest

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

# Numbers that no user and no group here has.
ALICE, BOB, GROUP, OTHER_GROUP = 51234, 51235, 61234, 61235
KERNEL = "kernel=sched_switch\nstatedump=none\nbuffer-size=64k\n"


class User:
    """A user without rights, whose effective group is its own."""

    def __init__(self, here, uid, *groups):
        self.here, self.uid = here, uid
        self.dir = os.path.join(here.top, f"home-{uid}-{len(os.listdir(here.top))}")
        os.mkdir(self.dir, 0o700)
        os.chown(self.dir, uid, uid)
        self.command = ["setpriv", f"--reuid={uid}", f"--regid={uid}",
                        f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"]

    def begin(self, *args):
        return subprocess.Popen([*self.command, self.here.bin, *map(str, args)], cwd=self.dir, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env=dict(os.environ, KYMO_DAEMON_SOCKET=self.here.socket, HOME=self.dir, LC_ALL="C.UTF-8"))

    def __call__(self, *args, code=0):
        process = self.begin(*args)
        out, err = process.communicate(timeout=120)
        assert process.returncode == code, (args, process.returncode, out, err)
        return out + err

    def sessions(self):
        return [one for one in json.loads(self("sessions", "--json"))["recordings"] if "policy" in one]

    def wait(self, condition):
        end = time.monotonic() + 60
        while not condition(self.sessions()):
            assert time.monotonic() < end, (self.sessions(), self.here.said())
            time.sleep(0.1)


class Daemon:
    def __init__(self, kymo_bin, top):
        self.top, self.profiles, self.output = top, os.path.join(top, "profiles"), os.path.join(top, "out")
        self.socket, self.bin = os.path.join(top, "run", "daemon"), os.path.join(top, "kymo")
        self.name = f"p{os.getpid()}"
        shutil.copy(kymo_bin, self.bin)
        os.chmod(self.bin, 0o755)
        os.mkdir(self.profiles)
        self.process = None

    def policy(self, text=KERNEL, name=None, group=GROUP, mode=0o644):
        path = os.path.join(self.profiles, f"{name or self.name}.policy")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text + f"group={group}\n")
        os.chmod(path, mode)

    def begin(self):
        self.log = open(os.path.join(self.top, "log"), "a+", encoding="utf-8")
        self.process = subprocess.Popen([self.bin, "daemon", "--profiles", self.profiles, "--output", self.output, "--socket",
                                         self.socket], stderr=self.log, umask=0o077)
        end = time.monotonic() + 30
        while socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET).connect_ex(self.socket):
            assert time.monotonic() < end and self.process.poll() is None, self.said()
            time.sleep(0.05)

    def end(self):
        self.process.terminate()
        assert self.process.wait(timeout=60) == 0

    def said(self):
        with open(os.path.join(self.top, "log"), encoding="utf-8") as file:
            return file.read()

    def kept(self):
        return glob.glob(f"{self.output}/.policies/*/*")

    def wait_until_nothing_is_kept(self):
        """The daemon removes a recording after its user has it."""
        end = time.monotonic() + 60
        while kept := self.kept():
            assert time.monotonic() < end, kept
            time.sleep(0.05)

    def connect(self, user):
        """A connection whose other end is @user's, for messages of the test's own."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        code = ("import os,socket,sys,array\n"
                "s=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
                "s.connect(sys.argv[1])\n"
                "socket.socket(fileno=int(sys.argv[2])).sendmsg([b'x'],[(socket.SOL_SOCKET,socket.SCM_RIGHTS,"
                "array.array('i',[s.fileno()]))])\n")
        with ours, theirs:
            subprocess.run([*user.command, "/usr/bin/python3", "-c", code, self.socket, str(theirs.fileno())], check=True,
                           pass_fds=[theirs.fileno()])
            _, found, _, _ = ours.recvmsg(1, socket.CMSG_SPACE(4))
        made = socket.socket(fileno=array.array("i", found[0][2])[0])
        made.settimeout(60)
        return made


@pytest.fixture
def here(kymo_bin):
    top = tempfile.mkdtemp(prefix="kymo-policies-", dir="/var/tmp")
    os.chmod(top, 0o755)
    one = Daemon(kymo_bin, top)
    yield one
    if one.process and one.process.poll() is None:
        one.process.terminate()
        try:
            one.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            one.process.kill()
    shutil.rmtree(top)


def check_trace(kymo, user, path, least=1):
    """It is this user's alone, and whole. Returns the number of events."""
    for place, dirs, files in os.walk(path):
        for name in [place, *(os.path.join(place, each) for each in dirs + files)]:
            state = os.lstat(name)
            assert state.st_uid == user.uid and not stat.S_IMODE(state.st_mode) & 0o077, name
            assert stat.S_ISDIR(state.st_mode) or stat.S_ISREG(state.st_mode)
    counted = json.loads(kymo("info", "--json", "--count", path).out)
    assert counted["events"] >= least
    return counted["events"]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as text:
        return sum(map(int, text.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def message(*words):
    return b"".join(word.encode() + b"\0" for word in words)


def words(data):
    return data.decode().split("\0")[:-1]


def test_member_of_a_supplementary_group(kymo, here):
    """Records in the foreground; the trace is the user's alone, and the daemon keeps nothing."""
    here.policy()
    here.begin()
    alice = User(here, ALICE, 3, GROUP)
    said = alice("record", "--policy", here.name, "-d", "300ms", "-o", "mine")
    assert re.search(r"Recorded \d+ events", said) and "Trace: mine\n" in said and here.output not in said
    # The counts of the CPUs are a part of the summary.
    assert re.search(r"^ +0 +\d+ +\d+$", said, re.M), said
    check_trace(kymo, alice, os.path.join(alice.dir, "mine"))
    peer = subprocess.run(["babeltrace2", os.path.join(alice.dir, "mine")], capture_output=True, text=True, check=True)
    assert "sched_switch" in peer.stdout
    end = time.monotonic() + 30
    while here.kept():
        assert time.monotonic() < end
        time.sleep(0.05)
    shown = alice("sessions", "--policies")
    assert re.search(f"{here.name} +up to 10min, 1.0 GiB", shown) and "--kernel=sched_switch" in shown
    policy, = json.loads(alice("sessions", "--policies", "--json"))["policies"]
    assert policy["name"] == here.name and policy["max_duration_ns"] == 600 * 10**9 and policy["max_bytes"] == 1 << 30
    assert policy["own_processes"] is False and "--kernel=sched_switch" in policy["options"]
    # The group can also be the effective one.
    bob = User(here, BOB)
    bob.command[2] = f"--regid={GROUP}"
    bob("record", "--policy", here.name, "-d", "100ms", "-o", "mine")
    # Samples have their symbols, as in a recording of root's: the user could not read them from the kernel.
    here.policy("sample=cpu-clock:99Hz\n", name="samples")
    # An idle machine has no samples of the kernel.
    with subprocess.Popen(["dd", "if=/dev/zero", "of=/dev/null", "bs=64k"], stderr=subprocess.DEVNULL) as busy:
        alice("record", "--policy", "samples", "-d", "500ms", "-o", "samples")
        busy.kill()
    assert check_trace(kymo, alice, os.path.join(alice.dir, "samples"))
    with open(os.path.join(alice.dir, "samples", "symbols", "kallsyms"), encoding="utf-8") as text:
        assert " T " in text.read()


def test_others_are_refused(here):
    """Users outside of the group of this policy, or of all; the answer does not say whether the policy exists."""
    here.policy()
    here.policy(name="others", group=OTHER_GROUP)
    here.begin()
    bob, carol = User(here, BOB), User(here, BOB, OTHER_GROUP)
    for name in (here.name, "nothing", "../x", "x/y", ".", "..", "", "x" * 5000):
        said = bob("record", "--policy", name, "-d", "100ms", "-o", "mine", code=1)
        assert "there is no policy" in said and "none of your groups has a policy" in said
        assert not os.path.exists(os.path.join(bob.dir, "mine"))
    said = carol("record", "--policy", here.name, "-d", "100ms", code=1)
    assert f"there is no policy '{here.name}' for you" in said and "yours are: others" in said
    assert "No policy is for you." in bob("sessions", "--policies")
    here.wait_until_nothing_is_kept()


def test_what_a_user_can_choose(here):
    """A shorter time and the own processes, and nothing else."""
    here.policy(KERNEL + "max-duration=2s\nduration=200ms\n")
    here.policy(KERNEL + "pid=1\n", name="chosen")
    here.begin()
    alice = User(here, ALICE, GROUP)
    for options in (["-k", "irq"], ["--name", "x"], ["--overwrite"], ["--on-rotate", "id"], ["--shm-path", "/tmp"],
                    ["--uid", "0"], ["--", "id"]):
        assert "policy" in alice("record", "--policy", here.name, *options, code=2)
    assert "the policy allows at most 2s" in alice("record", "--policy", here.name, "-d", "3s", code=1)
    assert "it cannot record only yours" in alice("record", "--policy", "chosen", "--uid", ALICE, code=1)
    begin = time.monotonic()
    assert " in 2" in alice("record", "--policy", here.name, "-o", "short")
    assert time.monotonic() - begin < 60
    assert len(os.listdir(alice.dir)) == 1


def test_own_processes(kymo, here):
    """Of a policy with own-processes, a user gets no other user's calls, and no list of processes."""
    here.policy("kernel=syscall:openat\nbuffer-size=64k\nown-processes\n")
    here.begin()
    alice = User(here, ALICE, GROUP)
    recorder = alice.begin("record", "--policy", here.name, "-d", "30s", "-o", "mine")
    alice.wait(lambda found: found and found[0].get("events") is not None)
    subprocess.run([*alice.command, "cat", "/etc/hostname", "/etc/hosts"], check=False, capture_output=True)
    subprocess.run([*User(here, BOB).command, "cat", "/etc/hostname"], check=False, capture_output=True)
    recorder.send_signal(signal.SIGINT)
    said = recorder.communicate(timeout=60)[1]
    assert recorder.returncode == 0, said
    lines = kymo("convert", "--to", "json", os.path.join(alice.dir, "mine")).out.splitlines()
    names = {json.loads(line)["event"] for line in lines}
    assert names == {"syscall_entry_openat", "syscall_exit_openat"}, names
    assert "/etc/hosts" not in said


def test_background(kymo, here):
    """begun, seen, stopped, fetched; or ended by itself, and fetched after a new start of the daemon."""
    here.policy(KERNEL + "max-recordings=2\n")
    here.begin()
    alice, bob = User(here, ALICE, GROUP), User(here, BOB, GROUP)
    said = alice("record", "--policy", here.name, "--background")
    name, = re.findall(r"kymo stop (\S+)", said)
    assert name == f"{here.name}-{ALICE}-1"
    alice.wait(lambda found: found and found[0].get("events", 0) > 0)
    one, = alice.sessions()
    assert one["name"] == name and one["policy"] == here.name and one["kernel"] == ["sched_switch"]
    assert name in alice("sessions") and name in alice("sessions", "--names").split()
    assert "which only root can change" in alice("ctl", name, "--pause", code=1)
    # It is not Bob's.
    assert not bob.sessions()
    for command in ("stop", "snapshot"):
        assert "no" in bob(command, name, code=1)
    said = alice("stop", name)
    assert f"Trace: {name}\n" in said
    check_trace(kymo, alice, os.path.join(alice.dir, name))
    here.wait_until_nothing_is_kept()
    alice("record", "--policy", here.name, "--background", "-d", "100ms")
    alice.wait(lambda found: found and found[0].get("has_ended"))
    assert f"{name} has ended; it waits for 'kymo stop {name}'" in alice("sessions")
    here.end()
    here.begin()
    assert [one["name"] for one in alice.sessions()] == [name]
    alice("stop", "-o", "later", here.name)
    check_trace(kymo, alice, os.path.join(alice.dir, "later"))
    here.wait_until_nothing_is_kept()
    assert "you have no recording" in alice("stop", "-o", "x", name, code=1)


def test_snapshots(kymo, here):
    here.policy(KERNEL + "overwrite\n")
    here.begin()
    alice = User(here, ALICE, GROUP)
    alice("record", "--policy", here.name, "--background")
    alice.wait(lambda found: found and found[0].get("events") is not None)
    time.sleep(0.3)
    said = alice("snapshot", here.name)
    snapshot = os.path.join(alice.dir, f"{here.name}-{ALICE}-1-snapshot")
    assert f"Trace: {os.path.basename(snapshot)}\n" in said
    check_trace(kymo, alice, snapshot)
    assert "not empty" in alice("snapshot", here.name, code=1)
    alice("snapshot", "-o", "second")
    check_trace(kymo, alice, os.path.join(alice.dir, "second"))
    alice("stop", "-o", "last")
    check_trace(kymo, alice, os.path.join(alice.dir, "last"))
    here.wait_until_nothing_is_kept()


def test_snapshot_is_of_the_users_own_recorder(kymo, here):
    """Another user's recorder may have the same name, or say so: nobody asks it."""
    here.policy(KERNEL + "overwrite\n")
    here.begin()
    alice, bob = User(here, ALICE, GROUP), User(here, BOB)
    alice("record", "--policy", here.name, "--background")
    alice.wait(lambda found: found and found[0].get("events") is not None)
    name = f"{here.name}-{ALICE}-1"
    other = bob.begin("record", "--overwrite", "--name", name, "-o", "other", "--user", "none:*")
    try:
        end = time.monotonic() + 60
        while sum(one.get("name") == name for one in json.loads(kymo("sessions", "--json").out)["recordings"]) < 2:
            assert time.monotonic() < end and other.poll() is None
            time.sleep(0.1)
        # It would hold up a client.
        other.send_signal(signal.SIGSTOP)
        alice("snapshot", "-o", "mine", here.name)
        check_trace(kymo, alice, os.path.join(alice.dir, "mine"))
        assert "no flight recorder" in kymo("snapshot", "--recorder", other.pid, code=1).err
    finally:
        other.send_signal(signal.SIGCONT)
        other.terminate()
        other.communicate(timeout=60)
    alice("stop", "-o", "last")


def test_limits(here):
    """Of recordings of one user, and of a recording's size."""
    here.policy("kernel=*\nstatedump=none\nmax-size=2M\nmax-recordings=2\n")
    here.begin()
    alice, bob = User(here, ALICE, GROUP), User(here, BOB, GROUP)
    for _ in range(2):
        alice("record", "--policy", here.name, "--background")
    said = alice("record", "--policy", here.name, "--background", code=1)
    assert f"you have 2 recordings of the policy '{here.name}' already" in said and "kymo stop" in said
    bob("record", "--policy", here.name, "--background")
    alice.wait(lambda found: len(found) == 2 and all(one.get("has_ended") for one in found))
    assert len(here.kept()) == 3
    for one in here.kept():
        size = sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(one) for name in names)
        assert size < 500 << 20


def test_links_of_the_caller(here):
    """What the user puts in the way leads nowhere: the user's own process writes the trace."""
    here.policy()
    here.begin()
    alice = User(here, ALICE, GROUP)
    target = os.path.join(here.top, "target")
    os.mkdir(target, 0o700)
    os.symlink(target, os.path.join(alice.dir, "mine"))
    alice("record", "--policy", here.name, "-d", "50ms", "-o", "mine", code=1)
    os.symlink("/etc", os.path.join(alice.dir, "kernel"))
    alice("record", "--policy", here.name, "-d", "50ms", "-o", ".", code=1)
    assert not os.listdir(target) and not glob.glob("/etc/channel*")
    # No user can enter the daemon's directories.
    for place, dirs, files in os.walk(here.output):
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
        for name in dirs + files:
            state = os.lstat(os.path.join(place, name))
            assert state.st_uid == 0 and not stat.S_IMODE(state.st_mode) & 0o077


def test_killed_callers(here):
    """The recording of a caller that is killed ends, and can be fetched; one that has not begun goes."""
    here.policy()
    here.begin()
    alice = User(here, ALICE, GROUP)
    recorder = alice.begin("record", "--policy", here.name, "-o", "mine")
    alice.wait(lambda found: found and found[0].get("events") is not None)
    recorder.kill()
    recorder.wait()
    alice.wait(lambda found: found and found[0].get("has_ended"))
    # Killed while it fetches: the next one gets everything.
    with here.connect(alice) as client:
        client.send(message("stop", here.name))
        assert words(client.recv(65536))[0] == "ok"
        client.send(message("next"))
        assert words(client.recv(65536))[0] == "file"
        with here.connect(alice) as second:
            second.send(message("stop", here.name))
            assert "another process fetches" in words(second.recv(65536))[1]
    alice("stop", "-o", "later")
    with here.connect(alice) as client:
        client.send(message("record", here.name, "", "", ""))
    end = time.monotonic() + 60
    while here.kept():
        found = alice.sessions()
        if found and found[0].get("has_ended"):
            alice("stop", "-o", "last")
        assert time.monotonic() < end
        time.sleep(0.1)


def test_hostile_clients(here):
    """Nonsense, silence and too many connections cost only the user that makes them."""
    here.policy()
    here.begin()
    alice, bob = User(here, ALICE, GROUP), User(here, BOB, GROUP)
    silent = [here.connect(bob) for _ in range(8)]
    # One more is one too many, of this user.
    with here.connect(bob) as more:
        assert more.recv(100) == b""
    for nonsense in (b"x", b"\0" * 65536, message("record"), message("record", here.name, "-1"), message("stop", "/etc/passwd"),
                     message("record", here.name, "99999999999999999999999"), message("status", "x"), message("next"),
                     message("done"), message("record", "../../etc/passwd"), message(*["x"] * 4000)):
        with here.connect(alice) as client:
            client.send(nonsense)
            answer = words(client.recv(65536) or b"error\0")
            assert answer[0] == "error", (nonsense, answer)
    with here.connect(alice) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        client.send(b"x" * 100000)
        assert client.recv(100) == b""
    with here.connect(alice) as client:
        with open("/dev/null") as null:
            client.sendmsg([message("sessions")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [null.fileno()] * 100))])
        assert words(client.recv(65536)) == ["ok"]
    # A fetch cannot end before its files have been asked for.
    alice("record", "--policy", here.name, "--background", "-d", "50ms")
    alice.wait(lambda found: found and found[0].get("has_ended"))
    with here.connect(alice) as client:
        client.send(message("stop", ""))
        client.recv(65536)
        client.send(message("done"))
        assert client.recv(100) == b""
    alice("stop", "-o", "mine")
    # Silent clients lose their place.
    for client in silent:
        assert client.recv(100) == b""
        client.close()
    bob("record", "--policy", here.name, "-d", "50ms", "-o", "mine")


def test_policies_with_mistakes(here):
    """They are for nobody; the daemon's log has the reason, the user does not."""
    here.policy(name="open", mode=0o666)
    here.policy(KERNEL + "output=/etc/x\n", name="output")
    here.policy(KERNEL + "own-processes\npid=1\n", name="both")
    here.policy(name="strangers", group="no-such-group")
    here.policy(KERNEL + "max-duration=never\n", name="never")
    here.policy("kernel=no_such_event\n", name="wrong")
    here.policy()
    here.begin()
    alice = User(here, ALICE, GROUP)
    for name, reason in (("open", "can be written by other users"), ("output", "a policy cannot have 'output'"),
                         ("both", "does not go with"), ("strangers", "there is no group"), ("never", "no value of")):
        said = alice("record", "--policy", name, "-d", "50ms", code=1)
        assert "there is no policy" in said and reason not in said
        assert reason in here.said()
    assert "no_such_event" in alice("record", "--policy", "wrong", "-d", "50ms", code=1)
    here.wait_until_nothing_is_kept()
    alice("record", "--policy", here.name, "-d", "50ms", "-o", "mine")


def test_end_of_the_daemon(kymo, here):
    """Recordings end with complete traces, which wait for the next daemon."""
    here.policy()
    here.begin()
    alice = User(here, ALICE, GROUP)
    alice("record", "--policy", here.name, "--background")
    alice.wait(lambda found: found and found[0].get("events") is not None)
    here.end()
    assert not os.path.exists(here.socket)
    assert "no recording" in alice("stop", here.name, code=1)
    here.begin()
    alice("stop", "-o", "mine", here.name)
    check_trace(kymo, alice, os.path.join(alice.dir, "mine"), 0)


def test_no_daemon(here):
    os.makedirs(os.path.dirname(here.socket))
    alice = User(here, ALICE, GROUP)
    said = alice("record", "--policy", "x", code=1)
    assert "no kymo daemon takes requests on this machine" in said and "/etc/kymo" in said
    # A socket of another user is no daemon.
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as forged:
        bob = User(here, BOB)
        os.chown(os.path.dirname(here.socket), BOB, BOB)
        code = ("import socket,sys,time\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\ns.bind(sys.argv[1])\n"
                "import os\nos.chmod(sys.argv[1],0o666)\ns.listen()\nprint('on',flush=True)\ntime.sleep(60)\n")
        server = subprocess.Popen([*bob.command, "/usr/bin/python3", "-c", code, here.socket], stdout=subprocess.PIPE, text=True)
        server.stdout.readline()
        assert "belongs to another user than root" in alice("record", "--policy", "x", code=1)
        server.kill()
        server.communicate()
        del forged


def test_no_descriptors(here):
    """A daemon without a descriptor does not turn in circles; users wait for it."""
    here.policy()
    here.begin()
    alice = User(here, ALICE, GROUP)
    pid = here.process.pid
    _, most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    used = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (next(i for i in range(len(used) + 1) if i not in used), most))
    waits = alice.begin("sessions", "--policies", "--json")
    before = cpu_seconds(pid)
    time.sleep(2)
    assert cpu_seconds(pid) - before < 0.1
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (most, most))
    out, err = waits.communicate(timeout=60)
    assert waits.returncode == 0 and here.name in out, (out, err)
    here.end()
