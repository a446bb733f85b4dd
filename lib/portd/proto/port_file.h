/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The file of port settings made by root: one setting per line, as device, port and setting; *
 * stands for every device or port. The last matching line applies.
 *
 *   # device  port  setting
 *   *         *     default_roce_tos=26
 *   mlx5_0    1     default_roce_tos=106
 *   mlx5_0    1     default_roce_mode=RoCE v2
 *
 * default_roce_mode is accepted for compatibility: RoCE v2 is the only mode.
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

/* The default path. */
extern const char port_file_path[];

/**
 * port_file_read() - read the file
 * @ret: unchanged on failure
 * @ret_number: number of the invalid line, from 1, if there is one
 *
 * Return: 0, also if there is no file and thus no setting; -EINVAL for an invalid line;
 * -EPROTONOSUPPORT for a line that requests RoCE v1; -E2BIG; -errno.
 */
int port_file_read(const char *path, struct port_file *ret, unsigned int *ret_number);

/** port_file_tos() - the type of service of RoCE packets for ids that set none */
uint8_t port_file_tos(const struct port_file *file, const char *device, uint8_t port_num);

#endif
