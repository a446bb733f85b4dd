/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks of the environment of RDMA on this host: packet filters, namespaces, limits. Part of
 * checkup.h.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "tools/purecm/checkup.h"
#include "tools/purecm/observation.h"

#define ROCE_PORT      "4791"
#define LINE_BYTES     512
#define NAME_BYTES     40
#define PLACE_BYTES    100
#define MEMLOCK_WANTED (64ull << 20)
#define FILES_WANTED   1024
#define NETNS_MODE     "/sys/module/ib_core/parameters/netns_mode"

/* --- packet filters ------------------------------------------------------ */

/* Findings in a list of rules, read line by line. */
struct rules {
	bool drops_roce;
	bool accepts_roce;
	bool drops_rest;
	char table[NAME_BYTES], chain[NAME_BYTES]; /* nft's, around the line */
	char rule[LINE_BYTES + PLACE_BYTES];	   /* the first that drops RoCE, and its place */
};

/* nft prints "table inet filter {", and in it "chain input {". */
static void take_name(const char *line, const char *word, char ret[NAME_BYTES])
{
	size_t bytes = strlen(word);

	if (strncmp(line, word, bytes) == 0)
		snprintf(ret, NAME_BYTES, "%.*s", (int)strcspn(line, "{\n"), line);
	if (ret[0] && ret[strlen(ret) - 1] == ' ')
		ret[strlen(ret) - 1] = '\0';
}

static void take_refusal(const char *line, struct rules *rules)
{
	char place[PLACE_BYTES] = "";

	if (rules->drops_roce)
		return;
	rules->drops_roce = true;
	if (rules->table[0] && rules->chain[0])
		snprintf(place, sizeof(place), " (%s, %s)", rules->table, rules->chain);
	snprintf(rules->rule, sizeof(rules->rule), "%.*s%s", (int)strcspn(line, "\n"), line, place);
}

static bool has_word(const char *line, const char *const *words)
{
	for (; *words; words++) {
		if (strstr(line, *words))
			return true;
	}
	return false;
}

/* Matches a rule without a condition. */
static bool is_for_all(const char *line)
{
	static const char *const rules[] = { "drop", "reject", "-A INPUT -j ", "-A OUTPUT -j ",
					     NULL };
	size_t i;

	for (i = 0; rules[i]; i++) {
		if (strncmp(line, rules[i], strlen(rules[i])) == 0)
			return true;
	}
	return false;
}

/* Removes "counter packets 8 bytes 640 " and "[8:640] ", which may contain any number. */
static void cut_counters(char *line)
{
	int n;

	while (*line) {
		n = 0;
		sscanf(line, "counter packets %*u bytes %*u %n", &n);
		if (!n)
			sscanf(line, "[%*u:%*u] %n", &n);
		if (n)
			memmove(line, line + n, strlen(line + n) + 1);
		else
			line++;
	}
}

/* Whether the ports after dport include RoCE's: "4791", "{ 53, 4000-5000 }", "53,4000:5000". */
static bool is_for_roce(const char *line)
{
	const char *at = strstr(line, "dport");
	unsigned long first, last;
	char *end;

	at = at ? at + strcspn(at, " ") : "";
	for (at += strspn(at, " {"); isdigit((unsigned char)*at); at = end + strspn(end, " ,")) {
		first = last = strtoul(at, &end, 10);
		if (*end == '-' || *end == ':')
			last = strtoul(end + 1, &end, 10);
		if (first <= ROCE_UDP_PORT && ROCE_UDP_PORT <= last)
			return true;
	}
	return false;
}

static void take_rule(char *line, struct rules *rules)
{
	static const char *const refuse[] = { "drop", "reject", "DROP", "REJECT", NULL };
	static const char *const let_in[] = { "accept", "ACCEPT", NULL };
	static const char *const chains[] = { "hook input", "hook output", ":INPUT", ":OUTPUT",
					      NULL };

	line += strspn(line, " \t");
	cut_counters(line);
	take_name(line, "table ", rules->table);
	take_name(line, "chain ", rules->chain);
	if (is_for_roce(line)) {
		if (has_word(line, refuse))
			take_refusal(line, rules);
		rules->accepts_roce |= has_word(line, let_in);
	} else if (has_word(line, chains) || is_for_all(line)) {
		rules->drops_rest |= has_word(line, refuse);
	}
}

/* Return: whether the command could be executed. */
static bool ask_filter(const char *command, struct rules *rules)
{
	FILE *list = popen(command, "re");
	char line[LINE_BYTES];

	if (!list)
		return false;
	while (fgets(line, sizeof(line), list))
		take_rule(line, rules);
	return pclose(list) == 0;
}

