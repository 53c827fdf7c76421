/* SPDX-License-Identifier: MIT */
/* What of a socket address no field of its own is for: as text, in the words of its struct. */
#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "kernel/content/content-internal.h"

#define UNKNOWN_BYTES 26 /* of an address of an unknown family */

/* No memory is wanted: what is written must be as long as what was counted. */
struct words {
	char *text;
	size_t len;
};

__attribute__((format(printf, 2, 3))) static void say(struct words *words, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(words->text + words->len, KY_CONTENT_ADDRESS_BYTES - words->len, format,
		      args);
	va_end(args);
	if (n > 0)
		words->len += (size_t)n;
	if (words->len >= KY_CONTENT_ADDRESS_BYTES)
		words->len = KY_CONTENT_ADDRESS_BYTES - 1;
}

/* Copy as much of the struct as there is; false: it is shorter than @least, which the kernel wants. */
static bool content_address_take(void *to, size_t size, size_t least, const uint8_t *data,
				 uint32_t len)
{
	memset(to, 0, size);
	memcpy(to, data, len < size ? len : size);
	return len >= least;
}

static void say_inet6(const uint8_t *data, uint32_t len, struct words *text)
{
	struct sockaddr_in6 in6;

	if (!content_address_take(&in6, sizeof(in6), 24, data, len))
		return;
	if (in6.sin6_scope_id)
		say(text, "scope_id=%u", in6.sin6_scope_id);
	if (in6.sin6_flowinfo)
		say(text, "%sflowinfo=0x%x", text->len ? " " : "", ntohl(in6.sin6_flowinfo));
}

static void say_packet(const uint8_t *data, uint32_t len, struct words *text)
{
	struct sockaddr_ll ll;

	if (!content_address_take(&ll, sizeof(ll), 12, data, len))
		return;
	say(text, "protocol=0x%x ifindex=%d hatype=%u pkttype=%u", ntohs(ll.sll_protocol),
	    ll.sll_ifindex, ll.sll_hatype, ll.sll_pkttype);
	for (unsigned int i = 0; i < ll.sll_halen && i < sizeof(ll.sll_addr); i++)
		say(text, "%s%02x", i ? ":" : " addr=", ll.sll_addr[i]);
}

static void say_unknown(const uint8_t *data, uint32_t len, struct words *text)
{
	say(text, "data=");
	for (uint32_t i = 2; i < len && i < 2 + UNKNOWN_BYTES; i++)
		say(text, "%02x", data[i]);
	if (len > 2 + UNKNOWN_BYTES)
		say(text, "...");
}

uint32_t ky_content_say_address(uint16_t family, const uint8_t *data, uint32_t len, char *to)
{
	struct words words = {to, 0}, *text = &words;
	struct sockaddr_nl nl;
	struct sockaddr_vm vm;

	to[0] = '\0';
	switch (family) {
	case AF_INET:
	case AF_UNIX:
	case AF_UNSPEC:
		break;
	case AF_INET6:
		say_inet6(data, len, text);
		break;
	case AF_NETLINK:
		if (content_address_take(&nl, sizeof(nl), sizeof(nl), data, len))
			say(text, "pid=%u groups=0x%x", nl.nl_pid, nl.nl_groups);
		break;
	case AF_PACKET:
		say_packet(data, len, text);
		break;
	case AF_VSOCK:
		if (content_address_take(&vm, sizeof(vm), 12, data, len))
			say(text, "cid=%u port=%u", vm.svm_cid, vm.svm_port);
		break;
	default:
		say_unknown(data, len, text);
	}
	return (uint32_t)words.len;
}
