/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A test program that is on a fabric by tools/fabric/fixture/fabric.h: prints its arguments and its
 * device, and pings a server that it starts on another host. Played by fixtures.py.
 */
#include <infiniband/verbs.h>

#include "tools/fabric/fixture/fabric.h"

int main(int argc, char **argv)
{
	struct ibv_device **devices;
	int i;

	fabric_enter(argv, "--hosts a,b --timeout 100");
	devices = ibv_get_device_list(NULL);
	printf("on %s\n", devices && devices[0] ? ibv_get_device_name(devices[0]) : "nothing");
	for (i = 1; i < argc; i++)
		printf("[%s]\n", argv[i]);
	fflush(stdout);
	if (fabric_run("b&", "rping -s -C 1 >/dev/null 2>&1"))
		return 1;
	return fabric_run(
		       "a",
		       "rping -c -v -a 10.77.0.2 -C 1 2>/dev/null | grep -o 'ping data'; exit 3") >>
	       8;
}
