/* SPDX-License-Identifier: BSD-2-Clause */
/* A fake ibacm: see fake_ibacm.h. */
#include "tests/unit/lib/fake_ibacm.h"

struct fake_ibacm fake_ibacm;
static bool is_here;

void fake_ibacm_begin(void)
{
	is_here = true;
	fake_ibacm = (struct fake_ibacm){ .n_asked = 0 };
}

int __real_ibacm_ask(struct ibacm *acm, const struct ibacm_question *question,
		     struct ibacm_answer *ret);
int __wrap_ibacm_ask(struct ibacm *acm, const struct ibacm_question *question,
		     struct ibacm_answer *ret);

int __wrap_ibacm_ask(struct ibacm *acm, const struct ibacm_question *question,
		     struct ibacm_answer *ret)
{
	if (!is_here)
		return __real_ibacm_ask(acm, question, ret);
	fake_ibacm.n_asked++;
	fake_ibacm.question = *question;
	if (!fake_ibacm.err)
		*ret = fake_ibacm.answer;
	return fake_ibacm.err;
}
