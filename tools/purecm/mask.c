/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Anonymization: see mask.h. Addresses are represented as GIDs, as everywhere; GUIDs and link
 * addresses too, with prefixes of their own. The n-th address of a kind is replaced by number n.
 */
#include "tools/purecm/mask.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/field.h"

#define GUID_TEXT_GROUPS 4
#define MAC_BYTES	 6
#define TOKEN_BYTES	 64 /* longer than any address */

enum kind {
	KIND_IP4,
	KIND_IP6,
	KIND_LINK_LOCAL,
	KIND_GUID,
	KIND_MAC,
	N_KINDS,
};

struct alias {
	struct mad_gid is;
	struct mad_gid becomes;
};

struct mask {
	struct alias *alias;
	size_t n;
	size_t room;
	uint32_t of_kind[N_KINDS];
};

/* The number of an alias is stored in its last bytes. */
static const struct mad_gid aliases[N_KINDS] = {
	[KIND_IP4] = { { [10] = 0xff, 0xff, 198, 18 } },
	[KIND_IP6] = { { 0x20, 0x01, 0x0d, 0xb8 } },
	[KIND_LINK_LOCAL] = { { 0xfe, 0x80 } },
	[KIND_GUID] = { { [8] = 0x02 } },
	[KIND_MAC] = { { [10] = 0x02 } },
};

struct mask *mask_new(void)
{
	return calloc(1, sizeof(struct mask));
}

void mask_free(struct mask *mask)
{
	if (mask)
		free(mask->alias);
	free(mask);
}

/* Out of memory: several addresses share one alias. */
static struct alias *add_alias(struct mask *mask, const struct mad_gid *is, enum kind kind)
{
	static struct alias shared;
	const size_t room = mask->room ? 2 * mask->room : 64;
	struct alias *alias = mask->n < mask->room
				      ? mask->alias
				      : realloc(mask->alias, room * sizeof(*mask->alias));
	uint32_t number;

	if (alias && mask->n == mask->room)
		mask->room = room;
	if (alias)
		mask->alias = alias;
	alias = alias ? &mask->alias[mask->n++] : &shared;
	number = htonl(++mask->of_kind[kind]);
	*alias = (struct alias){ *is, aliases[kind] };
	memcpy(&alias->becomes.raw[14], (uint8_t *)&number + 2, 2);
	if (kind != KIND_IP4)
		alias->becomes.raw[13] |= ((uint8_t *)&number)[1];
	return alias;
}

static void mask_bytes(struct mask *mask, struct mad_gid *gid, enum kind kind)
{
	size_t i;

	for (i = 0; i < mask->n; i++) {
		if (memcmp(&mask->alias[i].is, gid, sizeof(*gid)) == 0) {
			*gid = mask->alias[i].becomes;
			return;
		}
	}
	*gid = add_alias(mask, gid, kind)->becomes;
}

/* --- addresses ------------------------------------------------------------ */

/* Unspecified, loopback and broadcast addresses, and substitutes for LIDs. */
static bool says_nothing(const struct mad_gid *gid)
{
	static const struct mad_gid none, loopback = { { [15] = 1 } };

	if (observation_lid(gid))
		return true;
	if (observation_is_ip4(gid))
		return gid->raw[12] == 0 || gid->raw[12] == 127 || gid->raw[12] == 255;
	return memcmp(gid, &none, sizeof(none)) == 0 ||
	       memcmp(gid, &loopback, sizeof(loopback)) == 0;
}

static void mask_gid(struct mask *mask, struct mad_gid *gid)
{
	if (says_nothing(gid))
		return;
	if (observation_is_ip4(gid))
		mask_bytes(mask, gid, KIND_IP4);
	else
		mask_bytes(mask, gid,
			   gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80 ? KIND_LINK_LOCAL
									       : KIND_IP6);
}

static uint64_t mask_guid(struct mask *mask, uint64_t guid)
{
	struct mad_gid gid = { { 0 } };
	unsigned int i;

	if (!guid)
		return 0;
	for (i = 0; i < 8; i++)
		gid.raw[8 + i] = (uint8_t)(guid >> (56 - 8 * i));
	mask_bytes(mask, &gid, KIND_GUID);
	for (guid = 0, i = 0; i < 8; i++)
		guid = guid << 8 | gid.raw[8 + i];
	return guid;
}

/* --- messages ------------------------------------------------------------- */

/* Keeps the IP CM header, masked, and clears the program's data. */
static void mask_private_data(struct mask *mask, uint8_t *data, size_t bytes, bool has_header)
{
	struct cma_hdr cma;
	struct mad_gid gid;
	uint8_t *addrs[2];
	size_t i;

	if (has_header)
		wire_decode(&cma_hdr_layout, data, &cma);
	memset(data, 0, bytes);
	if (!has_header || (cma.ip_version != 4 && cma.ip_version != 6))
		return;
	addrs[0] = cma.src_addr;
	addrs[1] = cma.dst_addr;
	for (i = 0; i < 2; i++) {
		memcpy(gid.raw, addrs[i], 16);
		if (cma.ip_version == 4)
			gid = observation_gid_of_ip4(addrs[i] + 12);
		mask_gid(mask, &gid);
		memset(addrs[i], 0, 12);
		if (cma.ip_version == 6)
			memcpy(addrs[i], gid.raw, 12);
		memcpy(addrs[i] + 12, gid.raw + 12, 4);
	}
	wire_encode(&cma_hdr_layout, &cma, data);
}

