# SPDX-License-Identifier: MIT
"""Control groups of a test's own."""

import os
import time


def hierarchies():
    """Those below /sys/fs/cgroup where some can be made: of version 1; of 2 beside it; of 2 alone."""
    return [name for name in ("pids", "unified", ".")
            if os.access(f"/sys/fs/cgroup/{name}/cgroup.procs", os.W_OK)]


def remove_groups(top):
    """With all below it."""
    for path, _, _ in os.walk(top, topdown=False):
        for _ in range(500):
            try:
                os.rmdir(path)
            except FileNotFoundError:
                pass
            except OSError:  # those who were in it are ending
                time.sleep(0.01)
                continue
            break
