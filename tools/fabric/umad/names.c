/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of classes, methods and attributes: the printing functions of libibumad. */
#include <infiniband/umad_str.h>
#include <infiniband/umad_types.h>
#include <stddef.h>

static const char *name_of(const char *const *names, size_t n, size_t i)
{
	return i < n && names[i] ? names[i] : "<unknown>";
}

#define NAME_OF(names, i) name_of(names, sizeof(names) / sizeof((names)[0]), i)

const char *umad_class_str(uint8_t mgmt_class)
{
	static const char *const names[] = {
		[0x01] = "Subn (LID routed)",
		[0x03] = "SA",
		[0x04] = "Perf",
		[0x05] = "BM",
		[0x06] = "DevMgt",
		[0x07] = "ComMgt",
		[0x08] = "SNMP",
		[0x81] = "Subn (directed route)",
	};

	return NAME_OF(names, mgmt_class);
}

const char *umad_method_str(uint8_t mgmt_class, uint8_t method)
{
	static const char *const names[] = {
		[0x01] = "Get",	       [0x02] = "Set",		[0x03] = "Send",
		[0x05] = "Trap",       [0x06] = "Report",	[0x07] = "TrapRepress",
		[0x12] = "GetTable",   [0x15] = "Delete",	[0x81] = "GetResp",
		[0x86] = "ReportResp", [0x92] = "GetTableResp", [0x95] = "DeleteResp",
	};

	(void)mgmt_class;
	return NAME_OF(names, method);
}

const char *umad_common_mad_status_str(__be16 status)
{
	return status ? "error" : "success";
}

const char *umad_sa_mad_status_str(__be16 status)
{
	return umad_common_mad_status_str(status);
}

const char *umad_attribute_str(uint8_t mgmt_class, __be16 attr_id)
{
	(void)mgmt_class;
	(void)attr_id;
	return "<unknown>";
}
