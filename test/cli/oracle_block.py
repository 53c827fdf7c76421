# SPDX-License-Identifier: MIT
"""Second computation: flushes of block devices, how many requests a device has, and what was ahead of each."""

import collections

from oracle_figures import check_stats, close
from oracle_io import files_of

FLUSH, PREFLUSH = 256, 1024


def mask(rwbs):
    """LTTng's bits of flushes, of its number or of the kernel's letters."""
    if isinstance(rwbs, int):
        return rwbs
    before = PREFLUSH if rwbs[:1] == "F" and rwbs[1:2] in tuple("WDRFNZ") else 0
    return before | (FLUSH if rwbs[1 if before else 0:][:1] == "F" else 0)


def flushes(events):
    """[(dev, tid of who asked, begin, end)]"""
    asked, under_way, found = {}, collections.defaultdict(list), []
    for event in events:
        fields, tid = event.fields, event.context.get("tid") or None
        if event.name == "block_getrq" and mask(fields["rwbs"]) & PREFLUSH:
            asked[fields["dev"]] = tid
        if event.name not in ("block_rq_issue", "block_rq_complete") or fields.get("nr_sector") or \
                not mask(fields["rwbs"]) & FLUSH:
            continue
        there = under_way[fields["dev"]]
        if event.name == "block_rq_issue":
            there.append((asked.get(fields["dev"]) or tid, event.ns))
        elif there:
            who, begin = there.pop(0)
            found.append((fields["dev"], who, begin, event.ns))
    return found


def follow(events):
    """Depths: [(dev, ns, requests in the device)]; and {(dev, end): (n, sectors) ahead of the request}."""
    queued, depths, ahead = collections.defaultdict(dict), [], {}

    def change(event):
        there = queued[event.fields["dev"]].values()
        depths.append((event.fields["dev"], event.ns, sum(one["issued"] for one in there)))

    def new(event):
        there = queued[event.fields["dev"]]
        old = there.pop(event.fields["sector"], None)
        there[event.fields["sector"]] = {
            "issued": False, "left": event.fields["nr_sector"],
            "ahead": (len(there), sum(one["left"] for one in there.values()))}
        return old

    for event in events:
        fields = event.fields
        if not event.name.startswith("block_rq_") or not fields.get("nr_sector"):
            continue
        there = queued[fields["dev"]]
        one = there.get(fields["sector"])
        if event.name == "block_rq_insert":
            if new(event):
                change(event)
        elif event.name == "block_rq_issue":
            if not one or one["issued"]:
                new(event)
            there[fields["sector"]].update(issued=True, left=fields["nr_sector"])
            change(event)
        elif event.name == "block_rq_requeue" and one:
            one["issued"] = False
            change(event)
        elif event.name == "block_rq_merge" and one and not one["issued"]:
            del there[fields["sector"]]
        elif event.name == "block_rq_complete" and one:
            del there[fields["sector"]]
            if fields["nr_sector"] < one["left"] and not fields["error"]:
                one["left"] -= fields["nr_sector"]
                there[fields["sector"] + fields["nr_sector"]] = one
                continue
            change(event)
            ahead[fields["dev"], event.ns, fields["sector"]] = one["ahead"]
    return depths, ahead


def check_depth(report, names, events, depths):
    begin, end = events[0].ns, events[-1].ns
    length = 1_000_000
    while end - begin > length * 20:
        length *= 2
    for dev in {dev for dev, *_ in depths}:
        mine = [(begin, 0)] + [(ns, n) for at, ns, n in depths if at == dev] + [(end, 0)]
        parts = [(a, b, n) for (a, n), (b, _) in zip(mine, mine[1:]) if b > a]
        row = next(row for row in report["depth"] if row["disk"] == names(dev))
        assert row["most"] == max(n for _, _, n in parts)
        assert row["busy"] == sum(b - a for a, b, n in parts if n)
        assert close(row["mean"], sum((b - a) * n for a, b, n in parts) / (end - begin))
        assert close(row["share"], row["busy"] / (end - begin))
        steps = [row for row in report["depth_steps"] if row["disk"] == names(dev)]
        assert [row["begin"] for row in steps] == list(range(begin, end, length))
        assert sum(row["busy"] for row in steps) == row["busy"]
        assert max(row["most"] for row in steps) == row["most"]
        area = sum(row["mean"] * (min(row["begin"] + length, end) - row["begin"]) for row in steps)
        assert close(area, row["mean"] * (end - begin))


def check_bytes(rows, events):
    files = files_of(events)
    sums = collections.Counter()
    for io in files.calls:
        for file, way, fits in ((io.file, "read", io.kind in ("read", "copy")),
                                (io.file, "written", io.kind == "write"), (io.to, "written", io.kind == "copy")):
            kind = files.kinds.get(file, "unknown") if fits else None
            sums[way, kind] += io.bytes if fits else 0
    for row in rows:
        assert (row["programs"], row["unknown"]) == (sums[row["way"], "disk"], sums[row["way"], "unknown"])
        assert row["factor"] is None if not row["programs"] else close(row["factor"], row["device"] / row["programs"])


def check_more(report, events, names, done):
    """@names: a device's name, of its number. @done: the requests, in the order of the log."""
    depths, ahead = follow(events)
    check_depth(report, names, events, depths)
    check_bytes(report["bytes"], events)
    moved = {way: sum(512 * r.sectors for r in done if getattr(r, flag)) for way, flag in
             (("read", "read"), ("written", "write"))}
    for row in report["bytes"]:
        assert row["device"] == moved[row["way"]]
    sums = collections.defaultdict(list)
    for dev, who, begin, end in flushes(events):
        sums[names(dev), who].append(end - begin)
    found = collections.Counter()
    for row in report["flushes"]:
        assert row["errors"] == 0
        mine = sums[row["disk"], row["process"] and row["process"]["tid"]]
        check_stats(row, mine)
        found.update(mine)
    assert sum(found.values()) == sum(map(len, sums.values()))
    moves = any(event.name in ("block_bio_frontmerge", "block_rq_remap") for event in events)
    there = collections.Counter((names(dev), end, *known) for (dev, end, _), known in ahead.items())
    for row in report["log"]:
        assert (row["ahead_of"] is None) or row["ahead"]
        key = row["disk"], row["end"], row["ahead"], row["ahead_bytes"] // 512
        assert moves or there[key], row
