# SPDX-License-Identifier: MIT
"""Small kernel traces that are written here, of events as oracle_figures.py has them."""

import os
import re
import struct

import oracle_figures

TASK = re.compile(r"sched_(waking|wakeup|wakeup_new)$")


def pick(fields, names):
    """The fields of that list, called otherwise where it says "new=old"."""
    pairs = [(name.split("=") * 2)[:2] for name in names.split()]
    return {new: oracle_figures.number(fields[old]) for new, old in pairs}


def old_event(event):
    """What LTTng 2.0 to 2.5 recorded; the thread's id is a field here as any other."""
    name, old, fields = event.name, event.fields, {}
    if name == "sched_switch":
        fields = pick(old, "prev_comm prev_tid prev_prio prev_state next_comm next_tid next_prio")
    elif TASK.match(name):
        fields = pick(old, "comm tid prio target_cpu")
    elif name == "sched_migrate_task":
        fields = pick(old, "comm tid prio orig_cpu dest_cpu")
    elif name == "sched_process_fork":
        fields = pick(old, "parent_comm parent_tid child_comm child_tid")
    elif name == "sched_process_exit":
        fields = pick(old, "comm tid")
    elif name.startswith("syscall_entry_"):
        name = "sys_" + name[14:]
    elif name.startswith("syscall_exit_"):
        name, fields = "exit_syscall", {"ret": old["ret"]}
    elif name.startswith("irq_softirq_"):
        name, fields = name[4:], pick(old, "vec")
    elif name == "irq_handler_entry":
        fields = pick(old, "irq name")
    elif name == "irq_handler_exit":
        fields = pick(old, "irq")
    return name, fields | {"perf_tid": event.context["tid"]}


def same_event(event):
    """Today's names."""
    name, fields = old_event(event)
    if event.name.startswith("syscall_"):
        name = event.name
    elif event.name.startswith("irq_softirq_"):
        name = event.name
    return name, fields


CPU = "integer { size = 32; align = 8; signed = false; } cpu_id;"
HEAD = """/* CTF 1.8 */
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{
    integer {{ size = 32; align = 8; signed = false; }} magic; }}; }};
env {{ {env} }};
clock {{ name = c; freq = 1000000000; offset = {offset}; }};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.c.value; }} := time_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := long_t;
stream {{
    event.header := struct {{ integer {{ size = 32; align = 8; signed = false; }} id; time_t timestamp; }};
    packet.context := struct {{ time_t timestamp_begin; time_t timestamp_end;
        integer {{ size = 64; align = 8; signed = false; }} content_size;
        integer {{ size = 64; align = 8; signed = false; }} packet_size;
        integer {{ size = 64; align = 8; signed = false; }} events_discarded;
        {cpu} }};
}};
"""
PER_PACKET = 1000


def as_is(event):
    return event.name, event.fields | event.context


def write(path, events, made_of=as_is, env='domain = "kernel";', lost=(), whole=False,
          one_stream=False):
    """A trace of @events as @made_of tells their names and fields; one stream for each CPU.

    Packets @lost, as (CPU, number), are not there: their events were discarded. @whole: all CPUs' records
    begin with the trace, however late their first events are. @one_stream: all are in one, which has no CPU.
    """
    os.makedirs(path)
    offset = events[0].ns
    ids, classes, bodies = {}, [], {}
    for event in events:
        name, fields = made_of(event)
        key = name, tuple(fields)
        if key not in ids:
            ids[key] = len(ids)
            members = "".join(f" {'string' if isinstance(value, str) else 'long_t'} _{field};"
                              for field, value in fields.items())
            classes.append(f'event {{ name = "{name}"; id = {ids[key]}; '
                           f"fields := struct {{{members} }}; }};\n")
        data = struct.pack("<IQ", ids[key], event.ns - offset)
        for value in fields.values():
            data += value.encode() + b"\0" if isinstance(value, str) else struct.pack("<q", value)
        bodies.setdefault(0 if one_stream else event.cpu, []).append((event.ns - offset, data))
    with open(path / "metadata", "w", encoding="utf-8") as file:
        file.write(HEAD.format(env=env, offset=offset, cpu="" if one_stream else CPU) + "".join(classes))
    for cpu, found in bodies.items():
        with open(path / f"stream_{cpu}", "wb") as file:
            discarded = 0
            for i in range(0, len(found), PER_PACKET):
                part = found[i:i + PER_PACKET]
                if (cpu, i // PER_PACKET) in lost:
                    discarded += len(part)
                    continue
                body = b"".join(data for _ns, data in part)
                if not one_stream:
                    body = struct.pack("<I", cpu) + body
                bits = (4 + 40 + len(body)) * 8
                begin = 0 if whole and not i else part[0][0]
                file.write(struct.pack("<IQQQQQ", 0xC1FC1FC1, begin, part[-1][0], bits, bits,
                                       discarded) + body)
    return path
