/* SPDX-License-Identifier: BSD-2-Clause */
/* The claim of a client's BIND. */
#ifndef TESTS_UNIT_PORTD_CLAIMS_H
#define TESTS_UNIT_PORTD_CLAIMS_H

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "lib/portd/proto/proto.h"

/** claim_on() - claim a port of RDMA_PS_TCP at an IPv4 address, "0.0.0.0" for all. */
static inline struct portd_claim claim_on(uint32_t claim_id, const char *addr, uint16_t port)
{
	struct portd_claim claim = { .claim_id = claim_id,
				     .ps = RDMA_PS_TCP,
				     .local_family = 4,
				     .afonly = 1,
				     .local_port = port };

	inet_pton(AF_INET, addr, claim.local_addr + 12);
	return claim;
}

#endif
