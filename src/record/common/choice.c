/* SPDX-License-Identifier: MIT */
#include "record/common/choice.h"

#include <stdlib.h>
#include <string.h>

int ky_choice_ids(const char *text, bool users, int32_t ids[KY_CHOICE_IDS_MAX], int n)
{
	const long long min = users ? 0 : 1, max = users ? UINT32_MAX - 1 : INT32_MAX;
	char *end;

	do {
		long long id = strtoll(text, &end, 10);

		if (end == text || id < min || id > max || (*end && *end != ',') ||
		    n == KY_CHOICE_IDS_MAX)
			return -1;
		ids[n++] = (int32_t)id;
		text = end + 1;
	} while (*end);
	return n;
}

bool ky_choice_is_comm(const char *comm)
{
	for (const char *at = comm; *at; at++)
		if ((unsigned char)*at < ' ' || *at == '"' || *at == '\'' || *at == '\\')
			return false;
	return *comm && strlen(comm) < 16;
}
