/* SPDX-License-Identifier: MIT */
/* What the name of a control group says: which container it is of, as runtimes name them. */
#include "record/containers/containers.h"

#include <stdio.h>
#include <string.h>

#include "base/text.h"

static bool container_groups_ends_with(const char *text, size_t len, const char *end)
{
	return len >= strlen(end) && strncmp(text + len - strlen(end), end, strlen(end)) == 0;
}

/* systemd's units have "\x2d" for what may not stand in their names. */
static void take_unescaped(const char *text, size_t len, char name[KY_CONTAINER_NAME_BYTES])
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < KY_CONTAINER_NAME_BYTES; i++) {
		int high = KY_NO_DIGIT, low = KY_NO_DIGIT;

		if (i + 3 < len && text[i] == '\\' && text[i + 1] == 'x') {
			high = ky_digit_value(text[i + 2]);
			low = ky_digit_value(text[i + 3]);
		}
		if (high == KY_NO_DIGIT || low == KY_NO_DIGIT || !(high | low)) {
			name[n++] = text[i];
			continue;
		}
		name[n++] = (char)(high << 4 | low);
		i += 3;
	}
	name[n] = '\0';
}

/* "machine-my\x2dbox.scope"; "systemd-nspawn@my-box.service". */
static bool is_machine(const char *base, struct ky_container *to)
{
	static const struct {
		const char *begin, *end;
	} units[] = {{"machine-", ".scope"}, {"systemd-nspawn@", ".service"}};
	size_t len = strlen(base);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t begin = strlen(units[i].begin), end = strlen(units[i].end);

		if (len <= begin + end || strncmp(base, units[i].begin, begin) != 0 ||
		    !container_groups_ends_with(base, len, units[i].end))
			continue;
		/* A virtual machine of libvirt's is no container. */
		if (strncmp(base + begin, "qemu\\x2d", strlen("qemu\\x2d")) == 0)
			return false;
		take_unescaped(base + begin, len - begin - end, to->name);
		snprintf(to->runtime, sizeof(to->runtime), "systemd");
		return true;
	}
	return false;
}

/* "lxc.payload.NAME"; before lxc 4, "lxc.payload/NAME" and "lxc/NAME". Not "lxc.monitor.NAME", who starts and watches it. */
static bool is_lxc(const char *parent, const char *base, struct ky_container *to)
{
	static const char begin[] = "lxc.payload.";
	const char *name = base;

	if (strncmp(base, begin, strlen(begin)) == 0)
		name = base + strlen(begin);
	else if (strcmp(parent, "lxc") != 0 && strcmp(parent, "lxc.payload") != 0)
		return false;
	snprintf(to->name, sizeof(to->name), "%s", name);
	snprintf(to->runtime, sizeof(to->runtime), "lxc");
	return *name != '\0';
}

/* What stands before the id, by itself or with its slice ("a.slice:cri-containerd:ID"). */
static void take_runtime(const char *path, const char *parent, const char *before, size_t len,
			 struct ky_container *to)
{
	static const char *const names[][2] = {
		{"libpod", "podman"},
		{"libpod-payload", "podman"},
		{"crio", "cri-o"},
		{"cri-containerd", "containerd"},
	};
	int n = (int)len;

	for (size_t i = len; i-- > 0;) {
		if (before[i] != ':')
			continue;
		before += i + 1;
		n = (int)(len - i - 1);
		break;
	}
	if (n)
		snprintf(to->runtime, sizeof(to->runtime), "%.*s", n, before);
	else if (strcmp(parent, "docker") == 0)
		snprintf(to->runtime, sizeof(to->runtime), "docker");
	else
		snprintf(to->runtime, sizeof(to->runtime),
			 strstr(path, "kubepods") ? "kubernetes" : "container");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(to->runtime, names[i][0]) == 0)
			snprintf(to->runtime, sizeof(to->runtime), "%s", names[i][1]);
}

/* "ID", "docker-ID.scope", "libpod-ID", "a.slice:cri-containerd:ID". */
static bool is_oci(const char *path, const char *parent, const char *base, struct ky_container *to)
{
	size_t len = strlen(base), digits = KY_CONTAINER_ID_DIGITS;

	if (container_groups_ends_with(base, len, ".scope"))
		len -= strlen(".scope");
	if (len < digits)
		return false;
	len -= digits;
	if (strspn(base + len, "0123456789abcdef") < digits)
		return false;
	if (len && base[len - 1] != '-' && base[len - 1] != ':')
		return false;
	/* Who starts it and watches it; and, of podman, a pod: what its containers' groups are in. */
	if (container_groups_ends_with(base, len, "conmon-") ||
	    (!len && strcmp(parent, "libpod_parent") == 0))
		return false;
	memcpy(to->id, base + len, digits);
	to->id[digits] = '\0';
	take_runtime(path, parent, base, len ? len - 1 : 0, to);
	return true;
}

bool ky_container_of_group(char *path, struct ky_container *to)
{
	char *slash = strrchr(path, '/'), *up;
	bool is_one;

	*slash = '\0';
	up = strrchr(path, '/');
	is_one = is_lxc(up ? up + 1 : "", slash + 1, to) || is_machine(slash + 1, to) ||
		 is_oci(path, up ? up + 1 : "", slash + 1, to);
	*slash = '/';
	return is_one;
}
