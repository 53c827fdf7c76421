# SPDX-License-Identifier: MIT
"""Answers of kymo view in columns, as docs/design/viewer.md describes them."""

import json
import struct

MAX_NUMBER = 2**53 - 1
NO_TIME = -2**63


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def take(self, size):
        assert self.at + size <= len(self.data)
        self.at += size
        return self.data[self.at - size:self.at]

    def number(self):
        found, shift = 0, 0
        while True:
            byte = self.take(1)[0]
            found |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return found


def values_of(kind, n, data):
    reader = Reader(data)
    if kind in "fr":
        found = list(struct.unpack(f"<{n}{'f' if kind == 'f' else 'd'}", data))
        reader.at = len(data)
    elif kind == "s":
        found = [reader.take(reader.number()).decode(errors="replace") for _ in range(n)]
    elif kind == "u":
        found = [reader.number() for _ in range(n)]
        assert not found or max(found) <= MAX_NUMBER
    else:
        found, last = [], 0
        for _ in range(n):
            word = reader.number()
            last += -(word + 1 >> 1) if word & 1 else word >> 1
            if kind == "t":
                last = (last + 2**63) % 2**64 - 2**63
            else:
                assert abs(last) <= MAX_NUMBER
            found.append(last)
    assert reader.at == len(data)
    return found


def columns_of(data):
    """The members of the answer that are no columns, and the columns."""
    reader = Reader(data)
    assert reader.take(4) == b"KYA\1"
    head, columns = {}, {}
    while True:
        kind = chr(reader.take(1)[0])
        if kind == "\0":
            break
        name = reader.take(reader.number()).decode()
        n = reader.number()
        data_of = reader.take(reader.number())
        if kind == "j":
            head.update(json.loads(data_of))
        else:
            assert name not in columns and kind in "udtfrs"
            columns[name] = values_of(kind, n, data_of)
    assert reader.at == len(data)
    return head, columns


class Runs:
    def __init__(self, columns):
        self.codes, self.extents = iter(columns["code"]), iter(columns["extent"])

    def take(self, n):
        """From, to and code of each."""
        at = 0
        for _ in range(n):
            code = next(self.codes)
            at += next(self.extents) if code & 1 else 0
            to = at + (next(self.extents) if code & 2 else 1)
            assert to > at
            yield at, to, code >> 2
            at = to

    def end(self):
        assert next(self.codes, None) is None and next(self.extents, None) is None


def timeline(head, columns):
    runs, rows = Runs(columns), []
    states = list(zip(columns["kind"], columns["detail"]))
    for row, n in zip(columns["id"], columns["runs"]):
        rows.append({"id": row, "runs": [x for at, to, place in runs.take(n) for x in (at, to, *states[place])]})
    runs.end()
    return {**head, "names": columns["names"], "rows": rows}


def heights(runs, values, n):
    found = []
    for at, to, code in runs.take(n):
        low = next(values)
        found += [at, to, low, *((next(values), next(values)) if code else (low, low))]
    return found


def curves(head, columns):
    runs, values = Runs(columns), iter(columns["value"])
    rows = [{"id": row, "runs": heights(runs, values, n)} for row, n in zip(columns["id"], columns["runs"])]
    runs.end()
    assert next(values, None) is None
    return {**head, "rows": rows}


def field(head, columns):
    values = iter(columns["value"])
    found = heights(Runs(columns), values, len(columns["code"]))
    assert next(values, None) is None
    return {**head, "runs": found}


def density(head, columns):
    lost = [0] * len(columns["events"])
    runs = Runs(columns)
    for (at, to, _), n in zip(runs.take(len(columns["code"])), columns["lost"]):
        lost[at:to] = [n] * (to - at)
    return {**head, "events": columns["events"], "lost": lost}


def marks(head, columns):
    found, triggers = [], []
    for row, *rest in zip(columns["row"], columns["pixel"], columns["events"], columns["name"]):
        if row:
            found += [row - 1, *rest]
        else:
            triggers += rest
    return {**head, "marks": found, "triggers": triggers, "names": columns["names"]}


def arrows(head, columns):
    return {**head, "arrows": [x for arrow in zip(*(columns[name] for name in ("from", "to", "begin", "end"))) for x in arrow]}


def losses(head, columns):
    runs, rows, events, streams = Runs(columns), iter(columns["row"]), iter(columns["events"]), []
    for stream, n_rows, n_runs in zip(columns["stream"], columns["rows"], columns["runs"]):
        streams.append({"stream": stream, "rows": [next(rows) for _ in range(n_rows)],
                        "runs": [x for at, to, damaged in runs.take(n_runs) for x in (at, to, next(events), damaged)]})
    return {**head, "streams": streams}


def named(columns, name, names):
    return [columns[names][number - 1] for number in columns[name]]


def rows(head, columns):
    found = zip(columns["ns"], columns["trace"], columns["cpu"], named(columns, "name", "names"), columns["text"])
    return {**head, "rows": [[None if ns == NO_TIME else ns, trace, cpu - 1 if cpu else None, name, text]
                             for ns, trace, cpu, name, text in found]}


def tree(head, columns):
    found = zip(columns["id"], columns["parent"], named(columns, "kind", "kinds"), columns["number"], columns["name"], columns["origin"],
                columns["states"])
    return {**head, "rows": [[row, None if parent < 0 else parent, *rest] for row, parent, *rest in found]}


def activity(head, columns):
    return {**head, "rows": [list(pair) for pair in zip(columns["id"], columns["ns"])]}


def latency(head, columns):
    return {**head, "classes": columns["classes"], "cells": [list(cell) for cell in zip(columns["column"], columns["class"], columns["count"])],
            "names": [list(name) for name in zip(columns["name"], columns["n"], columns["ns"])]}


def members(head, columns):
    found = zip(columns["begin"], columns["end"], columns["row"], named(columns, "name", "names"))
    return {**head, "members": [list(member) for member in found]}


def area(head, columns):
    lists = {title: [list(one) for one in zip(*(columns[f"{title}.{name}"] for name in ("name", "n", "ns", "waiting", "longest")))]
             for title in ("names", "calls", "spans", "irqs", "requests")}
    ids = columns["threads.id"]
    kinds = len(columns["threads.states"]) // max(1, len(ids))
    threads = [[*one, columns["threads.states"][i * kinds:(i + 1) * kinds]]
               for i, one in enumerate(zip(ids, *(columns[f"threads.{name}"] for name in ("tid", "name", "active"))))]
    counters = zip(columns["counters.id"], named(columns, "counters.kind", "counters.kinds"),
                   *(columns[f"counters.{name}"] for name in ("number", "name", "low", "mean", "high")))
    return {**head, **lists, "threads": threads, "counters": [list(one) for one in counters]}


SHAPES = {shape.__name__: shape for shape in (timeline, curves, field, density, marks, arrows, losses, rows, tree, activity, latency,
                                              members, area)}


def decode(resource, data):
    """The answer with lists of lists."""
    return SHAPES[resource](*columns_of(data))
