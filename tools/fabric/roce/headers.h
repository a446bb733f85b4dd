/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The transport headers of a RoCE v2 packet as host structs, named as in IBTA vol. 1, 9.2 and 9.3.
 * codec.c has their encoding.
 */
#ifndef FABRIC_ROCE_HEADERS_H
#define FABRIC_ROCE_HEADERS_H

#include <stdint.h>

#define BTH_BYTES	     12
#define DETH_BYTES	     8
#define RETH_BYTES	     16
#define ATOMIC_ETH_BYTES     28
#define AETH_BYTES	     4
#define ATOMIC_ACK_ETH_BYTES 8
#define IMM_DT_BYTES	     4
#define IETH_BYTES	     4
#define XRCETH_BYTES	     4
#define FETH_BYTES	     4
#define ICRC_BYTES	     4
#define HEADERS_BYTES_MAX    (BTH_BYTES + XRCETH_BYTES + ATOMIC_ETH_BYTES)

/* Base transport header, 9.2. */
struct roce_bth {
	uint8_t opcode;
	uint8_t solicited_event;
	uint8_t mig_req;
	uint8_t pad_cnt;
	uint8_t tver;
	uint16_t pkey;
	uint8_t fecn, becn; /* RoCE v2: congestion, A17.9 */
	uint32_t dest_qp;
	uint8_t ack_req;
	uint32_t psn;
};

/* Datagram extended transport header, 9.3.1. */
struct roce_deth {
	uint32_t qkey;
	uint32_t src_qp;
};

/* RDMA extended transport header, 9.3.3. */
struct roce_reth {
	uint64_t virtual_address;
	uint32_t rkey;
	uint32_t dma_length;
};

/* Atomic extended transport header, 9.3.4. */
struct roce_atomic_eth {
	uint64_t virtual_address;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
};

/* ACK extended transport header, 9.3.5.1. */
struct roce_aeth {
	uint8_t kind;  /* enum aeth_kind */
	uint8_t value; /* credits, RNR timer, or NAK code */
	uint32_t msn;
};

/* Table 43: the upper bits of a syndrome. */
enum aeth_kind {
	AETH_ACK = 0,
	AETH_RNR_NAK = 1,
	AETH_NAK = 3,
};

#define AETH_NO_CREDITS 31 /* 9.7.7.2: no end-to-end flow control by the responder */

/* ATOMIC ACK extended transport header, 9.3.5.3. */
struct roce_atomic_ack_eth {
	uint64_t original;
};

/* Immediate data, 9.3.6, in the program's byte order; or the R_Key to invalidate, 9.3.7. */
struct roce_imm_dt {
	uint8_t data[4];
};

struct roce_ieth {
	uint32_t rkey;
};

/* Flush extended transport header, annex A19. */
struct roce_feth {
	uint8_t selectivity; /* 0: a range, 1: a region */
	uint8_t placement;   /* bitmap; 1: visible to all, 2: persistent */
};

#define FETH_PLACEMENT_BITS 4 /* below those of the selectivity */

/* XRC extended transport header, annex A14: precedes other extended headers in all requests. */
struct roce_xrceth {
	uint32_t srqn;
};

#endif
