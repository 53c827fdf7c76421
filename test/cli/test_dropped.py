# SPDX-License-Identifier: MIT
"""A child without privileges shares the tracer's memory with its parent of root: whatever the
child writes there, only the rings change in the parent, and the recorder and other programs go on.
"""

import os
import re

import pytest

from conftest import SANITIZED
from test_user import box, events, pytestmark  # noqa: F401

SEEDS = int(os.environ.get("KYMO_HOSTILE", "8"))

ATTACKED = """
kymo record --user '*' --buffer-size 64k %s -o out 2>told & recorder=$!
wait_for session_is_there
$T/dropped %s %d %d $T/plugin.so >said & program=$!
$T/shop 200 3000 & shop=$!
while kill -0 $program 2>/dev/null; do
    timeout 60 kymo ctl --disable-event 'dropped:text' >>changes.txt 2>&1
    timeout 60 kymo ctl --enable-event 'dropped:text' --filter 'n > 10' >>changes.txt 2>&1
    %s
done
wait $program || exit 93
grep -q whole said || exit 92
cat said
wait $shop || exit 91
kill -TERM $recorder; wait $recorder; code=$?
[ $code -le 1 ] || exit 94
"""


def attack(box, mode, seed, ms, options="", then=":"):
    done = box(ATTACKED % (options, mode, seed, ms, then))
    honest = [trace for trace in done.traces() if os.path.basename(trace).startswith("shop-")]
    assert len(honest) == 1
    # What a session takes is never given back: there are not more than some thousands of them.
    more_kib = int(re.search(r"(-?\d+) KiB more", done.out).group(1))
    assert SANITIZED or more_kib < 150000, "the parent's memory grows without a bound"
    return honest[0]


@pytest.mark.parametrize("mode", ["procname", "blob", "table", "records", "joins"])
def test_attacks_with_an_aim(box, mode):
    shop = attack(box, mode, 1, 1000)
    assert sum("shop:order_placed" in event for event in events(shop)) == 200


@pytest.mark.parametrize("seed", range(SEEDS))
def test_random_bytes_everywhere(box, seed):
    shop = attack(box, "all", seed, 1500)
    assert sum("shop:order_placed" in event for event in events(shop)) == 200


@pytest.mark.parametrize("seed", range(100, 100 + SEEDS // 4))
def test_random_bytes_beside_snapshots(box, seed):
    attack(box, "all", seed, 1500, "--overwrite", "timeout 60 kymo snapshot -o snap.$RANDOM >>changes.txt 2>&1")


def assert_users(done, out, expected):
    found = {}
    for trace in done.traces(out):
        for event in events(trace):
            uid, name = re.search(r"vuid = (\d+)", event).group(1), event.split(": ")[0]
            found.setdefault(uid, set()).add(name)
    assert found == expected


RECORD = """
record() {
    kymo record --user 'modes:*' --context vuid -o $1 & recorder=$!
    wait_for '[ $(ls -l /proc/$recorder/fd | grep -c "[.]ring") = 2 ]'
    sleeps $worker 20
    # Its parent's memory is let go.
    grep -E '[.]ring|kymo-control' /proc/$worker/maps | sort -u -k 5,5 >maps.txt
    grep '[.]ring' maps.txt | grep -v 65534 && exit 92
    [ $(grep -c kymo-control maps.txt) = 1 ] || exit 91
    [ $(ls -l /proc/$worker/fd | grep -c kymo-control) = 1 ] || exit 93
    kill -TERM $recorder; wait $recorder || exit 94
}
"""
BOTH = {"0": {"modes:watched"}, "65534": {"modes:served"}}


def test_worker_that_has_dropped_its_privileges(box):
    """A recording that begins later has it as a program of its new user's."""
    done = box(RECORD + """
$T/modes worker & server=$!
wait_for '[ "$(pgrep -c -u nobody modes)" = 1 ]'
worker=$(pgrep -u nobody modes)
record out.1
record out.2
kill $server
""")
    assert_users(done, "out.1", BOTH)
    assert_users(done, "out.2", BOTH)


def test_worker_that_drops_its_privileges_while_it_is_recorded(box):
    """It goes on in its parent's buffers; the next recording makes it begin anew, in the first one, too."""
    done = box(RECORD + """
kymo record --user 'modes:*' --context vuid -o out.0 & first=$!
wait_for session_is_there
$T/modes worker & server=$!
wait_for '[ "$(pgrep -c -u nobody modes)" = 1 ]'
worker=$(pgrep -u nobody modes)
sleeps $worker 20
record out.1
wait_for '[ $(ls -l /proc/$first/fd | grep -c "[.]ring") = 2 ]'
sleeps $worker 20
kill $server
kill -TERM $first; wait $first || exit 95
""")
    assert_users(done, "out.1", BOTH)
    assert_users(done, "out.0", BOTH)
    assert len(done.traces("out.0")) == 2
