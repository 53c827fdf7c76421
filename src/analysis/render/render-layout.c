/* SPDX-License-Identifier: MIT */
#include "analysis/render/render-layout.h"

#include <string.h>

#include "base/foreign.h"

#define BAR_MIN	   6
#define BAR_MAX	   40
#define TIME_WIDTH 18 /* 23:58:20.772941381 */
#define LAST_MIN   36 /* what a left-aligned last column gets before columns that can be spared */

/* ---- cells ----------------------------------------------------------------------------- */

void ky_layout_add_id(struct ky_strbuf *out, int32_t id)
{
	if (id < 0)
		ky_strbuf_addc(out, '?');
	else
		ky_strbuf_addi(out, id);
}

void ky_layout_add_process(struct ky_strbuf *out, const struct ky_process *process,
			   enum ky_layout_part part)
{
	switch (part) {
	case KY_PART_TID:
		ky_layout_add_id(out, process->tid);
		break;
	case KY_PART_PID:
		ky_layout_add_id(out, process->pid);
		break;
	case KY_PART_NAME:
		ky_foreign_adds(out, process->comm[0] ? process->comm : "?");
		break;
	case KY_PART_HOST:
		ky_foreign_adds(out, process->host ? process->host : "");
		break;
	case KY_PART_ALL:
		break;
	}
}

void ky_layout_add_cell(struct ky_strbuf *out, const struct ky_column *column,
			const struct ky_cell *cell, enum ky_layout_part part)
{
	if (cell->type == KY_VALUE_PROCESS)
		ky_layout_add_process(out, cell->process, part);
	else
		ky_render_cell(out, column, cell);
}

int ky_layout_text_width(const char *text)
{
	int width = 0;

	for (; *text; text++)
		width += ((unsigned char)*text & 0xc0) != 0x80;
	return width;
}

void ky_layout_pad(struct ky_strbuf *out, int width)
{
	static const char blanks[] = "                                        ";

	for (; width > 0; width -= (int)sizeof(blanks) - 1)
		ky_strbuf_add(out, blanks,
			      (size_t)width < sizeof(blanks) - 1 ? (size_t)width
								 : sizeof(blanks) - 1);
}

/* ---- layout ---------------------------------------------------------------------------- */

static void layout_show(struct ky_layout *layout, size_t column, enum ky_layout_part part,
			const char *heading, bool left)
{
	const struct ky_column *def = &layout->table->def->columns[column];

	if (layout->n_shown == KY_LAYOUT_MAX)
		return;
	layout->shown[layout->n_shown++] = (struct ky_layout_column){
		column, part, heading, left, ky_layout_text_width(heading), def->spare, false};
}

static bool has_host(const struct ky_table *table, size_t column)
{
	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		const struct ky_cell *cell = &ky_table_cells(table, i)[column];

		if (cell->type == KY_VALUE_PROCESS && cell->process->host)
			return true;
	}
	return false;
}

/* Are there threads, or processes, in the column? What is grouped by names has neither. */
static bool has_ids(const struct ky_table *table, size_t column, bool tids)
{
	for (size_t i = 0; i < ky_table_n_rows(table); i++) {
		const struct ky_cell *cell = &ky_table_cells(table, i)[column];

		if (cell->type == KY_VALUE_PROCESS &&
		    (tids ? cell->process->tid : cell->process->pid) >= 0)
			return true;
	}
	return false;
}

static bool is_left(enum ky_cell_class cls)
{
	switch (cls) {
	case KY_CELL_TEXT:
	case KY_CELL_SYSCALL:
	case KY_CELL_TALLY:
	case KY_CELL_PATH:
	case KY_CELL_DISK:
	case KY_CELL_NETIF:
	case KY_CELL_IRQ:
	case KY_CELL_HEAT:
		return true;
	default:
		return false;
	}
}

/* Beside a thread's own id, that of its process can be spared. */
static void layout_show_pid(struct ky_layout *layout, size_t column)
{
	bool spare = layout->n_shown && layout->shown[layout->n_shown - 1].column == column &&
		     layout->shown[layout->n_shown - 1].part == KY_PART_TID;

	layout_show(layout, column, KY_PART_PID, "PID", false);
	if (spare && !layout->shown[layout->n_shown - 1].spare)
		layout->shown[layout->n_shown - 1].spare = 1;
}

static void choose_columns(struct ky_layout *layout)
{
	const struct ky_table *table = layout->table;

	for (size_t i = 0; i < table->def->n_columns; i++) {
		const struct ky_column *def = &table->def->columns[i];

		if (def->group || ky_table_is_empty(table, i))
			continue;
		if (def->bar != KY_BAR_NONE &&
		    (def->bar != KY_BAR_ROOM || layout->options->columns))
			layout->bar_column = (int)i;
		if (def->cls == KY_CELL_PROCESS) {
			if (has_host(table, i))
				layout_show(layout, i, KY_PART_HOST, "Host", true);
			/* A row shows its second thread by name and thread id. */
			if (!def->whole_process && has_ids(table, i, true))
				layout_show(layout, i, KY_PART_TID, "TID", false);
			if (!def->second && has_ids(table, i, false))
				layout_show_pid(layout, i);
			layout_show(layout, i, KY_PART_NAME, def->second ? def->title : "Name",
				    true);
			continue;
		}
		layout_show(layout, i, KY_PART_ALL, def->title, is_left(def->cls));
	}
}

