/* SPDX-License-Identifier: MIT */
#include "analysis/tables/render-cell.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/foreign.h"

/* With up to three decimals, halves upwards; a log has some of them in each line, and libc formats slowly. */
static void render_cell_add_fixed(struct ky_strbuf *out, double value, int decimals)
{
	static const uint32_t powers[] = {1, 10, 100, 1000};
	uint64_t scaled;
	char text[24];

	if (!(value >= 0 && value < 1e12)) {
		ky_strbuf_addf(out, "%.*f", decimals, value);
		return;
	}
	scaled = (uint64_t)llround(value * powers[decimals]);
	ky_strbuf_addu(out, scaled / powers[decimals]);
	if (!decimals)
		return;
	text[0] = '.';
	scaled %= powers[decimals];
	for (int i = decimals; i; i--) {
		text[i] = (char)('0' + scaled % 10);
		scaled /= 10;
	}
	ky_strbuf_add(out, text, (size_t)decimals + 1); /* lint: own text */
}

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
	render_cell_add_fixed(out, ns, decimals);
	ky_strbuf_addc(out, ' ');
	ky_strbuf_adds(out, units[unit]);
	/* "s" as wide as the others, so that numbers stand under each other */
	if (padded && unit == 3)
		ky_strbuf_addc(out, ' ');
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
	render_cell_add_fixed(out, bytes, decimals);
	ky_strbuf_addc(out, ' ');
	ky_strbuf_adds(out, units[unit]);
}

/* In ASCII, darker with more. */
static void render_cell_add_heat(struct ky_strbuf *out, const struct ky_heat *heat)
{
	for (size_t i = 0; i < heat->n; i++)
		ky_strbuf_addc(out, " .:+#@"[ky_heat_level(heat, i)]);
}

static void render_cell_add_irq(struct ky_strbuf *out, const struct ky_irq_id *irq)
{
	if (irq->nr >= 0)
		ky_strbuf_addf(out, "%d%s", irq->nr, irq->name[0] ? " " : "");
	ky_foreign_adds(out, irq->name);
}

static void render_cell_add_tally(struct ky_strbuf *out, const struct ky_tally *tally)
{
	for (size_t i = 0; i < tally->n_items; i++) {
		ky_strbuf_adds(out, i ? ", " : "");
		ky_foreign_adds(out, tally->items[i].name);
		ky_strbuf_addc(out, ' ');
		ky_strbuf_addu(out, tally->items[i].count);
	}
}

static void render_cell_add_number(struct ky_strbuf *out, const struct ky_cell *cell)
{
	if (cell->type == KY_VALUE_U64)
		ky_strbuf_addu(out, cell->u);
	else if (cell->type == KY_VALUE_I64)
		ky_strbuf_addi(out, cell->s);
	else
		ky_strbuf_addf(out, "%.3f", cell->f);
}

/* "2026-11-21 23:58:20"; times of a log lie close together. NULL: there is no such time. */
static const char *second_text(time_t seconds)
{
	static _Thread_local char text[64];
	static _Thread_local time_t last;
	struct tm tm;

	if (text[0] && seconds == last)
		return text;
	if (!localtime_r(&seconds, &tm) ||
	    !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm)) {
		text[0] = '\0';
		return NULL;
	}
	last = seconds;
	return text;
}

void ky_render_time(struct ky_strbuf *out, int64_t ns, bool date)
{
	int64_t fraction = ns % 1000000000;
	const char *text = second_text((time_t)(ns / 1000000000 - (fraction < 0)));
	char digits[] = ".000000000";

	if (!text) {
		ky_strbuf_addi(out, ns);
		return;
	}
	if (!date && strchr(text, ' '))
		text = strchr(text, ' ') + 1;
	ky_strbuf_adds(out, text); /* lint: own text */
	if (fraction < 0)
		fraction += 1000000000;
	for (int i = 9; i; i--) {
		digits[i] = (char)('0' + fraction % 10);
		fraction /= 10;
	}
	ky_strbuf_add(out, digits, 10); /* lint: own text */
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
		render_cell_add_fixed(out, ky_cell_number(cell) * 100, 2);
		ky_strbuf_adds(out, " %");
		break;
	case KY_CELL_PROCESS:
		ky_foreign_adds(out, cell->process->comm[0] ? cell->process->comm : "?");
		break;
	case KY_CELL_TALLY:
		render_cell_add_tally(out, cell->tally);
		break;
	case KY_CELL_TEXT:
	case KY_CELL_SYSCALL:
	case KY_CELL_PATH:
	case KY_CELL_DISK:
	case KY_CELL_NETIF:
		ky_foreign_adds(out, cell->text);
		break;
	case KY_CELL_IRQ:
		render_cell_add_irq(out, cell->irq);
		break;
	case KY_CELL_HEAT:
		render_cell_add_heat(out, cell->heat);
		break;
	case KY_CELL_SIZE:
		add_size(out, ky_cell_number(cell));
		break;
	case KY_CELL_RATE:
		render_cell_add_fixed(out, ky_cell_number(cell), 2);
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
		render_cell_add_number(out, cell);
		break;
	}
}
