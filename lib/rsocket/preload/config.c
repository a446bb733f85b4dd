/* SPDX-License-Identifier: BSD-2-Clause */
/* Selection of sockets that use RDMA: see preload.h. */
#include "lib/rsocket/preload/preload.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define FILE_NAME "/etc/rdma/rsocket/preload_config"
#define WORD	  64

/* A word of a configuration line, also valid with one of the prefixes. */
struct word {
	const char *prefixes[2]; /* or NULL */
	const char *text;
	int value;
};

/* clang-format off */
static const struct word domains[] = {
	{ { "AF_", "PF_" }, "INET", AF_INET },
	{ { "AF_", "PF_" }, "INET6", AF_INET6 },
	{ { "AF_", "PF_" }, "IB", AF_IB },
	{ .text = NULL },
};

static const struct word types[] = {
	{ { "SOCK_" }, "STREAM", SOCK_STREAM },
	{ { "SOCK_" }, "DGRAM", SOCK_DGRAM },
	{ .text = NULL },
};

static const struct word protocols[] = {
	{ { "IPPROTO_" }, "TCP", IPPROTO_TCP },
	{ { "IPPROTO_" }, "UDP", IPPROTO_UDP },
	{ .text = NULL },
};
/* clang-format on */

static bool is_word_for(const char *word, const struct word *known, int value)
{
	if (strcmp(word, "*") == 0)
		return true;
	for (; known->text; known++) {
		const char *text = word;

		for (int i = 0; i < 2; i++)
			if (known->prefixes[i] &&
			    strncasecmp(word, known->prefixes[i], strlen(known->prefixes[i])) == 0)
				text = word + strlen(known->prefixes[i]);
		if (strcasecmp(text, known->text) == 0)
			return known->value == value;
	}
	return false;
}

bool config_matches(const char *line, const char *program, int domain, int type, int protocol,
		    bool *is_entry)
{
	char word[4][WORD];
	int n = sscanf(line, "%63s %63s %63s %63s", word[0], word[1], word[2], word[3]);

	if (!protocol)
		protocol = type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
	*is_entry = n == 4 && word[0][0] != '#';
	if (!*is_entry)
		return false;
	if (strcmp(word[0], "*") != 0 && strncasecmp(program, word[0], strlen(word[0])) != 0)
		return false;
	return is_word_for(word[1], domains, domain) && is_word_for(word[2], types, type) &&
	       is_word_for(word[3], protocols, protocol);
}

bool config_wants(int domain, int type, int protocol)
{
	FILE *in = fopen(FILE_NAME, "re");
	bool any = false, wanted = false;
	char line[256];

	while (in && !wanted && fgets(line, sizeof(line), in)) {
		bool is_entry;

		wanted = config_matches(line, program_invocation_short_name, domain, type, protocol,
					&is_entry);
		any |= is_entry;
	}
	if (in)
		fclose(in);
	if (any)
		return wanted;
	/* Datagram sockets have no fallback, so they must be configured. */
	return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
}
