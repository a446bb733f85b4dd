/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of methods and attributes of subnet administration: see sa.h.
 */
#include "tools/purecm/sa.h"

#include <stdio.h>
#include <string.h>

static const struct {
	uint8_t method;
	const char *name;
} methods[] = {
	{ 0x01, "Get" },     { 0x02, "Set" },	       { 0x12, "GetTable" },   { 0x15, "Delete" },
	{ 0x81, "GetResp" }, { 0x92, "GetTableResp" }, { 0x95, "DeleteResp" },
};
const struct wire_layout *sa_decode(const uint8_t mad[MAD_BYTES], struct sa_msg *ret)
{
	memset(ret, 0, sizeof(*ret));
	wire_decode(&mad_hdr_layout, mad, &ret->hdr);
	return sa_msg_decode(mad, MAD_BYTES, ret) ? NULL : sa_msg_layout(ret->hdr.attr_id);
}

const char *sa_name(const struct mad_hdr *hdr, char *buf, size_t bytes)
{
	const struct wire_layout *layout = sa_msg_layout(hdr->attr_id);
	const char *method = "method";
	char attr[16];
	size_t i;

	for (i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		if (methods[i].method == hdr->method)
			method = methods[i].name;
	}
	snprintf(attr, sizeof(attr), "0x%x", hdr->attr_id);
	snprintf(buf, bytes, "%s %s", method, layout ? layout->name : attr);
	return buf;
}
