/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which sockets of which programs become ours: see config.h.
 */
#include "lib/rsocket/preload/config.h"

#include <errno.h>
#include <infiniband/ib.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#define FILE_NAME "/etc/rdma/rsocket/preload_config"
#define WORD	  64

struct name {
	const char *word;
	int value;
};

static const struct name domains[] = {
	{"INET",	  AF_INET },
	       { "AF_INET",  AF_INET },
	 { "PF_INET",  AF_INET },
	{ "INET6",	   AF_INET6},
	       { "AF_INET6", AF_INET6},
	 { "PF_INET6", AF_INET6},
	{ "IB",	AF_IB   },
	       { "AF_IB",	  AF_IB	},
	 { "PF_IB",    AF_IB	  },
	{ NULL,	0	  },
};

static const struct name types[] = {
	{"STREAM",	    SOCK_STREAM},
	{ "SOCK_STREAM", SOCK_STREAM},
	{ "DGRAM",	   SOCK_DGRAM },
	{ "SOCK_DGRAM",	SOCK_DGRAM },
	{ NULL,		0	  },
};

static const struct name protocols[] = {
	{"TCP",		 IPPROTO_TCP},
	{ "IPPROTO_TCP", IPPROTO_TCP},
	{ "UDP",	 IPPROTO_UDP},
	{ "IPPROTO_UDP", IPPROTO_UDP},
	{ NULL,		0	  },
};

static bool word_means(const char *word, const struct name *names, int value)
{
	if (strcmp(word, "*") == 0)
		return true;
	for (; names->word; names++)
		if (strcasecmp(word, names->word) == 0)
			return names->value == value;
	return false;
}

static int protocol_or_default(int type, int protocol)
{
	if (protocol)
		return protocol;
	return type == SOCK_STREAM ? IPPROTO_TCP : IPPROTO_UDP;
}

bool config_matches(const char *line, const char *program, int domain, int type, int protocol,
		    bool *is_entry)
{
	char word[4][WORD];
	int n = sscanf(line, "%63s %63s %63s %63s", word[0], word[1], word[2], word[3]);

	*is_entry = n == 4 && word[0][0] != '#';
	if (!*is_entry)
		return false;
	if (strcmp(word[0], "*") != 0 && strncasecmp(program, word[0], strlen(word[0])) != 0)
		return false;
	return word_means(word[1], domains, domain) && word_means(word[2], types, type) &&
	       word_means(word[3], protocols, protocol_or_default(type, protocol));
}

/* Datagrams only where they are asked for: they have nothing to fall back to. */
static bool default_wants(int domain, int type)
{
	return (domain == AF_INET || domain == AF_INET6) && type == SOCK_STREAM;
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
	return any ? wanted : default_wants(domain, type);
}
