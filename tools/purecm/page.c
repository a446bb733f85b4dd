/* SPDX-License-Identifier: BSD-2-Clause */
/* Formatting of text: see page.h. */
#include "tools/purecm/page.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S  1000000000u
#define NS_PER_MS 1000000u

unsigned int page_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;
	unsigned int width = 0;

	if (isatty(STDOUT_FILENO) && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size))
		width = size.ws_col;
	if (!width && columns)
		width = (unsigned int)strtoul(columns, NULL, 10);
	return width && width < PAGE_WIDTH_MIN ? PAGE_WIDTH_MIN : width;
}

void page_fill(const char *text, unsigned int column, unsigned int indent, unsigned int width,
	       FILE *out)
{
	unsigned int from = column;
	size_t bytes;

	for (text += strspn(text, " "); *text; text += strspn(text, " ")) {
		bytes = strcspn(text, " ");
		if (width && column > indent && column + 1 + bytes > width) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = from = indent;
		}
		if (column > from) {
			putc(' ', out);
			column++;
		}
		fwrite(text, 1, bytes, out);
		column += (unsigned int)bytes;
		text += bytes;
	}
	putc('\n', out);
}

void page_time(uint64_t time_ns, FILE *out)
{
	const time_t s = (time_t)(time_ns / NS_PER_S);
	char text[32] = "?";
	struct tm at;

	if (localtime_r(&s, &at))
		strftime(text, sizeof(text), "%F %T", &at);
	fprintf(out, "%s.%03u", text, (unsigned int)(time_ns % NS_PER_S / NS_PER_MS));
}
