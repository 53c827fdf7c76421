/* SPDX-License-Identifier: MIT */
#ifndef KY_CLI_REPORT_REPORT_STACKS_H
#define KY_CLI_REPORT_REPORT_STACKS_H

#include "base/strbuf.h"

/*
 * Append the call stacks in @event, a trigger's firing in JSON: addresses, with the kernel's symbols, and the
 * files of the process while it runs. Without call stacks, appends nothing.
 */
void ky_report_stacks(struct ky_strbuf *out, const char *event);

#endif
