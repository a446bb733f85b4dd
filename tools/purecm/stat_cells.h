/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats the columns of the table of ids, for `purecm stat` and `purecm top`. */
#ifndef TOOLS_PURECM_STAT_CELLS_H
#define TOOLS_PURECM_STAT_CELLS_H

#include "tools/purecm/snapshot.h"

#define STAT_CELL_BYTES 112
#define STAT_GAP	2

enum stat_column {
	STAT_PROCESS,
	STAT_ID,
	STAT_CONNECTION,
	STAT_LOCAL,
	STAT_PEER,
	STAT_DEVICE,
	STAT_QPN,
	STAT_COMM_IDS,
	STAT_AGE,
	STAT_RETRIES,
	STAT_N_COLUMNS,
};

struct stat_cells {
	char text[STAT_N_COLUMNS][STAT_CELL_BYTES];
};

extern const char *const stat_titles[STAT_N_COLUMNS];

/** stat_fill_cells() - format a row */
void stat_fill_cells(const struct snapshot *snapshot, const struct portd_stat_id *id,
		     struct stat_cells *ret);

/** stat_widen() - widen columns to fit a row */
void stat_widen(unsigned int widths[STAT_N_COLUMNS], const struct stat_cells *cells);

#endif
