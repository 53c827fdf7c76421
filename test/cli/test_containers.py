# SPDX-License-Identifier: MIT
"""Containers: found by the names that runtimes give to control groups, and recorded; a real one of lxc's, too."""

import glob
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import actors
from actors import steps, wait_until
from control_groups import hierarchies, remove_groups

ID = {letter: letter * 64 for letter in "0123456789abcdef"}
UID = 54329
UNKNOWN_UID = 54331

# The group that a runtime makes -> name, runtime, and id of the container that it is; None: it is of none.
GROUPS = {
    f"system.slice/docker-{ID['1']}.scope": (None, "docker", ID["1"]),
    f"docker/{ID['2']}": (None, "docker", ID["2"]),
    f"user.slice/user-{UID}.slice/user@{UID}.service/app.slice/docker-{ID['3']}.scope": (None, "docker", ID["3"]),
    f"machine.slice/libpod-{ID['4']}.scope": (None, "podman", ID["4"]),
    f"machine.slice/libpod-conmon-{ID['4']}.scope": None,
    f"system.slice/web.service/libpod-payload-{ID['e']}": (None, "podman", ID["e"]),
    f"libpod_parent/{ID['0']}": None,
    f"libpod_parent/{ID['0']}/libpod-{ID['5']}": (None, "podman", ID["5"]),
    f"user.slice/user-{UID}.slice/user@{UID}.service/user.slice/libpod-{ID['6']}.scope": (None, "podman", ID["6"]),
    f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1_2.slice/cri-containerd-{ID['7']}.scope":
        (None, "containerd", ID["7"]),
    f"kubepods/burstable/pod1-2/{ID['8']}": (None, "kubernetes", ID["8"]),
    f"system.slice/containerd.service/kubepods-pod1_3.slice:cri-containerd:{ID['9']}":
        (None, "containerd", ID["9"]),
    f"kubepods.slice/kubepods-pod1_4.slice/crio-{ID['a']}.scope": (None, "cri-o", ID["a"]),
    f"kubepods.slice/kubepods-pod1_4.slice/crio-conmon-{ID['a']}.scope": None,
    f"default/{ID['b']}": (None, "container", ID["b"]),
    # Of a user who may name the group as he likes: the id is the system's.
    f"user.slice/user-{UNKNOWN_UID}.slice/user@{UNKNOWN_UID}.service/docker-{ID['1']}.scope": (None, "docker", ID["1"]),
    "lxc.payload.box": ("box", "lxc", None),
    "lxc.monitor.box": None,
    "lxc/old-box": ("old-box", "lxc", None),
    "lxc.payload.box/lxc.payload.inner": ("inner", "lxc", None),
    r"machine.slice/machine-my\x2dbox.scope": ("my-box", "systemd", None),
    r"machine.slice/systemd-nspawn@the\x2dother-one.service/payload": ("the-other-one", "systemd", None),
    r"machine.slice/machine-qemu\x2d1\x2dvirtual.scope": None,
    "machine.slice/systemd-nspawn@the\\x2dother-one.service/supervisor": None,
    f"system.slice/not-one-{ID['c'][1:]}.scope": None,
    f"system.slice/{ID['c']}.service": None,
    f"system.slice/x{ID['d']}": None,
}


def places():
    """Where control groups can be made, and where they are as on another machine."""
    seen_at = {"pids": ["pids"], "unified": ["unified", "."], ".": ["."]}
    return [(at, place) for at in hierarchies() for place in seen_at[at]]


@pytest.fixture(params=places() or [None], ids=str)
def groups(request):
    """A directory for control groups, which is all that kymo_there() sees of them."""
    if not request.param or os.geteuid() != 0:
        pytest.skip("needs control groups that can be made")
    top = tempfile.mkdtemp(prefix="kymo-test-", dir=f"/sys/fs/cgroup/{request.param[0]}")
    yield top
    remove_groups(top)


