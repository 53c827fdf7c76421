# SPDX-License-Identifier: MIT
"""kymo latency on an older kernel, Debian's 6.1, in a machine of its own: its verifier takes all programs, and they measure."""

import json

import pytest

from machine import Machine, compile_c, modules, once_more

CALLS = 300
SYNCS = 5

# In the order of their needs.
NFS = "sunrpc grace lockd nfs_acl auth_rpcgss nfsd netfs fscache dns_resolver nfs nfsv4".split()

SCRIPT = f"""
# measure FILE ARGS: until the load is over.
measure() {{
	file=$1
	shift
	kymo latency --once --every 1h --json "$@" > $file 2> $file.said &
	pid=$!
	until grep -q measuring $file.said || ! kill -0 $pid; do sleep 0.2; done
	pinned 0 load {CALLS}
	sleep 0.6
	pinned 1 load {CALLS}
	kill -TERM $pid
	wait $pid
}}
measure layers --syscalls getppid --members 500ms --stacks
tell layers
measure processes --by process
tell processes
measure others --chain --over 1s --stacks \\
	--track 'own: syscall:getppid if procname == "load" -> syscall:getppid' --over 1h \\
	--track 'wake: sched_waking -> sched_switch by tid=next_tid'
tell others
# A server and its client; what its daemons would tell the kernel stands here.
for module in {" ".join(NFS)}; do insmod /modules/$module.ko || echo "no $module"; done
ifconfig lo 127.0.0.1 up
mkdir -p /export /nfs /var/lib/nfs/v4recovery
mount -t tmpfs export /export
mount -t nfsd nfsd /proc/fs/nfsd
echo '+4.2 -3' > /proc/fs/nfsd/versions
echo 'tcp 2049' > /proc/fs/nfsd/portlist
echo 1 > /proc/fs/nfsd/threads
cache() {{ echo "$2" > /proc/net/rpc/$1/channel || echo "no $1"; }}
cache auth.unix.ip 'nfsd 127.0.0.1 2147483647 local'
cache auth.unix.gid '0 2147483647 0'
cache nfsd.export 'local /export 2147483647 9218 65534 65534 0'
cache nfsd.fh 'local 1 \\x00000000 2147483647 /export'
echo Y > /proc/fs/nfsd/v4_end_grace
mount -t nfs4 -o vers=4.2,addr=127.0.0.1,clientaddr=127.0.0.1 127.0.0.1:/ /nfs
tell mounted
kymo latency --once --every 1h --json --layers file > nfs 2> nfs.said &
pid=$!
until grep -q measuring nfs.said || ! kill -0 $pid; do sleep 0.2; done
for i in $(seq {SYNCS}); do dd if=/dev/zero of=/nfs/file bs=4k count=4 conv=fsync 2> /dev/null; done
kill -TERM $pid
wait $pid
tell nfs
tar cf /dev/nvme0n1 layers processes others nfs
sync
tell over
"""


@pytest.fixture(scope="module")
def machine(kymo_bin, tmp_path_factory):
    directory = tmp_path_factory.mktemp("machine")
    done = once_more(lambda: Machine(directory, "6.1", [kymo_bin, compile_c(directory, "pinned")], SCRIPT,
                                      modules("6.1", *NFS)))
    print(done.text)
    assert "over" in done.steps, done.text
    done.unpack(directory)
    done.directory = directory
    return done


def result_of(machine, name):
    assert machine.steps[name][0] == 0, machine.text
    return json.loads((machine.directory / name).read_text().splitlines()[-1])


def count(result, layer, name):
    return sum(one["windows"]["now"]["count"] for one in result["series"] if (one["layer"], one["name"]) == (layer, name))


def test_layers(machine):
    result = result_of(machine, "layers")
    assert result["lost"]["absent_layers"] == []
    assert count(result, "syscall", "getppid") >= 2 * CALLS  # shells call it, too
    assert count(result, "wakeup", "all") and count(result, "offcpu", "sleep")
    assert any(one["layer"] == "softirq" for one in result["series"])
    lines = (machine.directory / "layers").read_text().splitlines()[:-1]
    waits = [one for one in map(json.loads, lines) if (one["member"], one["name"]) == ("offcpu", "sleep")]
    assert waits and any("nanosleep" in name for one in waits for name in one["kernel_stack"])


def test_processes(machine):
    assert any(one["owner"].startswith("load ") for one in result_of(machine, "processes")["series"] if "owner" in one)


def test_the_chain_and_trackers(machine):
    result = result_of(machine, "others")
    assert count(result, "track", "own") == 2 * CALLS
    assert count(result, "track", "wake")
    sums = {one["name"]: one["windows"]["now"]["sum_ns"] for one in result["series"] if one["layer"] == "chain"}
    assert sums["whole"] == sum(ns for name, ns in sums.items() if name != "whole") > 0


def test_a_file_system_that_is_a_module(machine):
    assert machine.steps["mounted"][0] == 0, machine.text
    assert count(result_of(machine, "nfs"), "file", "nfs sync") == SYNCS
