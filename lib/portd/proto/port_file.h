/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What root has set for ports of RDMA devices, in a file: a line for each setting, of device, port
 * and setting, of which * stands for all. The last line about a port counts.
 *
 *   # device  port  setting
 *   *         *     default_roce_tos=26
 *   mlx5_0    1     default_roce_tos=106
 *   mlx5_0    1     default_roce_mode=RoCE v2
 *
 * The mode is there for files that say what is so: there is no other.
 */
#ifndef LIB_PORTD_PROTO_PORT_FILE_H
#define LIB_PORTD_PROTO_PORT_FILE_H

#include <stdint.h>

#define PORT_FILE_LINES	     256
#define PORT_FILE_NAME_BYTES 64

struct port_file_line {
	char device[PORT_FILE_NAME_BYTES]; /* "*": all */
	uint8_t port_num;		   /* 0: all */
	uint8_t tos;
};

struct port_file {
	unsigned int n;
	struct port_file_line line[PORT_FILE_LINES];
};

/* Where it is unless cmportd is told another place. */
extern const char port_file_path[];

/**
 * port_file_read() - read it
 * @ret:	untouched on failure
 * @ret_number: the line that is wrong, from 1, if there is one
 *
 * Return: 0, also without a file: nothing is set then; -EINVAL for a line that is wrong;
 * -EPROTONOSUPPORT for one that asks for RoCE v1; -E2BIG; -errno.
 */
int port_file_read(const char *path, struct port_file *ret, unsigned int *ret_number);

/** port_file_tos() - the type of service of RoCE packets by which ids leave that ask for none */
uint8_t port_file_tos(const struct port_file *file, const char *device, uint8_t port_num);

#endif
