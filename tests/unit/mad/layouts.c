/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list behind layouts.h.
 */
#include <string.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "mad/sa_msg.h"
#include "tests/unit/mad/layouts.h"

#ifdef __has_builtin
#if __has_builtin(__builtin_clear_padding)
#define CLEAR_PADDING(object) __builtin_clear_padding(object)
#endif
#endif

#ifdef CLEAR_PADDING
const int members_are_known = 1;
#else
const int members_are_known = 0;
#define CLEAR_PADDING(object)
#endif

#define MARK(type)                                     \
	static void mark_##type(void *host)            \
	{                                              \
		struct type *object = host;            \
                                                       \
		memset(object, 0xff, sizeof(*object)); \
		CLEAR_PADDING(object);                 \
	}

MARK(mad_hdr)
MARK(cm_req)
MARK(cm_mra)
MARK(cm_rej)
MARK(cm_rep)
MARK(cm_rtu)
MARK(cm_dreq)
MARK(cm_drep)
MARK(cm_sidr_req)
MARK(cm_sidr_rep)
MARK(cm_lap)
MARK(cm_apr)
MARK(cma_hdr)
MARK(sa_hdr)
MARK(sa_path)
MARK(sa_member)
MARK(sa_service)

/* clang-format off */
const struct known_layout known_layouts[] = {
	{ &mad_hdr_layout, mark_mad_hdr },
	{ &cm_req_layout, mark_cm_req },
	{ &cm_mra_layout, mark_cm_mra },
	{ &cm_rej_layout, mark_cm_rej },
	{ &cm_rep_layout, mark_cm_rep },
	{ &cm_rtu_layout, mark_cm_rtu },
	{ &cm_dreq_layout, mark_cm_dreq },
	{ &cm_drep_layout, mark_cm_drep },
	{ &cm_sidr_req_layout, mark_cm_sidr_req },
	{ &cm_sidr_rep_layout, mark_cm_sidr_rep },
	{ &cm_lap_layout, mark_cm_lap },
	{ &cm_apr_layout, mark_cm_apr },
	{ &cma_hdr_layout, mark_cma_hdr },
	{ &sa_hdr_layout, mark_sa_hdr },
	{ &sa_path_layout, mark_sa_path },
	{ &sa_member_layout, mark_sa_member },
	{ &sa_service_layout, mark_sa_service },
};
/* clang-format on */

const int n_known_layouts = sizeof(known_layouts) / sizeof(known_layouts[0]);

int n_known_rows(void)
{
	size_t n = 0;

	for (int i = 0; i < n_known_layouts; i++)
		n += known_layouts[i].layout->n_fields;
	return n;
}

const struct wire_field *known_row(int i)
{
	const struct known_layout *known = known_layouts;

	for (; (size_t)i >= known->layout->n_fields; known++)
		i -= known->layout->n_fields;
	return &known->layout->field[i];
}
