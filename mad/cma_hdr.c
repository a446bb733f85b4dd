/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The field table of the header that RDMA IP CM puts in front of private data, and its service ids.
 */
#include "mad/cma_hdr.h"

/* IBTA vol. 1, annex A11: service ids 0x0000000001000000 to 0x0000000001ffffff are the IP CM's. */
#define CMA_SERVICE_BLOCK 0x0000000001000000ull
#define CMA_SERVICE_MASK  0xffffffffff000000ull

/* clang-format off */
/* IBTA vol. 1, annex A11, IP CM private data: major and minor version share the first byte. */
static const struct wire_field cma_hdr_fields[] = {
	WIRE(cma_hdr, cma_version, 0, 0, 8),
	WIRE(cma_hdr, ip_version, 1, 0, 4),
	WIRE(cma_hdr, src_port, 2, 0, 16),
	WIRE_ADDR(cma_hdr, src_addr, 4),
	WIRE_ADDR(cma_hdr, dst_addr, 20),
};
/* clang-format on */

const struct wire_layout cma_hdr_layout =
	WIRE_LAYOUT("CMA", cma_hdr, cma_hdr_fields, CMA_HDR_BYTES);

bool cma_hdr_read(const uint8_t *data, struct cma_hdr *ret)
{
	wire_decode(&cma_hdr_layout, data, ret);
	return ret->cma_version == 0 && (ret->ip_version == 4 || ret->ip_version == 6);
}

uint64_t cma_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

bool cma_service_is_ip(uint64_t service_id)
{
	return (service_id & CMA_SERVICE_MASK) == CMA_SERVICE_BLOCK;
}
