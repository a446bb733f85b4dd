/* SPDX-License-Identifier: BSD-2-Clause */
/* purecm doctor: checks all requirements of this host, in order, and the path to an address. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/purecm/checkup.h"
#include "tools/purecm/subcommand.h"
#include "tools/purecm/json.h"

#define NAME_COLUMNS 14
#define INDENT	     (5 + NAME_COLUMNS)

struct check {
	const char *name;
	check_function *run;
	const char *remedy;
	const char *skipped; /* why it finds nothing at all */
};

/* clang-format off */
static const struct check host_checks[] = {
	{ "devices", check_devices,
	  "Load the device's driver, or make a soft-RoCE device: modprobe rdma_rxe && rdma link add rxe0 type rxe netdev INTERFACE; or try programs without a device: purecm fabric run", NULL },
	{ "ports", check_ports,
	  "ip link set INTERFACE up; `rdma link` shows the interface of each device", NULL },
	{ "GIDs", check_gids,
	  "Give the interface of the port an IP address: ip addr add ADDRESS/PREFIX dev INTERFACE",
	  "not checked: no active port" },
	{ "MTU", check_mtu,
	  "ip link set INTERFACE mtu 9000, at both ends and in between; the RoCE MTU is the largest power of two that fits into it with 96 bytes of headers",
	  "not checked: no active port" },
	{ "pkeys", check_pkeys,
	  "Add the port to the default partition in the subnet manager's configuration",
	  "not checked: no port" },
	{ "SM", check_subnet_manager,
	  "Start a subnet manager on the fabric: systemctl start opensm",
	  "only InfiniBand needs a subnet manager" },
	{ "umad", check_umad,
	  "modprobe ib_umad; run as root, or run cmportd as root, which serves all users",
	  "not checked: no port" },
	{ "CM class", check_manager,
	  "modprobe -r rdma_ucm rdma_cm ib_cm",
	  "not checked: no port" },
	{ "cmportd", check_cmportd,
	  "systemctl enable --now cmportd.socket; see cmportd(8)", NULL },
	{ "port settings", check_port_settings,
	  "Mend the line; cmportd(8) has the format. Then: systemctl reload cmportd",
	  "not checked: no RoCE port" },
	{ "fast path", check_fast_path,
	  "Nothing is lost. A hypervisor, a switch or the device drops MADs that do not leave from QP1: its administrator may allow them; or cmportd --qp1, which does not try",
	  "not checked: no port of RoCE" },
	{ "library", check_library,
	  "purecm run -- PROGRAM; or install purecm and run ldconfig", NULL },
	{ "firewall", check_firewall,
	  "Allow UDP port 4791 in both directions, in each chain that drops it: nft insert rule inet filter input udp dport 4791 accept", NULL },
	{ "namespaces", check_namespaces,
	  "rdma system show; rdma system set netns shared, or rdma dev set DEVICE netns NAME", NULL },
	{ "limits", check_limits,
	  "ulimit -l unlimited; ulimit -n 65536; for services LimitMEMLOCK= and LimitNOFILE=", NULL },
};

static const struct check path_checks[] = {
	{ "address", check_address,
	  "Give a host name, an IPv4 or an IPv6 address; a link-local one with its interface: fe80::1%eth0", NULL },
	{ "route", check_route,
	  "ip route get ADDRESS; ip route add ADDRESS/PREFIX dev INTERFACE",
	  "not checked: no address" },
	{ "interface", check_interface,
	  "ip link show; ip link set INTERFACE up",
	  "not checked: no route" },
	{ "source GID", check_source_gid,
	  "rdma link show",
	  "not checked: no interface" },
	{ "neighbour", check_neighbour,
	  "Check that the host is up, is in the same VLAN and answers ping; ip neigh show",
	  "not checked: no route" },
	{ "path MTU", check_path_mtu,
	  "Give the interfaces of both hosts, and the switches in between, the same MTU: ip link set INTERFACE mtu 9000",
	  "not checked: no RoCE port" },
};
/* clang-format on */

struct doctor {
	const char *target;
	bool json;
	unsigned int width;
	unsigned int n_bad;
};

static void take_address(void *input, char *address, struct argp_state *state)
{
	struct doctor *doctor = input;

	if (doctor->target)
		argp_error(state, "one address at a time");
	doctor->target = address;
}

