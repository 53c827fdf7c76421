/* SPDX-License-Identifier: MIT */
/*
 * A pcap file (nanoseconds) of the events that have a packet's bytes: fields data_link (the kind of link, LINKTYPE_*), data, and
 * length, the packet's length where data has only its begin.
 */
#ifndef KY_FLOW_SINKS_PCAP_H
#define KY_FLOW_SINKS_PCAP_H

#include "flow/graph/sink.h"

/*
 * @fd is the caller's. Packets of another kind of link than the first one are KYMO_E_UNSUPPORTED, as pcap files have one. So is a
 * trace without packets. NULL: out of memory.
 */
struct ky_sink *ky_pcap_sink_new(int fd);

#endif
