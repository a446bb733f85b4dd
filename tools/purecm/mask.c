/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Anonymization: see mask.h. Addresses are represented as GIDs, as everywhere; GUIDs and link
 * addresses too, with prefixes of their own. The n-th address of a kind is replaced by number n.
 */
#include "tools/purecm/mask.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/field.h"

#define HEX		 "0123456789abcdefABCDEF"
#define GUID_TEXT_GROUPS 4
#define GUID_DIGITS	 16
#define GUID_DIGITS_MIN	 10 /* more than a comm id's */
#define MAC_BYTES	 6
#define IPOIB_BYTES	 20
#define PAIRS_MAX	 20
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
	static const struct mad_gid loopback = { { [15] = 1 } };

	if (observation_lid(gid))
		return true;
	if (observation_is_ip4(gid))
		return gid->raw[12] == 0 || gid->raw[12] == 127 || gid->raw[12] == 255;
	return gid_is_zero(gid) || gid_is_same(gid, &loopback);
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
		mask_private_data(mask, at, field->size, ip_header_of(msg));
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

	if (!observation_decode(observation, &msg))
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

static bool print_gid(struct mask *mask, struct mad_gid gid, const char *separator, FILE *out)
{
	size_t i;

	mask_gid(mask, &gid);
	for (i = 0; i < sizeof(gid.raw); i++)
		fprintf(out, "%s%02x", i ? separator : "", gid.raw[i]);
	return true;
}

/* "0002:c903:000a:1b2c" */
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

/* Return: how many pairs of digits with one separator between them a token is; 0 if it is not. */
static size_t read_pairs(const char *token, char separator, uint8_t bytes[PAIRS_MAX])
{
	size_t n = 0;

	for (; n < PAIRS_MAX; n++, token += separator ? 3 : 2) {
		if (!isxdigit((unsigned char)token[0]) || !isxdigit((unsigned char)token[1]))
			return 0;
		sscanf(token, "%2hhx", &bytes[n]);
		if (!token[2])
			return n + 1;
		if (separator && token[2] != separator)
			return 0;
	}
	return 0;
}

/* MACs, and link addresses of IP over InfiniBand: four bytes and a GID. */
static bool print_link(struct mask *mask, const char *token, FILE *out)
{
	const char separator[] = { strchr(token, '-') ? '-' : ':', '\0' };
	uint8_t bytes[PAIRS_MAX];
	const size_t n = read_pairs(token, *separator, bytes);
	struct mad_gid gid = { { 0 } };
	size_t i;

	if (n == IPOIB_BYTES) {
		for (i = 0; i < IPOIB_BYTES - sizeof(gid); i++)
			fprintf(out, "%02x%s", bytes[i], separator);
		memcpy(gid.raw, bytes + IPOIB_BYTES - sizeof(gid), sizeof(gid));
		return print_gid(mask, gid, separator, out);
	}
	if (n != MAC_BYTES)
		return false;
	memcpy(gid.raw + sizeof(gid) - MAC_BYTES, bytes, MAC_BYTES);
	mask_bytes(mask, &gid, KIND_MAC);
	for (i = 0; i < MAC_BYTES; i++)
		fprintf(out, "%s%02x", i ? separator : "", gid.raw[sizeof(gid) - MAC_BYTES + i]);
	return true;
}

/* Digits alone: a GID, a GUID, and with 0x also one whose leading zeros are left out. */
static bool print_digits(struct mask *mask, const char *token, FILE *out)
{
	const bool has_0x = token[0] == '0' && tolower((unsigned char)token[1]) == 'x';
	const char *digits = token + (has_0x ? 2 : 0);
	const size_t n = strlen(digits);
	uint8_t bytes[PAIRS_MAX];
	struct mad_gid gid;

	if (!n || digits[strspn(digits, HEX)])
		return false;
	if (n == 2 * sizeof(gid) && read_pairs(digits, '\0', bytes) == sizeof(gid)) {
		memcpy(gid.raw, bytes, sizeof(gid));
		fputs(has_0x ? "0x" : "", out);
		return print_gid(mask, gid, "", out);
	}
	/* A number in decimal may have as many digits; a GUID begins with a vendor's. */
	if (n > GUID_DIGITS || n < (has_0x ? GUID_DIGITS_MIN : GUID_DIGITS) ||
	    (!has_0x && digits[strspn(digits, "0123456789")] == '\0' && digits[0] != '0'))
		return false;
	fprintf(out, "%s%016" PRIx64, has_0x ? "0x" : "",
		mask_guid(mask, strtoull(digits, NULL, 16)));
	return true;
}

static bool may_end(const char *text, size_t n)
{
	const char after = text[n], last = text[n - 1];

	/* 10.77.0.1a is an address and a letter; fd00::1a is not fd00::1. */
	return last != '-' && !isdigit((unsigned char)after) &&
	       (!isxdigit((unsigned char)after) || memchr(text, '.', n));
}

/* Return: the bytes of the longest address that begins there, which is printed; 0 if none does. */
static size_t print_address(struct mask *mask, const char *text, FILE *out)
{
	size_t n = strspn(text, HEX "xX:.-");
	char token[TOKEN_BYTES];

	for (n = n < TOKEN_BYTES ? n : TOKEN_BYTES - 1; n > 1; n--) {
		memcpy(token, text, n);
		token[n] = '\0';
		if (may_end(text, n) &&
		    (print_ip(mask, token, out) || print_link(mask, token, out) ||
		     print_guid(mask, token, out) || print_digits(mask, token, out)))
			return n;
	}
	return 0;
}

/* An address may begin after what is no letter or digit, and with a digit after a letter. */
static bool may_begin(char before, char first)
{
	if (first == ':')
		return true;
	return !isalnum((unsigned char)before) ||
	       (isdigit((unsigned char)first) && isalpha((unsigned char)before));
}

void mask_text(struct mask *mask, const char *text, FILE *out)
{
	char before = ' ';
	size_t n;

	while (*text) {
		n = may_begin(before, *text) ? print_address(mask, text, out) : 0;
		if (!n) {
			putc(*text, out);
			n = 1;
		}
		text += n;
		before = text[-1];
	}
}