/* Times are as wide as each other. */
static bool is_measured(const struct ky_layout *layout, const struct ky_layout_column *shown)
{
	return layout->table->def->columns[shown->column].cls == KY_CELL_TIMESTAMP &&
	       shown->width >= TIME_WIDTH;
}

static void measure_columns(struct ky_layout *layout)
{
	struct ky_strbuf text = KY_STRBUF_INIT;

	for (size_t row = 0; row < ky_table_n_rows(layout->table); row++) {
		const struct ky_cell *cells = ky_table_cells(layout->table, row);

		for (size_t i = 0; i < layout->n_shown; i++) {
			struct ky_layout_column *shown = &layout->shown[i];
			int width;

			if (is_measured(layout, shown))
				continue;
			ky_strbuf_clear(&text);
			ky_layout_add_cell(&text, &layout->table->def->columns[shown->column],
					   &cells[shown->column], shown->part);
			width = ky_layout_text_width(ky_strbuf_text(&text));
			shown->width = width > shown->width ? width : shown->width;
		}
	}
	ky_strbuf_fini(&text);
}

int ky_layout_width(const struct ky_layout *layout, bool least)
{
	int width = 0;

	for (size_t i = 0; i < layout->n_shown; i++) {
		const struct ky_layout_column *shown = &layout->shown[i];
		bool last = i + 1 == layout->n_shown;

		width += KY_LAYOUT_GAP + shown->width;
		if (least && last && shown->left && shown->width > LAST_MIN)
			width -= shown->width - LAST_MIN;
	}
	return width;
}

static const char *layout_name(const struct ky_layout *layout, const struct ky_layout_column *shown)
{
	const char *called = layout->table->def->columns[shown->column].called;

	return called ? called : shown->heading;
}

/* Take the most dispensable columns away until the rest fits; their names go to @left_out. */
static void fit_columns(struct ky_layout *layout, struct ky_strbuf *left_out)
{
	int columns = layout->options->columns;

	while (columns && ky_layout_width(layout, true) > columns) {
		size_t worst = 0;

		for (size_t i = 1; i < layout->n_shown; i++) {
			if (layout->shown[i].spare > layout->shown[worst].spare)
				worst = i;
		}
		if (!layout->shown[worst].spare)
			return;
		ky_strbuf_adds(left_out, left_out->len ? ", " : "");
		ky_foreign_adds(left_out, layout_name(layout, &layout->shown[worst]));
		if (layout->bar_column >= 0 &&
		    layout->table->def->columns[layout->bar_column].bar == KY_BAR_ROOM)
			layout->bar_column = -1;
		layout->n_shown--;
		memmove(&layout->shown[worst], &layout->shown[worst + 1],
			(layout->n_shown - worst) * sizeof(*layout->shown));
	}
}

/* What still does not fit is a long text within the line: the widest one gives way. */
static void narrow_texts(struct ky_layout *layout)
{
	int over = layout->options->columns
			   ? ky_layout_width(layout, true) - layout->options->columns
			   : 0;
	struct ky_layout_column *widest = NULL;

	for (size_t i = 0; over > 0 && i + 1 < layout->n_shown; i++) {
		struct ky_layout_column *shown = &layout->shown[i];

		if (shown->left && (!widest || shown->width > widest->width))
			widest = shown;
	}
	if (!widest || widest->width <= LAST_MIN)
		return;
	widest->is_cut = true;
	widest->width = widest->width - over > LAST_MIN ? widest->width - over : LAST_MIN;
}

static void size_bar(struct ky_layout *layout)
{
	const struct ky_table *table = layout->table;
	int room = layout->options->columns ? layout->options->columns -
						      ky_layout_width(layout, false) - KY_LAYOUT_GAP
					    : BAR_MAX;

	if (layout->bar_column < 0 || room < BAR_MIN)
		return;
	layout->bar_width = room > BAR_MAX ? BAR_MAX : room;
	layout->bar_full = table->def->columns[layout->bar_column].bar == KY_BAR_WHOLE ? 1 : 0;
	for (size_t i = 0; !layout->bar_full || i < ky_table_n_rows(table); i++) {
		double value;

		if (i >= ky_table_n_rows(table))
			break;
		value = ky_cell_number(&ky_table_cells(table, i)[layout->bar_column]);
		if (table->def->columns[layout->bar_column].bar != KY_BAR_WHOLE &&
		    value > layout->bar_full)
			layout->bar_full = value;
	}
}

void ky_layout_init(struct ky_layout *layout, const struct ky_table *table,
		    const struct ky_render_options *options, struct ky_strbuf *left_out)
{
	*layout = (struct ky_layout){.table = table, .options = options, .bar_column = -1};
	choose_columns(layout);
	measure_columns(layout);
	fit_columns(layout, left_out);
	narrow_texts(layout);
	size_bar(layout);
}
