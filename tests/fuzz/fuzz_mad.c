/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Any bytes as a MAD: decoding is safe, printing is safe, and encoding restores the MAD, apart from
 * bits without a row.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mad/cm_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void must_be_stable(const struct cm_msg *msg)
{
	uint8_t once[MAD_BYTES], twice[MAD_BYTES];
	struct cm_msg again;

	cm_msg_encode(msg, once);
	if (cm_msg_decode(once, MAD_BYTES, &again))
		abort();
	cm_msg_encode(&again, twice);
	if (memcmp(once, twice, MAD_BYTES) != 0)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static FILE *nowhere;
	struct cm_msg msg;

	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (cm_msg_decode(data, bytes, &msg))
		return 0;
	cm_msg_print(&msg, nowhere);
	must_be_stable(&msg);
	return 0;
}
