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

/** cma_hdr_read() - from the beginning of private data. Return: false if it is no such header. */
bool cma_hdr_read(const uint8_t *data, struct cma_hdr *ret);

/**
 * cma_service_id() - service id of a port: annex A11
 * @port_space: RDMA_PS_TCP and so on
 * @port:       host byte order
 *
 * Return: the service id, host byte order.
 */
uint64_t cma_service_id(uint16_t port_space, uint16_t port);

/**
 * cma_service_is_ip() - whether private data sent to a service begins with the CMA header
 * @service_id: host byte order
 *
 * Return: true inside the block that annex A11 reserves for the IP CM. It is a hint, for those who
 * only look on: the IPoIB port space is outside and has the header, an AF_IB request of the IB port
 * space is inside and has none. The listener knows.
 */
bool cma_service_is_ip(uint64_t service_id);

#endif
