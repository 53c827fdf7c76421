/* SPDX-License-Identifier: MIT */
/* The event classes of the state dump: names and fields of LTTng 2.13. */
#include "kernel/statedump/statedump.h"

#include "base/error.h"
#include "base/text.h"
#include "ctf/resolve/lttng-layout.h"
#include "kernel/process/proc.h"

enum type {
	END, /* of an event's fields */
	U8,
	U16,
	U32,
	U32_OCT,
	U32_HEX,
	U32_HEX_BE, /* an IPv4 address, as it lies in a packet */
	S32,
	S64,
	U64,
	U64_HEX,
	TEXT,
	COMM,
};

struct field {
	const char *name;
	enum type type;
};

#define MAX_FIELDS 12

struct event {
	const char *name;
	struct field fields[MAX_FIELDS];
};

/* {thread, number of the namespace} */
#define NS_FIELDS                       \
	{                               \
		{"_tid", S32},          \
		{                       \
			"_ns_inum", U32 \
		}                       \
	}

static const struct event events[KY_STATEDUMP_EVENTS] = {
	[KY_STATEDUMP_START] = {"lttng_statedump_start", {{NULL, END}}},
	[KY_STATEDUMP_END] = {"lttng_statedump_end", {{NULL, END}}},
	/* prio: not LTTng's own, but lttng-analyses reads it. */
	[KY_STATEDUMP_PROCESS_STATE] = {"lttng_statedump_process_state",
					{{"_tid", S32},
					 {"_pid", S32},
					 {"_ppid", S32},
					 {"_name", COMM},
					 {"_type", S32},
					 {"_mode", S32},
					 {"_submode", S32},
					 {"_status", S32},
					 {"_cpu", U32},
					 {"_file_table_address", U64_HEX},
					 {"_prio", S32}}},
	[KY_STATEDUMP_PROCESS_PID_NS] = {"lttng_statedump_process_pid_ns",
					 {{"_tid", S32},
					  {"_vtid", S32},
					  {"_vpid", S32},
					  {"_vppid", S32},
					  {"_ns_level", S32},
					  {"_ns_inum", U32}}},
	[KY_STATEDUMP_PROCESS_USER_NS] = {"lttng_statedump_process_user_ns",
					  {{"_tid", S32},
					   {"_vuid", U32},
					   {"_vgid", U32},
					   {"_ns_level", S32},
					   {"_ns_inum", U32}}},
	[KY_STATEDUMP_PROCESS_CGROUP_NS] = {"lttng_statedump_process_cgroup_ns", NS_FIELDS},
	[KY_STATEDUMP_PROCESS_IPC_NS] = {"lttng_statedump_process_ipc_ns", NS_FIELDS},
	[KY_STATEDUMP_PROCESS_NET_NS] = {"lttng_statedump_process_net_ns", NS_FIELDS},
	[KY_STATEDUMP_PROCESS_UTS_NS] = {"lttng_statedump_process_uts_ns", NS_FIELDS},
	[KY_STATEDUMP_PROCESS_TIME_NS] = {"lttng_statedump_process_time_ns", NS_FIELDS},
	/* pid: LTTng before 2.11 had it, and lttng-analyses needs it still. */
	[KY_STATEDUMP_FILE_DESCRIPTOR] = {"lttng_statedump_file_descriptor",
					  {{"_pid", S32},
					   {"_file_table_address", U64_HEX},
					   {"_fd", S32},
					   {"_flags", U32_OCT},
					   {"_fmode", U32_HEX},
					   {"_filename", TEXT}}},
	[KY_STATEDUMP_BLOCK_DEVICE] = {"lttng_statedump_block_device",
				       {{"_dev", U32}, {"_diskname", TEXT}}},
	[KY_STATEDUMP_NETWORK_INTERFACE] = {"lttng_statedump_network_interface",
					    {{"_name", TEXT}, {"_address_ipv4", U32_HEX_BE}}},
	[KY_STATEDUMP_INTERRUPT] =
		{"lttng_statedump_interrupt",
		 {{"_irq", U32}, {"_name", TEXT}, {"_action", TEXT}, {"_tid", S32}}},
	[KY_STATEDUMP_CPU_TOPOLOGY] = {"lttng_statedump_cpu_topology",
				       {{"_architecture", TEXT},
					{"_cpu_id", U16},
					{"_vendor", TEXT},
					{"_family", U8},
					{"_model", U8},
					{"_model_name", TEXT},
					{"_physical_id", U16},
					{"_core_id", U16},
					{"_cores", U16}}},
	/* In bytes. */
	[KY_STATEDUMP_MEMORY] = {"lttng_statedump_memory",
				 {{"_total", U64},
				  {"_free", U64},
				  {"_available", U64},
				  {"_buffers", U64},
				  {"_cached", U64},
				  {"_swap_total", U64},
				  {"_swap_free", U64}}},
	[KY_STATEDUMP_MODULE] =
		{"lttng_statedump_module",
		 {{"_name", TEXT}, {"_address", U64_HEX}, {"_size", U64}, {"_build_id", TEXT}}},
	[KY_STATEDUMP_PROCESS_MEMORY] =
		{"lttng_statedump_process_memory",
		 {{"_pid", S32}, {"_vm_bytes", U64}, {"_rss_bytes", U64}, {"_shared_bytes", U64}}},
	/* Of version 2: its number, which is its directory's inode, and its path from the root on. */
	[KY_STATEDUMP_PROCESS_CGROUP] = {"lttng_statedump_process_cgroup",
					 {{"_tid", S32}, {"_cgroup", U64}, {"_path", TEXT}}},
	/*
	 * A guest's CPU: the VM's process, the thread that runs it (0: unknown), and the guest's counter: (host's * ratio >> bits) + offset.
	 */
	[KY_STATEDUMP_KVM_VCPU] = {"lttng_statedump_kvm_vcpu",
				   {{"_vm", S32},
				    {"_vcpu_id", U32},
				    {"_tid", S32},
				    {"_tsc_offset", S64},
				    {"_tsc_ratio", U64},
				    {"_tsc_ratio_bits", U8}}},
	/* protection: 1 read, 2 write, 4 execute, 8 shared. dev: as block events have it. */
	[KY_STATEDUMP_PROCESS_MAP] = {"lttng_statedump_process_map",
				      {{"_pid", S32},
				       {"_begin", U64_HEX},
				       {"_end", U64_HEX},
				       {"_protection", U8},
				       {"_offset", U64_HEX},
				       {"_dev", U32},
				       {"_inode", U64},
				       {"_build_id", TEXT},
				       {"_filename", TEXT}}},
};

