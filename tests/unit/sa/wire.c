/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet administrator of wire.h.
 */
#include "tests/unit/sa/wire.h"
#include "tests/unit/test.h"

#include <string.h>

struct sent sent[SENT_MAX];
unsigned int n_sent;

void wire_clear(void)
{
	memset(sent, 0, sizeof(sent));
	n_sent = 0;
}

void wire_send(void *arg, const uint8_t mad[MAD_BYTES], unsigned int wait_ms)
{
	(void)arg;
	ck_assert_uint_lt(n_sent, SENT_MAX);
	ck_assert_int_eq(sa_msg_decode(mad, MAD_BYTES, &sent[n_sent].msg), 0);
	memcpy(sent[n_sent].mad, mad, MAD_BYTES);
	sent[n_sent++].wait_ms = wait_ms;
}

void wire_answer(unsigned int n, uint16_t status, uint16_t lid, uint8_t mad[MAD_BYTES])
{
	struct sa_msg msg = sent[n].msg;

	ck_assert_uint_lt(n, n_sent);
	msg.hdr.method = msg.hdr.method == SA_METHOD_DELETE ? 0x95 : 0x81;
	msg.hdr.status = status;
	msg.hdr.tid |= UINT64_C(0xabcdef) << 32; /* the kernel's half */
	if (msg.hdr.attr_id == SA_ATTR_PATH_RECORD)
		msg.path.dlid = lid;
	else
		msg.member.mlid = lid;
	sa_msg_encode(&msg, mad);
}

struct cm_time at_ms(uint64_t ms)
{
	return (struct cm_time){ ms * CM_NS_PER_MS };
}