@pytest.fixture
def kymo_there(groups, request, kymo_bin, tmp_path):
    """kymo where no other groups are there."""
    place = request.node.callspec.params["groups"][1]
    (tmp_path / f"sys/fs/cgroup/{place}").mkdir(parents=True, exist_ok=True)
    script = """
        mount --bind "$1" "$0/sys/fs/cgroup/$2" && shift 2 || exit 99
        mount --rbind "$0/sys/fs/cgroup" /sys/fs/cgroup || exit 99
        exec "$@" """
    there = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, tmp_path, groups, place]
    if subprocess.run([*there, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        pytest.skip("needs mounts of its own")

    def call(*args, code=0):
        done = subprocess.run([*there, kymo_bin, *args], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == code, done
        return done

    call.root = os.path.normpath(f"/sys/fs/cgroup/{place}")
    return call


def test_names(groups, kymo_there, tmp_path):
    for group in GROUPS:
        os.makedirs(f"{groups}/{group}")
    sleepers = [subprocess.Popen(["sleep", "1000"]) for _ in range(3)]
    try:
        for sleeper, below in zip(sleepers, ("", "lxc.payload.inner", "lxc.payload.inner")):
            with open(f"{groups}/lxc.payload.box/{below}/cgroup.procs", "w", encoding="ascii") as file:
                file.write(str(sleeper.pid))
        listed = json.loads(kymo_there("list", "--containers", "--json").stdout)["containers"]
        text = kymo_there("list", "--containers").stdout
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    mine = {os.path.relpath(one["cgroup"], kymo_there.root): one for one in listed}
    assert {group: (one["name"], one["runtime"], one["id"]) for group, one in mine.items()} == {
        group: one for group, one in GROUPS.items() if one}
    assert {group: one["processes"] for group, one in mine.items() if one["processes"]} == {
        "lxc.payload.box": 3, "lxc.payload.box/lxc.payload.inner": 2}
    assert f"{'7' * 12}  containerd  0 processes\n" in text
    assert "box  lxc  3 processes\n" in text

    def refusal(*names):
        options = [text for name in names for text in ("--container", name)]
        return kymo_there("record", "-d", "1ms", "-o", tmp_path / "out", *options, code=1).stderr

    # The id is another's, too, but a user's group is no match for the system's.
    assert "no container 'nobody' runs; " in refusal("1" * 12, "nobody")
    for name in ("eb", "111", "1" * 65, "2222222g", "", "lxc"):
        assert f"no container '{name[:64]}' runs; these do: (" in refusal("my-box", name)
    assert not (tmp_path / "out").exists()


def test_none(kymo_there, tmp_path):
    assert kymo_there("list", "--containers").stdout == "No container is running.\n"
    done = kymo_there("record", "-o", tmp_path / "out", "--container", "web", code=1)
    assert "no container 'web' is running, and no other container" in done.stderr


def test_twins(groups, kymo_there, tmp_path):
    """Two of the system's with one id: which one is not guessed."""
    for place in ("docker", "system.slice"):
        os.makedirs(f"{groups}/{place}/{ID['1']}")
    done = kymo_there("record", "-o", tmp_path / "out", "--container", "1" * 12, code=1)
    for place in ("docker", "system.slice"):
        assert f"({kymo_there.root}/{place}/{ID['1']})" in done.stderr, done


def test_groups_that_a_user_owns(groups, kymo_there, tmp_path):
    """Are that user's, wherever they are: the user may give them any id."""
    for place, owner in (("system.slice/his.service", UID), ("docker", 0)):
        os.makedirs(f"{groups}/{place}/docker-{ID['3']}.scope")
        os.chown(f"{groups}/{place}", owner, owner)
    listed = json.loads(kymo_there("list", "--containers", "--json").stdout)["containers"]
    assert [os.path.relpath(one["cgroup"], kymo_there.root).split("/")[0] for one in listed] == ["docker", "system.slice"]
    # That id is the system's.
    done = kymo_there("record", "-o", tmp_path / "out", "--container", "3" * 12, "--container", "nobody", code=1)
    assert "no container 'nobody' runs; " in done.stderr, done


@pytest.mark.parametrize("groups", places()[:1] or [None], indirect=True, ids=str)
def test_more_than_are_looked_at(groups, kymo_there):
    """Of one user; others' are listed all the same."""
    for uid, n in ((UNKNOWN_UID, 515), (UID, 1)):
        for i in range(n):
            os.makedirs(f"{groups}/user.slice/user-{uid}.slice/docker-{i:064x}.scope")
    os.makedirs(f"{groups}/docker/{ID['1']}")
    done = kymo_there("list", "--containers", "--json")
    assert done.stderr == (f"kymo: warning: user {UNKNOWN_UID} has more than 512 containers; "
                           "for others, try the path of a control group\n")
    listed = [one["cgroup"] for one in json.loads(done.stdout)["containers"]]
    assert len(listed) == 512 + 2
    assert sum(f"user-{UID}.slice" in cgroup for cgroup in listed) == 1


def test_one_in_several_hierarchies(kymo, recording, program, actor):
    """Is known by its id, whatever its paths are; two in one hierarchy are two."""
    if len(hierarchies()) < 2:
        pytest.skip("needs control groups of both versions")
    container = os.urandom(32).hex()
    old, new = (f"/sys/fs/cgroup/{at}" for at in hierarchies()[:2])
    tops = [tempfile.mkdtemp(prefix="kymo-test-", dir=at) for at in (old, new, old)]
    groups = [f"{top}/{name}" for top, name in zip(tops, (container, f"x.slice:cri-containerd:{container}",
                                                          f"docker-{container}.scope"))]

    def listed():
        found = json.loads(kymo("list", "--containers", "--json").out)["containers"]
        return [(one["cgroup"], one["processes"]) for one in found if one["id"] == container]

    one = actor(program)
    try:
        for group in groups[:2]:
            os.mkdir(group)
        join(groups[0], one.pid)
        assert listed() == [(groups[0], 1)]
        join(groups[1], one.pid)
        assert listed() == [(groups[1], 1)]
        record = recording("--container", container[:12])
        one.does("sa")
        os.mkdir(groups[2])
        assert sorted(listed()) == sorted([(groups[0], 1), (groups[1], 1), (groups[2], 0)])
        for option in ("--add-container", "--remove-container"):
            refusal = record.ctl(option, container, code=1).err
            assert "name one of" in refusal and all(group in refusal for group in groups)
        assert steps(record.stop()) == {"a": 1}
    finally:
        one.end()
        for top in tops:
            remove_groups(top)


@pytest.fixture
def actor():
    made = []

    def call(*command):
        made.append(actors.Actor(*command))
        return made[-1]

    yield call
    for one in made:
        one.end()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Needs no libraries, so that it runs wherever it is put."""
    return actors.build(tmp_path_factory.mktemp("containers") / "kymo-actor", "-static")


@pytest.fixture
def recording(recordings):
    return lambda *options: recordings("-k", "syscall_entry_lseek", *options)


def join(group, pid):
    with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(pid))


def test_by_id(groups, recording, program, actor):
    one, other = actor(program), actor(program)
    container = os.urandom(32).hex()
    os.makedirs(f"{groups}/docker/{container}")
    join(f"{groups}/docker/{container}", one.pid)
    record = recording("--container", container[:12])
    for letter in "ab":
        one.does(f"s{letter}")
        other.does(f"s{letter}")
    # By another name, too; gone, it can be taken out by each once.
    record.ctl("--add-pid", other.pid)
    for _ in range(2):
        record.ctl("--add-container", container)
    one.end()
    remove_groups(f"{groups}/docker")
    for name in (container, container[:12]):
        record.ctl("--remove-container", name)
        assert "no container" in record.ctl("--remove-container", name, code=1).err
    other.does("sc")
    assert steps(record.stop()) == {"a": 1, "b": 1, "c": 1}


def test_raw(groups, recording, program, actor):
    """A raw recording of a container has what happens there, and nothing else."""
    one, other = actor(program), actor(program)
    container = os.urandom(32).hex()
    os.makedirs(f"{groups}/docker/{container}")
    join(f"{groups}/docker/{container}", one.pid)
    record = recording("--raw", "--container", container)
    for line in ("sa", "cb", "2c"):
        one.does(line)
        other.does(line)
    join(f"{groups}/docker/{container}", other.pid)
    wait_until(record, other.pid, True)
    other.does("sd")
    assert steps(record.stop()) == dict.fromkeys("abcd", 1)
    one.end()
    other.end()


class Box:
    """A container of lxc's in which nothing happens."""

    def __init__(self, place, program):
        self.place = place
        self.name = os.path.basename(place)
        root = place / "rootfs"
        for directory in ("bin", "dev", "proc", "sys", "tmp"):
            (root / directory).mkdir(parents=True)
        shutil.copy("/bin/busybox", root / "bin")
        shutil.copy(program, root / "bin")
        (place / "config").write_text(f"lxc.uts.name = box\nlxc.rootfs.path = dir:{root}\nlxc.net.0.type = empty\n"
                                     "lxc.apparmor.profile = unconfined\nlxc.init.cmd = /bin/busybox sleep 1000\n", encoding="ascii")

    def lxc(self, command, *args, **kwargs):
        return subprocess.run([f"lxc-{command}", "-P", self.place.parent, "-n", self.name, *args],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, **kwargs)

    def start(self):
        return self.lxc("start", "-d", check=False)

    def stop(self):
        self.lxc("stop", "-k", check=False)

    def clean(self):
        """Where who watches over lxc's containers goes to end is left by all of them."""
        self.stop()
        for group in glob.glob("/sys/fs/cgroup/lxc.pivot") + glob.glob("/sys/fs/cgroup/*/lxc.pivot"):
            try:
                os.rmdir(group)
            except OSError:  # another one is there just now
                pass

    def command(self):
        return ["lxc-attach", "-P", self.place.parent, "-n", self.name, "--", "/bin/kymo-actor"]


@pytest.fixture
def box(program, needs_root_tracefs):  # pylint: disable=unused-argument
    if not shutil.which("lxc-start") or not os.access("/bin/busybox", os.X_OK):
        pytest.skip("lxc or busybox is not installed: tools/install-deps test")
    # Without them lxc starts one all the same, in no group of its own.
    if not hierarchies():
        pytest.skip("needs control groups that can be made")
    # Not below pytest's own directory, which nobody else may look into: lxc wants to.
    with tempfile.TemporaryDirectory(prefix="kymo-lxc-") as place:
        box = Box(type(program)(place) / f"kymo-test-{os.getpid()}", program)
        done = box.start()
        if done.returncode:
            pytest.skip(f"lxc cannot start a container here: {done.stderr.strip()[-300:]}")
        try:
            yield box
        finally:
            box.clean()


def host_pid(actor):
    """Of the program that lxc-attach has started in the container; a helper of its own may still be ending."""
    with open(f"/proc/{actor.pid}/task/{actor.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    for pid in children:
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                if file.read() == "kymo-actor\n":
                    return int(pid)
        except (FileNotFoundError, ProcessLookupError):  # before it is opened, or read
            pass
    return pytest.fail(f"no program in the container: {children}")


def test_a_real_container(box, recording, program, actor, kymo):
    """While it runs, ends and runs again; chosen and no more; with those who join it, and nobody else."""
    listed = json.loads(kymo("list", "--containers", "--json").out)["containers"]
    assert [(one["name"], one["runtime"], one["processes"]) for one in listed if one["name"] == box.name] == [
        (box.name, "lxc", 1)]
    inside, outside = actor(*box.command()), actor(program)
    record = recording("--container", box.name)
    for letter in "ab":
        inside.does(f"s{letter}")
        outside.does(f"s{letter}")
    later = actor(*box.command())
    wait_until(record, host_pid(later), True)
    later.does("sc")
    later.does("cd")
    record.ctl("--add-pid", outside.pid, "--remove-container", box.name)
    for one, letter in ((inside, "e"), (later, "f"), (outside, "g")):
        one.does(f"s{letter}")
    assert "no container 'nobody' runs; these do: " in record.ctl("--add-container", "nobody", code=1).err
    for _ in range(2):
        record.ctl("--add-container", box.name)
    record.ctl("--add-container", box.name, "--remove-pid", outside.pid)
    for one, letter in ((inside, "h"), (later, "i"), (outside, "j")):
        one.does(f"s{letter}")
    box.stop()
    assert box.start().returncode == 0
    again = actor(*box.command())
    wait_until(record, host_pid(again), True)
    again.does("sk")
    box.stop()
    # lxc's monitor ends, and takes the groups away, a moment later than the container.
    for _ in range(300):
        if not glob.glob(f"/sys/fs/cgroup/**/lxc.payload.{box.name}", recursive=True):
            break
        time.sleep(0.1)
    record.ctl("--add-pid", outside.pid, "--remove-container", box.name)
    assert "no container" in record.ctl("--remove-container", box.name, code=1).err
    assert steps(record.stop()) == dict.fromkeys("abcdghik", 1)