static struct ky_field_class *statedump_classes_add_field(struct ky_trace_class *trace,
							  struct ky_field_class *st,
							  const struct field *field)
{
	struct ky_field_class *cls;

	switch (field->type) {
	case U8:
		return ky_struct_add_int(trace, st, field->name, 8, false, 10);
	case U16:
		return ky_struct_add_int(trace, st, field->name, 16, false, 10);
	case U32:
		return ky_struct_add_int(trace, st, field->name, 32, false, 10);
	case U32_OCT:
		return ky_struct_add_int(trace, st, field->name, 32, false, 8);
	case U32_HEX:
		return ky_struct_add_int(trace, st, field->name, 32, false, 16);
	case U32_HEX_BE:
		cls = ky_struct_add_int(trace, st, field->name, 32, false, 16);
		if (cls)
			cls->num.big_endian = true;
		return cls;
	case S32:
		return ky_struct_add_int(trace, st, field->name, 32, true, 10);
	case S64:
		return ky_struct_add_int(trace, st, field->name, 64, true, 10);
	case U64:
		return ky_struct_add_int(trace, st, field->name, 64, false, 10);
	case U64_HEX:
		return ky_struct_add_int(trace, st, field->name, 64, false, 16);
	case TEXT:
		return ky_struct_add_string(trace, st, field->name);
	case COMM:
		return ky_struct_add_text(trace, st, field->name, KY_COMM_BYTES);
	default:
		return NULL;
	}
}

static struct ky_field_class *new_payload(struct ky_trace_class *trace, const struct event *event)
{
	struct ky_field_class *payload = ky_struct_new(trace);

	for (size_t i = 0; payload && i < MAX_FIELDS && event->fields[i].type != END; i++)
		if (!statedump_classes_add_field(trace, payload, &event->fields[i]))
			return NULL;
	return payload;
}

int ky_statedump_define_one(struct ky_stream_class *stream, uint32_t id,
			    enum ky_statedump_event which, struct kymo_error *err)
{
	struct ky_event_class *event = ky_event_class_new(stream, id, events[which].name);

	if (!event)
		return ky_error_nomem(err);
	event->payload = new_payload(stream->trace, &events[which]);
	return event->payload ? KYMO_OK : ky_error_nomem(err);
}

int ky_statedump_define(struct ky_stream_class *stream, uint32_t first_id, struct kymo_error *err)
{
	int ret = KYMO_OK;

	for (uint32_t i = 0; i < KY_STATEDUMP_EVENTS && !ret; i++)
		ret = ky_statedump_define_one(stream, first_id + i, (enum ky_statedump_event)i,
					      err);
	return ret;
}

uint32_t ky_statedump_match(const char *pattern)
{
	uint32_t set = 0;

	for (uint32_t i = 0; i < KY_STATEDUMP_EVENTS; i++)
		if (ky_glob_match(pattern, events[i].name))
			set |= KY_STATEDUMP_BIT(i);
	return set;
}