static const struct command_option options[] = {
	{ "json", 'j', NULL, "an object a line", COMMAND_FLAG_AT(doctor, json) },
	{ 0 },
};

static const struct command_line usage = {
	.args = "[ADDRESS]",
	.doc = "Tests in order what RDMA connections need on this host, and names what mends it; "
	       "with an address, also the way there: route, interface, GID, neighbour, MTU.\v"
	       "The exit status is 0 if it would work, and 1 if it would not.",
	.options = options,
	.has_colors = true,
	.take_arg = take_address,
};

static const char *const verdict_words[] = {
	[VERDICT_OK] = "ok",
	[VERDICT_NOTE] = "note",
	[VERDICT_BAD] = "BAD",
	[VERDICT_SKIP] = "-",
};

static const char *remedy_of(const struct check *check, const struct finding *finding)
{
	if (finding->verdict == VERDICT_OK || finding->verdict == VERDICT_SKIP)
		return NULL;
	return finding->remedy[0] ? finding->remedy : check->remedy;
}

static void print_prose(const struct doctor *doctor, const struct check *check,
			const struct finding *finding)
{
	static const enum command_color colors[] = { [VERDICT_OK] = COLOR_GOOD,
						     [VERDICT_NOTE] = COLOR_NOTE,
						     [VERDICT_BAD] = COLOR_BAD,
						     [VERDICT_SKIP] = COLOR_FAINT };
	const char *remedy = remedy_of(check, finding);

	command_color(colors[finding->verdict]);
	printf("%-4s", verdict_words[finding->verdict]);
	command_color(COLOR_NONE);
	printf(" %-*s", NAME_COLUMNS, check->name);
	page_fill(finding->text, INDENT, INDENT, doctor->width, stdout);
	if (!remedy)
		return;
	printf("%*s=> ", INDENT, "");
	page_fill(remedy, INDENT + 3, INDENT + 3, doctor->width, stdout);
}

static void print_object(const struct check *check, const struct finding *finding)
{
	static const char *const words[] = { [VERDICT_OK] = "ok",
					     [VERDICT_NOTE] = "note",
					     [VERDICT_BAD] = "bad",
					     [VERDICT_SKIP] = "skipped" };

	json_begin(NULL, stdout);
	json_text("check", check->name, stdout);
	json_text("verdict", words[finding->verdict], stdout);
	json_text("text", finding->text, stdout);
	json_text("remedy", remedy_of(check, finding), stdout);
	json_end(stdout);
}

static void run_checks(struct doctor *doctor, struct checkup *checkup, const struct check *checks,
		       size_t n)
{
	struct finding finding;
	size_t i;

	for (i = 0; i < n; i++) {
		memset(&finding, 0, sizeof(finding));
		checks[i].run(checkup, &finding);
		if (!finding.text[0] && checks[i].skipped)
			found(&finding, VERDICT_SKIP, "%s", checks[i].skipped);
		doctor->n_bad += finding.verdict == VERDICT_BAD;
		if (doctor->json)
			print_object(&checks[i], &finding);
		else
			print_prose(doctor, &checks[i], &finding);
		fflush(stdout);
	}
}

#define RUN_CHECKS(doctor, checkup, checks) \
	run_checks(doctor, checkup, checks, sizeof(checks) / sizeof((checks)[0]))

static void print_summary(const struct doctor *doctor)
{
	if (doctor->n_bad)
		printf("\n%u %s found.\n", doctor->n_bad,
		       doctor->n_bad == 1 ? "problem" : "problems");
	else if (doctor->target)
		printf("\nA request to %s would leave this host.\n", doctor->target);
	else
		puts("\nNo problem found. `purecm doctor ADDRESS` checks the path to a host.");
}

int doctor_main(int argc, char **argv)
{
	struct doctor doctor = { .width = page_width() };
	struct checkup *checkup;

	command_parse(&usage, argc, argv, &doctor);
	checkup = calloc(1, sizeof(*checkup));
	if (!checkup)
		return STATUS_FAILED;
	checkup->target = doctor.target;
	RUN_CHECKS(&doctor, checkup, host_checks);
	if (doctor.target)
		RUN_CHECKS(&doctor, checkup, path_checks);
	if (!doctor.json)
		print_summary(&doctor);
	checkup_fini(checkup);
	free(checkup);
	return doctor.n_bad ? STATUS_FAILED : STATUS_OK;
}
