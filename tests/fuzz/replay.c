/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target without libFuzzer: runs the inputs of a folder, the corpus. Prints the name of each
 * to stderr first, so that the last one identifies the input of a crash.
 */
#include <dirent.h>
#include <err.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static void play(const char *name)
{
	FILE *file = fopen(name, "r");

	if (!file || fseek(file, 0, SEEK_END) < 0)
		err(1, "%s", name);
	fprintf(stderr, "%s\n", name);
	size_t bytes = (size_t)ftell(file);
	/* Allocated in its exact size, so that the address sanitizer detects reads beyond it. */
	uint8_t *data = malloc(bytes);
	if (!data && bytes)
		err(1, "%s", name);
	rewind(file);
	if (fread(data, 1, bytes, file) != bytes)
		errx(1, "%s cannot be read to its end", name);
	fclose(file);
	LLVMFuzzerTestOneInput(data, bytes);
	free(data);
}

int main(int argc, char **argv)
{
	int n = 0;

	if (argc != 2)
		errx(2, "usage: %s FOLDER", argv[0]);
	if (chdir(argv[1]) < 0)
		err(1, "%s", argv[1]);
	DIR *folder = opendir(".");
	if (!folder)
		err(1, "%s", argv[1]);
	LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		play(entry->d_name);
		n++;
	}
	closedir(folder);
	printf("%d inputs\n", n);
	return n > 0 ? 0 : 1;
}
