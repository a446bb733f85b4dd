/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel with rtnetlink responses of the test's own. */
#ifndef TESTS_UNIT_NET_ANSWERS_H
#define TESTS_UNIT_NET_ANSWERS_H

#include <linux/netlink.h>
#include <stdint.h>

struct answer {
	struct nlmsghdr hdr; /* the sequence number is filled in */
	uint8_t body[256];
};

/** answers_by() - have @choose fill in the response to each request. */
void answers_by(void (*choose)(const struct nlmsghdr *request, struct answer *ret));

/** announce() - announce a message of this type, without content. */
void announce(uint16_t type);

#endif
