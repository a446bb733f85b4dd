/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header that the RDMA IP CM service (IBTA vol. 1, annex A11) puts in front of the private
 * data of REQ and SIDR_REQ, and the service ids that go with it.
 */
#ifndef MAD_CMA_HDR_H
#define MAD_CMA_HDR_H

#include <stdbool.h>
#include <stdint.h>

#include "mad/wire.h"

#define CMA_HDR_BYTES 36

struct cma_hdr {
	uint8_t cma_version; /* 0 */
	uint8_t ip_version;  /* 4 or 6 */
	uint16_t src_port;
	uint8_t src_addr[16]; /* IPv4 in the last four bytes */
	uint8_t dst_addr[16];
};

extern const struct wire_layout cma_hdr_layout;

/** cma_hdr_read() - decode the header from private data. Return: false if there is none. */
bool cma_hdr_read(const uint8_t *data, struct cma_hdr *ret);

/**
 * cma_service_id() - service id of a port, annex A11
 * @port_space: RDMA_PS_TCP and so on
 * @port:       in host byte order
 *
 * Return: the service id in host byte order.
 */
uint64_t cma_service_id(uint16_t port_space, uint16_t port);

/**
 * cma_service_is_ip() - guess whether private data for a service begins with the CMA header
 * @service_id: in host byte order
 *
 * For observers only; a listener knows. The IPoIB port space is outside the block and has the
 * header; AF_IB requests of the IB port space are inside and have none.
 *
 * Return: true inside the block that annex A11 reserves for the IP CM.
 */
bool cma_service_is_ip(uint64_t service_id);

#endif
