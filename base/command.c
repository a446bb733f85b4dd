/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether the calling thread may have a device execute a command: see command.h. */
#include "base/command.h"

static __thread unsigned int n_forbidding __attribute__((tls_model("initial-exec")));

void command_forbid(void)
{
	n_forbidding++;
}

void command_permit(void)
{
	assert(n_forbidding);
	n_forbidding--;
}

void command_permit_all(void)
{
	n_forbidding = 0;
}

bool command_is_permitted(void)
{
	return n_forbidding == 0;
}