static bool is_infiniband_only(const struct checkup *checkup)
{
	unsigned int i, n_roce = 0;

	for (i = 0; i < checkup->n_ports; i++)
		n_roce += check_port_is_roce(&checkup->port[i]);
	return checkup->n_ports && !n_roce;
}

void check_firewall(struct checkup *checkup, struct finding *finding)
{
	static const char path[] = "PATH=$PATH:/usr/sbin:/sbin ";
	struct rules rules = { 0 };
	char nft[64], iptables[96];
	bool asked;

	if (is_infiniband_only(checkup)) {
		found(finding, VERDICT_SKIP, "not checked: no RoCE port");
		return;
	}
	snprintf(nft, sizeof(nft), "%snft list ruleset 2>/dev/null", path);
	snprintf(iptables, sizeof(iptables), "%siptables-save 2>/dev/null", path);
	asked = ask_filter(nft, &rules);
	asked = ask_filter(iptables, &rules) || asked;
	if (!asked) {
		found(finding, VERDICT_NOTE,
		      "cannot be checked: neither nft nor iptables-save "
		      "works for this user");
		found_remedy(finding, "apt install nftables, and run purecm doctor as root");
	} else if (rules.drops_roce) {
		found(finding, VERDICT_BAD, "a rule drops or rejects UDP port " ROCE_PORT ": %s",
		      rules.rule);
	} else if (rules.drops_rest && !rules.accepts_roce) {
		found(finding, VERDICT_BAD,
		      "packets that no rule accepts are dropped, and no rule "
		      "accepts UDP port " ROCE_PORT);
	} else {
		found(finding, VERDICT_OK, "no rule of this host blocks UDP port %s", ROCE_PORT);
	}
}

/* --- namespaces ---------------------------------------------------------- */

enum netns {
	NETNS_FIRST,
	NETNS_OTHER,
	NETNS_UNKNOWN, /* process 1 may not be examined */
};

static enum netns find_netns(void)
{
	struct stat ours, first;

	if (stat("/proc/self/ns/net", &ours) || stat("/proc/1/ns/net", &first))
		return NETNS_UNKNOWN;
	return ours.st_ino == first.st_ino ? NETNS_FIRST : NETNS_OTHER;
}

static bool is_exclusive(void)
{
	char mode[4];

	fd_read_file(NETNS_MODE, mode, sizeof(mode));
	return mode[0] == 'N';
}

void check_namespaces(struct checkup *checkup, struct finding *finding)
{
	enum netns netns = find_netns();
	unsigned int i;

	if (netns == NETNS_FIRST)
		found(finding, VERDICT_OK, "the network namespace is that of process 1");
	else if (netns == NETNS_OTHER)
		found(finding, VERDICT_NOTE, "the network namespace is not that of process 1");
	else
		found(finding, VERDICT_SKIP, "not checked: this user may not examine process 1");
	if (is_exclusive())
		found(finding, VERDICT_NOTE, "each RDMA device belongs to one network namespace");
	for (i = 0; i < checkup->n_ports && netns == NETNS_OTHER; i++) {
		if (strncmp(checkup->port[i].device, "rxe", 3) == 0)
			found(finding, VERDICT_NOTE,
			      "%s may be a soft-RoCE device, which on older "
			      "kernels works in the first namespace only",
			      checkup->port[i].device);
	}
}

/* --- limits -------------------------------------------------------------- */

/* For the kernel, CAP_IPC_LOCK decides, which root may lack, in a container for example. */
static bool may_lock_all(void)
{
	char text[4096];
	const char *at;
	uint64_t caps;

	fd_read_file("/proc/self/status", text, sizeof(text));
	at = strstr(text, "CapEff:");
	return at && sscanf(at, "CapEff: %" SCNx64, &caps) == 1 && caps >> CAP_IPC_LOCK & 1;
}

void check_limits(struct checkup *checkup, struct finding *finding)
{
	struct rlimit memory, files;

	(void)checkup;
	if (getrlimit(RLIMIT_MEMLOCK, &memory) || getrlimit(RLIMIT_NOFILE, &files)) {
		found(finding, VERDICT_NOTE, "cannot be read: %s", strerror(errno));
		return;
	}
	if (memory.rlim_cur == RLIM_INFINITY || may_lock_all())
		found(finding, VERDICT_OK, "locked memory is unlimited");
	else
		found(finding, memory.rlim_cur < MEMLOCK_WANTED ? VERDICT_NOTE : VERDICT_OK,
		      "at most %llu KiB of memory may be locked",
		      (unsigned long long)memory.rlim_cur >> 10);
	found(finding, files.rlim_cur < FILES_WANTED ? VERDICT_NOTE : VERDICT_OK,
	      "at most %llu descriptors may be open", (unsigned long long)files.rlim_cur);
}
