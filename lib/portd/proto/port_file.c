/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of port settings: see port_file.h. */
#include "lib/portd/proto/port_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char port_file_path[] = PORT_FILE;

#define LINE_BYTES 512
#define WORDS_MAX  5 /* one more than a valid line has */
#define BLANKS	   " \t\r\n"

static bool take_number(const char *text, uint8_t *ret)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 0);
	if (!isdigit((unsigned char)*text) || errno || *end || value > UINT8_MAX)
		return false;
	*ret = (uint8_t)value;
	return true;
}

static bool take_port(const char *text, uint8_t *ret)
{
	*ret = 0;
	return !strcmp(text, "*") || (take_number(text, ret) && *ret);
}

static bool take_tos(const char *text, struct port_file_line *ret)
{
	static const char name[] = "default_roce_tos=";

	return !strncmp(text, name, sizeof(name) - 1) &&
	       take_number(text + sizeof(name) - 1, &ret->tos);
}

/* The mode in the kernel's spelling, in two words. Return: as take_line(). */
static int take_mode(char *const word[2])
{
	if (!strcmp(word[0], "default_roce_mode=RoCE") && !strcmp(word[1], "v2"))
		return 0; /* the only mode anyway */
	if (!strcmp(word[0], "default_roce_mode=IB/RoCE") && !strcmp(word[1], "v1"))
		return -EPROTONOSUPPORT;
	return -EINVAL;
}

/* Return: 1; 0 for a line that changes nothing; -EINVAL; -EPROTONOSUPPORT. */
static int take_line(char *text, struct port_file_line *ret)
{
	char *rest, *word[WORDS_MAX];
	int n;

	text[strcspn(text, "#")] = '\0';
	for (n = 0; n < WORDS_MAX; n++) {
		word[n] = strtok_r(n ? NULL : text, BLANKS, &rest);
		if (!word[n])
			break;
	}
	if (n == 0)
		return 0;
	if (n < 3 || n == WORDS_MAX || strlen(word[0]) >= sizeof(ret->device) ||
	    !take_port(word[1], &ret->port_num))
		return -EINVAL;
	if (n == 4)
		return take_mode(&word[2]);
	if (!take_tos(word[2], ret))
		return -EINVAL;
	strcpy(ret->device, word[0]);
	return 1;
}

static int read_lines(FILE *from, struct port_file *ret, unsigned int *ret_number)
{
	struct port_file_line line;
	char text[LINE_BYTES];
	int err;

	for (*ret_number = 1; fgets(text, sizeof(text), from); ++*ret_number) {
		err = strchr(text, '\n') || feof(from) ? take_line(text, &line) : -EINVAL;
		if (err < 0)
			return err;
		if (err && ret->n == PORT_FILE_LINES)
			return -E2BIG;
		if (err)
			ret->line[ret->n++] = line;
	}
	return ferror(from) ? -EIO : 0;
}

int port_file_read(const char *path, struct port_file *ret, unsigned int *ret_number)
{
	struct port_file file = { .n = 0 };
	FILE *from = fopen(path, "re");
	int err = 0;

	if (from)
		err = read_lines(from, &file, ret_number);
	else if (errno != ENOENT && errno != ENOTDIR)
		return -errno;
	if (from)
		fclose(from);
	if (!err)
		*ret = file;
	return err;
}

uint8_t port_file_tos(const struct port_file *file, const char *device, uint8_t port_num)
{
	const struct port_file_line *line;
	unsigned int i;

	for (i = file->n; i > 0; i--) {
		line = &file->line[i - 1];
		if ((!strcmp(line->device, "*") || !strcmp(line->device, device)) &&
		    (!line->port_num || line->port_num == port_num))
			return line->tos;
	}
	return 0;
}
