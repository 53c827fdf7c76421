/* SPDX-License-Identifier: MIT */
#include "analysis/stacks/call-chart.h"

#include <stdlib.h>

void ky_call_chart_fini(struct ky_call_chart *chart)
{
	ky_vec_fini(&chart->calls);
	ky_vec_fini(&chart->threads);
}

int ky_call_chart_add(struct ky_call_chart *chart, const struct ky_chart_call *call)
{
	if (chart->calls.len >= KY_CALL_CHART_MAX) {
		chart->n_more++;
		return KYMO_OK;
	}
	return ky_vec_push(&chart->calls, *call) < 0 ? KYMO_E_MEMORY : KYMO_OK;
}

static int call_chart_by_begin(const void *a, const void *b)
{
	const struct ky_chart_call *left = a, *right = b;

	return left->number < right->number ? -1 : left->number > right->number;
}

static int call_chart_by_thread(const void *a, const void *b)
{
	const struct ky_chart_call *left = a, *right = b;

	if (left->thread != right->thread)
		return left->thread < right->thread ? -1 : 1;
	return call_chart_by_begin(a, b);
}

void ky_call_chart_sort(struct ky_call_chart *chart, bool by_thread)
{
	if (chart->calls.len)
		qsort(chart->calls.data, chart->calls.len, sizeof(*chart->calls.data),
		      by_thread ? call_chart_by_thread : call_chart_by_begin);
}
