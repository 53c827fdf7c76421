/* SPDX-License-Identifier: MIT */
/* Cells for people: numbers with units. */
#include "analysis/render.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static void add_duration(struct ky_strbuf *out, double ns, bool padded)
{
	static const char *const units[] = {"ns", "us", "ms", "s"};
	int unit = 0, decimals;

	while (unit < 3 && ns >= 999.95) {
		ns /= 1000;
		unit++;
	}
	decimals = ns < 9.9995 ? 3 : ns < 99.995 ? 2 : 1;
	if (unit == 0 && ns == floor(ns))
		decimals = 0;
	/* "s" as wide as the others, so that numbers stand under each other */
	ky_strbuf_addf(out, "%.*f %s%s", decimals, ns, units[unit], padded && unit == 3 ? " " : "");
}

void ky_render_duration(struct ky_strbuf *out, double ns)
{
	add_duration(out, ns, false);
}

/* "4.500 MiB", "677 B": four digits that count. */
static void add_size(struct ky_strbuf *out, double bytes)
{
	static const char *const units[] = {"B  ", "KiB", "MiB", "GiB", "TiB"};
	int unit = 0, decimals;

	while (unit < 4 && bytes >= 1023.95) {
		bytes /= 1024;
		unit++;
	}
	decimals = !unit ? 0 : bytes < 9.9995 ? 3 : bytes < 99.995 ? 2 : 1;
	ky_strbuf_addf(out, "%.*f %s", decimals, bytes, units[unit]);
}

static void add_irq(struct ky_strbuf *out, const struct ky_irq_id *irq)
{
	if (irq->nr >= 0)
		ky_strbuf_addf(out, "%d%s", irq->nr, irq->name[0] ? " " : "");
	ky_strbuf_adds(out, irq->name);
}

static void add_tally(struct ky_strbuf *out, const struct ky_tally *tally)
{
	for (size_t i = 0; i < tally->n_items; i++)
		ky_strbuf_addf(out, "%s%s %llu", i ? ", " : "", tally->items[i].name,
			       (unsigned long long)tally->items[i].count);
}

static void add_number(struct ky_strbuf *out, const struct ky_cell *cell)
{
	if (cell->type == KY_VALUE_U64)
		ky_strbuf_addu(out, cell->u);
	else if (cell->type == KY_VALUE_I64)
		ky_strbuf_addi(out, cell->s);
	else
		ky_strbuf_addf(out, "%.3f", cell->f);
}

void ky_render_time(struct ky_strbuf *out, int64_t ns, bool date)
{
	int fraction = (int)(ns % 1000000000);
	time_t seconds = (time_t)(ns / 1000000000 - (fraction < 0));
	char text[64];
	struct tm tm;

	if (!localtime_r(&seconds, &tm)) {
		ky_strbuf_addi(out, ns);
		return;
	}
	strftime(text, sizeof(text), date ? "%Y-%m-%d %H:%M:%S" : "%H:%M:%S", &tm);
	ky_strbuf_addf(out, "%s.%09d", text, fraction < 0 ? fraction + 1000000000 : fraction);
}

void ky_render_cell(struct ky_strbuf *out, const struct ky_column *column,
		    const struct ky_cell *cell)
{
	if (cell->type == KY_VALUE_NONE) {
		ky_strbuf_addc(out, '-');
		return;
	}
	switch (column->cls) {
	case KY_CELL_DURATION:
		add_duration(out, ky_cell_number(cell), true);
		break;
	case KY_CELL_RATIO:
		ky_strbuf_addf(out, "%.2f %%", ky_cell_number(cell) * 100);
		break;
	case KY_CELL_PROCESS:
		ky_strbuf_adds(out, cell->process->comm[0] ? cell->process->comm : "?");
		break;
	case KY_CELL_TALLY:
		add_tally(out, cell->tally);
		break;
	case KY_CELL_TEXT:
	case KY_CELL_SYSCALL:
	case KY_CELL_PATH:
	case KY_CELL_DISK:
	case KY_CELL_NETIF:
		ky_strbuf_adds(out, cell->text);
		break;
	case KY_CELL_IRQ:
		add_irq(out, cell->irq);
		break;
	case KY_CELL_SIZE:
		add_size(out, ky_cell_number(cell));
		break;
	case KY_CELL_RATE:
		ky_strbuf_addf(out, "%.2f", ky_cell_number(cell));
		break;
	case KY_CELL_ADDRESS:
		ky_strbuf_addf(out, "0x%llx", (unsigned long long)cell->u);
		break;
	case KY_CELL_TIMESTAMP:
		ky_render_time(out, cell->s, false);
		break;
	case KY_CELL_COUNT:
	case KY_CELL_NUMBER:
	case KY_CELL_CPU:
		add_number(out, cell);
		break;
	}
}