static bool has_ip_header(const struct cm_msg *msg)
{
	if (msg->hdr.attr_id == CM_ATTR_REQ)
		return cma_service_is_ip(msg->req.service_id);
	return msg->hdr.attr_id == CM_ATTR_SIDR_REQ && cma_service_is_ip(msg->sidr_req.service_id);
}

static void mask_field(struct mask *mask, const struct wire_field *field, struct cm_msg *msg)
{
	uint8_t *at = (uint8_t *)&msg->req + field->offset;
	struct mad_gid gid;
	uint64_t guid;

	if (field->look == WIRE_GID) {
		memcpy(&gid, at, sizeof(gid));
		mask_gid(mask, &gid);
		memcpy(at, &gid, sizeof(gid));
	} else if (field->look == WIRE_DATA) {
		mask_private_data(mask, at, field->size, has_ip_header(msg));
	} else if (strstr(field->name, "guid")) {
		guid = mask_guid(mask, field_uint(field, &msg->req));
		memcpy(at, &guid, sizeof(guid));
	}
}

bool mask_observation(struct mask *mask, struct observation *observation)
{
	const struct wire_layout *layout;
	struct cm_msg msg;
	size_t i;

	if (!observation_is_cm(observation) || cm_msg_decode(observation->mad, MAD_BYTES, &msg))
		return false;
	layout = cm_msg_layout(msg.hdr.attr_id);
	for (i = 0; i < layout->n_fields; i++)
		mask_field(mask, &layout->field[i], &msg);
	cm_msg_encode(&msg, observation->mad);
	mask_gid(mask, &observation->src);
	mask_gid(mask, &observation->dst);
	observation->frame = NULL; /* contains the addresses too */
	return true;
}

/* --- text ----------------------------------------------------------------- */

static bool print_ip(struct mask *mask, const char *token, FILE *out)
{
	char text[WHO_BYTES];
	struct mad_gid gid;
	uint8_t ip4[4];
	bool is_mapped = false;

	if (inet_pton(AF_INET, token, ip4) == 1)
		gid = observation_gid_of_ip4(ip4);
	else if (inet_pton(AF_INET6, token, gid.raw) == 1)
		is_mapped = observation_is_ip4(&gid);
	else
		return false;
	mask_gid(mask, &gid);
	fprintf(out, "%s%s", is_mapped ? "::ffff:" : "", who_str(&gid, text));
	return true;
}

static bool print_guid(struct mask *mask, const char *token, FILE *out)
{
	unsigned int group[GUID_TEXT_GROUPS], i;
	uint64_t guid = 0;
	int n = 0;

	if (sscanf(token, "%4x:%4x:%4x:%4x%n", &group[0], &group[1], &group[2], &group[3], &n) !=
		    GUID_TEXT_GROUPS ||
	    token[n])
		return false;
	for (i = 0; i < GUID_TEXT_GROUPS; i++)
		guid = guid << 16 | group[i];
	guid = mask_guid(mask, guid);
	for (i = 0; i < GUID_TEXT_GROUPS; i++)
		fprintf(out, "%s%04x", i ? ":" : "",
			(unsigned int)(guid >> (48 - 16 * i)) & 0xffff);
	return true;
}

static bool print_mac(struct mask *mask, const char *token, FILE *out)
{
	struct mad_gid mac = { { 0 } };
	uint8_t *at = mac.raw + sizeof(mac) - MAC_BYTES;
	int n = 0, i;

	if (sscanf(token, "%2hhx:%2hhx:%2hhx:%2hhx:%2hhx:%2hhx%n", &at[0], &at[1], &at[2], &at[3],
		   &at[4], &at[5], &n) != MAC_BYTES ||
	    token[n])
		return false;
	mask_bytes(mask, &mac, KIND_MAC);
	for (i = 0; i < MAC_BYTES; i++)
		fprintf(out, "%s%02x", i ? ":" : "", at[i]);
	return true;
}

/* Handles "10.77.0.1:7174", and sentences that end with an address. */
static void print_token(struct mask *mask, const char *text, size_t bytes, FILE *out)
{
	char token[TOKEN_BYTES];
	size_t n;

	for (n = bytes < TOKEN_BYTES ? bytes : 0; n; n--) {
		memcpy(token, text, n);
		token[n] = '\0';
		if ((n == bytes || !strchr("0123456789abcdefABCDEF", text[n])) &&
		    (print_ip(mask, token, out) || print_mac(mask, token, out) ||
		     print_guid(mask, token, out)))
			break;
	}
	fwrite(text + n, 1, bytes - n, out);
}

void mask_text(struct mask *mask, const char *text, FILE *out)
{
	static const char in_address[] = "0123456789abcdefABCDEF:.";
	static const char in_word[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	size_t n;

	while (*text) {
		n = strspn(text, in_address);
		/* A word such as "added" only begins like an address. */
		if (n && !strchr(in_word, text[n] ? text[n] : ' ')) {
			print_token(mask, text, n, out);
		} else {
			n = strspn(text, in_word);
			n = n ? n : 1;
			fwrite(text, 1, n, out);
		}
		text += n;
	}
}
