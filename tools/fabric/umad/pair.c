/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pairs of devices for QP0 and QP1, which the libibumad of Debian 13 has: here both are one device.
 * The struct is that of its header, which older distributions do not have.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NAME_BYTES 20

struct umad_ca_pair {
	char smi_name[NAME_BYTES];
	uint32_t smi_preferred_port;
	char gsi_name[NAME_BYTES];
	uint32_t gsi_preferred_port;
};

int umad_get_cas_names(char cas[][NAME_BYTES], int max);
int umad_open_smi_port(const char *ca_name, int portnum);
int umad_open_port(const char *ca_name, int portnum);
int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max);
int umad_get_smi_gsi_pair_by_ca_name(const char *devname, uint8_t portnum,
				     struct umad_ca_pair *ca_pair, unsigned int enforce_smi);

int umad_open_smi_port(const char *ca_name, int portnum)
{
	return umad_open_port(ca_name, portnum);
}

int umad_get_smi_gsi_pair_by_ca_name(const char *devname, uint8_t portnum,
				     struct umad_ca_pair *ca_pair, unsigned int enforce_smi)
{
	char name[1][NAME_BYTES];

	(void)enforce_smi;
	if (umad_get_cas_names(name, 1) != 1 || (devname && strcmp(devname, name[0]) != 0))
		return -ENODEV;
	memset(ca_pair, 0, sizeof(*ca_pair));
	strcpy(ca_pair->smi_name, name[0]);
	strcpy(ca_pair->gsi_name, name[0]);
	ca_pair->smi_preferred_port = ca_pair->gsi_preferred_port = portnum ? portnum : 1;
	return 0;
}

int umad_get_smi_gsi_pairs(struct umad_ca_pair cas[], size_t max)
{
	return max && !umad_get_smi_gsi_pair_by_ca_name(NULL, 0, &cas[0], 0) ? 1 : 0;
}
