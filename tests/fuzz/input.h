/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The bytes of a fuzz target's input, taken one after the other; zeros when there are no more.
 */
#ifndef TESTS_FUZZ_INPUT_H
#define TESTS_FUZZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct input {
	const uint8_t *data;
	size_t left;
};

static inline uint8_t next_byte(struct input *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->data++;
}

static inline void next_bytes(struct input *input, void *to, size_t n)
{
	size_t there = n < input->left ? n : input->left;

	memset(to, 0, n);
	if (there)
		memcpy(to, input->data, there);
	input->data += there;
	input->left -= there;
}

static inline uint32_t next_word(struct input *input)
{
	uint32_t word;

	next_bytes(input, &word, sizeof(word));
	return word;
}

#endif
