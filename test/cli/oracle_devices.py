# SPDX-License-Identifier: MIT
"""Second computations: block devices, network interfaces, memory."""

import collections

from oracle_figures import check_freq, check_stats, close, number
from oracle_io import requests

# ---- block devices -----------------------------------------------------------------------------

def operation(request):
    return "discard" if request.discard else "read" if request.read else \
        "write" if request.write else "other"


def check_block(report, events):
    done = requests(events)
    disks = {e.fields["dev"]: e.fields["diskname"] for e in events
             if e.name == "lttng_statedump_block_device"}
    by_op = collections.defaultdict(list)
    for r in done:
        by_op[disks.get(r.dev, f"{r.dev >> 20},{r.dev & 0xfffff}"), operation(r)].append(r)
    assert {(row["disk"], row["op"]) for row in report["disks"]} == set(by_op)
    queues = {(row["disk"], row["op"]): row for row in report["queue"]}
    for row in report["disks"]:
        mine = by_op[row["disk"], row["op"]]
        check_stats(row, [r.end - r.issued for r in mine if r.issued is not None])
        assert row["bytes"] == 512 * sum(r.sectors for r in mine)
        times = [r.issued - r.queued for r in mine if r.issued is not None and r.queued is not None]
        if times:
            check_stats(queues.pop((row["disk"], row["op"])), times)
    assert not queues
    for disk in {disk for disk, _op in by_op}:
        check_freq([row for row in report["freq"] if row["disk"] == disk],
                   [r.end - r.issued for (name, _op), mine in by_op.items() if name == disk
                    for r in mine if r.issued is not None])
    assert [(row["end"], row["issued"], row["queued"], row["bytes"], row["op"])
            for row in report["log"]] == \
        [(r.end, r.issued, r.queued, 512 * r.sectors, operation(r)) for r in done]
    assert sum(row["requests"] for row in report["processes"]) == len(done)
    assert sum(row["read"] for row in report["processes"]) == \
        512 * sum(r.sectors for r in done if r.read)


# ---- network interfaces ------------------------------------------------------------------------

def check_net(report, events):
    sums, who = (collections.defaultdict(collections.Counter) for _ in range(2))
    for event in events:
        way = {"net_dev_xmit": "sent", "net_if_receive_skb": "received",
               "netif_receive_skb": "received"}.get(event.name)
        if not way:
            continue
        mine = sums[event.fields["name"], way]
        if event.fields.get("rc"):
            mine["failed"] += 1
            continue
        mine["packets"] += 1
        mine["bytes"] += event.fields["len"]
        ran = who[event.context["tid"] or None, event.fields["name"]]
        ran[way] += event.fields["len"]
        ran["packets_" + way] += 1
    for row in report["interfaces"]:
        want = sums[row["netif"], row["way"]]
        assert (row["packets"], row["bytes"], row["failed"]) == \
            (want["packets"], want["bytes"], want["failed"])
        assert close(row["rate"], row["bytes"] * 1e9 / (events[-1].ns - events[0].ns))
        assert row["mean"] is None or close(row["mean"], row["bytes"] / row["packets"])
    assert {key for key in sums if sums[key]} <= \
        {(row["netif"], row["way"]) for row in report["interfaces"]}
    rows = {(row["process"] and row["process"]["tid"], row["netif"]): row
            for row in report["processes"]}
    assert set(rows) == set(who)
    for key, row in rows.items():
        for column in ("sent", "packets_sent", "received", "packets_received"):
            assert row[column] == who[key][column]


# ---- memory ------------------------------------------------------------------------------------

def check_memory(report, events):
    sums, who = collections.Counter(), collections.defaultdict(collections.Counter)
    net = highest = lowest = 0
    rss = {}
    for event in events:
        fields, tid = event.fields, event.context.get("tid") or None
        column = {"kmem_mm_page_alloc": "allocated", "kmem_mm_page_free": "freed",
                  "x86_exceptions_page_fault_user": "user_faults",
                  "x86_exceptions_page_fault_kernel": "kernel_faults"}.get(event.name)
        if column:
            pages = 1 if "faults" in column else 2 ** fields["order"]
            sums[column] += pages
            who[tid][column] += pages
            net += pages if column == "allocated" else -pages if column == "freed" else 0
            highest, lowest = max(net, highest), min(net, lowest)
        elif event.name in ("rss_stat", "kmem_rss_stat"):
            space = rss.setdefault(fields["mm_id"], [None, [0, 0, 0, 0], None, 0])
            if fields["curr"] and tid:
                space[0] = tid
            space[1][number(fields["member"])] = max(fields["size"], 0)
            size = space[1][0] + space[1][1] + space[1][3]
            space[2] = size if space[2] is None else space[2]
            space[3] = max(space[3], size)
    dumps = [event for event in events if event.name == "lttng_statedump_memory"]
    parts = {"size": "total", "free": "free", "available": "available", "buffers": "buffers", "cached": "cached",
             "swap_size": "swap_total", "swap_free": "swap_free"}
    assert [{column: row[column] for column in parts} for row in report["machine"]] == \
        [{column: event.fields[field] for column, field in parts.items()} for event in dumps[-1:]]
    assert [row["dumped"] for row in report["machine"]] == [event.ns for event in dumps[-1:]]
    total, = report["total"]
    if sums:
        assert (total["allocated"], total["freed"], total["net"]) == \
            (sums["allocated"], sums["freed"], net)
        assert (total["highest"], total["lowest"]) == (highest, lowest)
    rows = {row["process"] and row["process"]["tid"]: row for row in report["processes"]}
    if len(rows) == len(report["processes"]):  # no id was used twice
        assert set(rows) == set(who)
        for tid, row in rows.items():
            assert (row["allocated"], row["freed"]) == (who[tid]["allocated"], who[tid]["freed"])
            assert row["net"] == row["allocated"] - row["freed"]
    spaces = sorted((first, size[0] + size[1] + size[3], most, size[0], size[1], size[2])
                    for tid, size, first, most in rss.values() if tid)
    assert sorted((row["first"], row["last"], row["highest"], row["file"], row["anonymous"],
                   row["swap"]) for row in report["rss"]) == spaces
