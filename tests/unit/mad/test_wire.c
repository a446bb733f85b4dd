/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * mad/wire.c: the engine on a small layout of its own, then properties of every row of every
 * layout.
 */
#include <stdlib.h>
#include <string.h>

#include "mad/cm_msg.h"
#include "tests/unit/mad/layouts.h"
#include "tests/unit/test.h"

/* Two bytes of header, an address, and one member split around another. */
struct sample {
	uint8_t high;
	uint16_t middle;
	uint8_t low;
	uint64_t wide;
	uint32_t split;
	uint8_t gid[16];
	uint8_t data[40];
};

static const struct wire_field sample_fields[] = {
	WIRE(sample, high, 0, 0, 3),
	WIRE(sample, middle, 0, 3, 11),
	WIRE(sample, low, 1, 6, 2),
	WIRE_ID(sample, wide, 2, 0, 64),
	WIRE_PART(sample, split, 10, 0, 8, 16),
	WIRE_PART(sample, split, 12, 0, 16, 0),
	WIRE_ADDR(sample, gid, 14),
	WIRE_BLOB(sample, data, 30),
};
static const struct wire_layout sample_layout = WIRE_LAYOUT("SAMPLE", sample, sample_fields, 70);

static unsigned int count_ones(const uint8_t *bytes, size_t n)
{
	unsigned int ones = 0;

	for (size_t i = 0; i < n; i++)
		ones += __builtin_popcount(bytes[i]);
	return ones;
}

static void fill_random(uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		bytes[i] = random();
}

static void print_sample(const struct sample *sample, int every, char *text, size_t bytes)
{
	FILE *out = fmemopen(text, bytes, "w");

	ck_assert_ptr_nonnull(out);
	wire_print(&sample_layout, sample, every, out);
	fclose(out);
}

START_TEST(most_significant_bit_comes_first)
{
	struct sample sample = { .high = 5, .middle = 0x401, .low = 2 };
	uint8_t wire[70] = { 0 };

	wire_encode(&sample_layout, &sample, wire);
	ck_assert_uint_eq(wire[0], 0xb0); /* 101 10000 */
	ck_assert_uint_eq(wire[1], 0x06); /* 000001 10 */
}
END_TEST

START_TEST(field_that_begins_inside_a_byte_is_read)
{
	uint8_t wire[70] = { 0xb2, 0x46 }; /* 101 10010 010001 10 */
	struct sample sample;

	wire_decode(&sample_layout, wire, &sample);
	ck_assert_uint_eq(sample.high, 5);
	ck_assert_uint_eq(sample.middle, 0x491);
	ck_assert_uint_eq(sample.low, 2);
}
END_TEST

/* Rows need not be in the order of the members. */
struct backwards {
	uint8_t first;
	uint8_t second;
	uint16_t third;
	uint16_t fourth;
	uint32_t fifth;
	uint32_t sixth;
};

static const struct wire_field backwards_fields[] = {
	WIRE(backwards, sixth, 0, 0, 32),  WIRE(backwards, fifth, 4, 0, 32),
	WIRE(backwards, fourth, 8, 0, 16), WIRE(backwards, third, 10, 0, 16),
	WIRE(backwards, second, 12, 0, 8), WIRE(backwards, first, 13, 0, 8),
};
static const struct wire_layout backwards_layout =
	WIRE_LAYOUT("BACKWARDS", backwards, backwards_fields, 14);

START_TEST(member_is_truncated_to_its_bits)
{
	uint8_t wire[14];
	struct backwards all, decoded;

	memset(&all, 0xff, sizeof(all));
	wire_encode(&backwards_layout, &all, wire);
	wire_decode(&backwards_layout, wire, &decoded);
	ck_assert_uint_eq(decoded.sixth, UINT32_MAX);
	ck_assert_uint_eq(decoded.fifth, UINT32_MAX);
	ck_assert_uint_eq(decoded.fourth, UINT16_MAX);
	ck_assert_uint_eq(decoded.third, UINT16_MAX);
	ck_assert_uint_eq(decoded.second, UINT8_MAX);
	ck_assert_uint_eq(decoded.first, UINT8_MAX);
}
END_TEST

/* As above, for fields across byte boundaries. */
struct astride {
	uint8_t first;
	uint8_t second;
	uint16_t third;
	uint16_t fourth;
	uint32_t fifth;
	uint32_t sixth;
	uint64_t seventh;
};

static const struct wire_field astride_fields[] = {
	WIRE(astride, seventh, 0, 4, 60), WIRE(astride, sixth, 8, 3, 29),
	WIRE(astride, fifth, 12, 3, 29),  WIRE(astride, fourth, 16, 3, 13),
	WIRE(astride, third, 18, 3, 13),  WIRE(astride, second, 20, 4, 8),
	WIRE(astride, first, 22, 4, 8),
};
static const struct wire_layout astride_layout =
	WIRE_LAYOUT("ASTRIDE", astride, astride_fields, 24);

START_TEST(member_across_bytes_is_truncated_to_its_bits)
{
	uint8_t wire[24] = { 0 };
	struct astride all, decoded;

	memset(&all, 0xff, sizeof(all));
	wire_encode(&astride_layout, &all, wire);
	wire_decode(&astride_layout, wire, &decoded);
	ck_assert_uint_eq(decoded.seventh, UINT64_MAX >> 4);
	ck_assert_uint_eq(decoded.sixth, UINT32_MAX >> 3);
	ck_assert_uint_eq(decoded.fifth, UINT32_MAX >> 3);
	ck_assert_uint_eq(decoded.fourth, UINT16_MAX >> 3);
	ck_assert_uint_eq(decoded.third, UINT16_MAX >> 3);
	ck_assert_uint_eq(decoded.second, UINT8_MAX);
	ck_assert_uint_eq(decoded.first, UINT8_MAX);
}
END_TEST

START_TEST(member_is_printed_without_the_next)
{
	struct sample sample = { .middle = 0x123, .low = 0xff, .wide = UINT64_MAX };
	char text[256];

	print_sample(&sample, 0, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, " middle=291 "));
}
END_TEST

START_TEST(data_that_just_fits_is_not_shortened)
{
	struct sample sample = { .data[31] = 1 };
	char text[256];

	print_sample(&sample, 0, text, sizeof(text));
	ck_assert_ptr_null(strstr(text, "..."));
	sample.data[32] = 1;
	print_sample(&sample, 0, text, sizeof(text));
	ck_assert_ptr_nonnull(strstr(text, "..."));
}
END_TEST

START_TEST(integers_are_big_endian)
{
	static const uint8_t expected[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct sample sample = { .wide = 0x0102030405060708 };
	uint8_t wire[70] = { 0 };

	wire_encode(&sample_layout, &sample, wire);
	ck_assert_mem_eq(wire + 2, expected, sizeof(expected));
}
END_TEST

START_TEST(split_member_is_reassembled)
{
	struct sample sample = { .split = 0x123456 };
	uint8_t wire[70] = { 0 };
	struct sample back;

	wire_encode(&sample_layout, &sample, wire);
	ck_assert_uint_eq(wire[10], 0x12);
	ck_assert_uint_eq(wire[11], 0);
	wire_decode(&sample_layout, wire, &back);
	ck_assert_uint_eq(back.split, 0x123456);
}
END_TEST

START_TEST(too_large_value_is_cut_to_its_field)
{
	struct sample sample = { .high = 0xff };
	uint8_t wire[70] = { 0 };

	wire_encode(&sample_layout, &sample, wire);
	ck_assert_uint_eq(wire[0], 0xe0);
}
END_TEST

START_TEST(encode_leaves_reserved_bits_alone)
{
	struct sample sample = { 0 };
	uint8_t wire[70];

	memset(wire, 0xff, sizeof(wire));
	wire_encode(&sample_layout, &sample, wire);
	ck_assert_uint_eq(wire[11], 0xff);
	ck_assert_uint_eq(count_ones(wire, sizeof(wire)), 8);
}
END_TEST

START_TEST(decode_clears_members_first)
{
	uint8_t wire[70] = { 0 };
	struct sample sample;

	memset(&sample, 0xff, sizeof(sample));
	wire_decode(&sample_layout, wire, &sample);
	ck_assert_uint_eq(count_ones((const uint8_t *)&sample, sizeof(sample)), 0);
}
END_TEST

START_TEST(print_leaves_out_zeros)
{
	struct sample sample = { .middle = 7, .split = 0xabc };
	char text[200];

	print_sample(&sample, 0, text, sizeof(text));
	ck_assert_str_eq(text, " middle=7 split=0xabc");
}
END_TEST

START_TEST(print_every_field_shows_zeros)
{
	struct sample sample = { 0 };
	char text[200];

	print_sample(&sample, 1, text, sizeof(text));
	ck_assert_str_eq(text, " high=0 middle=0 low=0 wide=0x0 split=0x0 gid=:: data=");
}
END_TEST

START_TEST(mapped_address_is_printed_as_ipv4)
{
	struct sample sample = { .gid = { [10] = 0xff, 0xff, 192, 0, 2, 1 } };
	char text[200];

	print_sample(&sample, 0, text, sizeof(text));
	ck_assert_str_eq(text, " gid=::ffff:192.0.2.1");
}
END_TEST

START_TEST(long_data_is_shortened)
{
	struct sample sample = { .data = { 0xde, 0xad, [39] = 1 } };
	char text[200];

	print_sample(&sample, 0, text, sizeof(text));
	ck_assert_str_eq(text, " data=dead000000000000000000000000000000000000000000000000000000"
			       "000000...");
}
END_TEST

START_TEST(each_field_owns_its_bits)
{
	const struct wire_field *f = known_row(_i);
	const struct wire_layout row = { .field = f, .n_fields = 1 };
	uint8_t wire[MAD_BYTES] = { 0 };
	uint8_t host[sizeof(struct cm_msg)] = { 0 };

	memset(host + f->offset, 0xff, f->size);
	wire_encode(&row, host, wire);
	ck_assert_uint_eq(count_ones(wire, sizeof(wire)), f->width);
	ck_assert(wire[f->byte] >> (7 - f->bit) & 1);
}
END_TEST

START_TEST(each_field_survives_the_wire)
{
	const struct wire_field *f = known_row(_i);
	const struct wire_layout row = { .field = f, .n_fields = 1, .host_bytes = 512 };
	uint8_t wire[MAD_BYTES], again[MAD_BYTES] = { 0 }, once[MAD_BYTES] = { 0 };
	uint8_t host[512], back[512];

	fill_random(wire, sizeof(wire));
	wire_decode(&row, wire, host);
	wire_encode(&row, host, once);
	wire_decode(&row, once, back);
	wire_encode(&row, back, again);
	ck_assert_mem_eq(host, back, sizeof(host));
	ck_assert_mem_eq(once, again, sizeof(once));
}
END_TEST

START_TEST(rows_of_a_layout_do_not_overlap)
{
	const struct wire_layout *layout = known_layouts[_i].layout;
	uint8_t wire[MAD_BYTES] = { 0 };
	uint8_t host[sizeof(struct cm_msg)];
	unsigned int bits = 0;

	memset(host, 0xff, sizeof(host));
	for (size_t i = 0; i < layout->n_fields; i++)
		bits += layout->field[i].width;
	wire_encode(layout, host, wire);
	ck_assert_uint_eq(count_ones(wire, sizeof(wire)), bits);
}
END_TEST

START_TEST(rows_are_in_wire_order)
{
	const struct wire_layout *layout = known_layouts[_i].layout;
	unsigned int end = 0;

	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];

		ck_assert_msg(8u * f->byte + f->bit >= end, "%s.%s", layout->name, f->name);
		end = 8 * f->byte + f->bit + f->width;
	}
	ck_assert_uint_eq((end + 7) / 8, layout->wire_bytes);
}
END_TEST

START_TEST(no_member_bit_has_two_rows)
{
	const struct wire_layout *layout = known_layouts[_i].layout;
	uint8_t seen[8 * sizeof(struct cm_msg)] = { 0 };

	for (size_t i = 0; i < layout->n_fields; i++) {
		const struct wire_field *f = &layout->field[i];

		for (unsigned int bit = 0; bit < f->width; bit++)
			ck_assert_msg(!seen[8 * f->offset + f->shift + bit]++, "%s.%s",
				      layout->name, f->name);
	}
}
END_TEST

START_TEST(rows_cover_every_member)
{
	const struct wire_layout *layout = known_layouts[_i].layout;
	uint8_t members[sizeof(struct cm_msg)] = { 0 };

	known_layouts[_i].mark_members(members);
	for (size_t i = 0; i < layout->n_fields; i++)
		memset(members + layout->field[i].offset, 0, layout->field[i].size);
	ck_assert_uint_eq(count_ones(members, layout->host_bytes), 0);
}
END_TEST

START_TEST(every_struct_survives_the_wire)
{
	const struct wire_layout *layout = known_layouts[_i].layout;
	uint8_t wire[MAD_BYTES], again[MAD_BYTES];
	uint8_t host[sizeof(struct cm_msg)], back[sizeof(struct cm_msg)];

	for (int round = 0; round < 100; round++) {
		fill_random(wire, sizeof(wire));
		memcpy(again, wire, sizeof(wire));
		wire_decode(layout, wire, host);
		wire_encode(layout, host, again);
		ck_assert_mem_eq(wire, again, sizeof(wire));
		wire_decode(layout, again, back);
		ck_assert_mem_eq(host, back, layout->host_bytes);
	}
}
END_TEST

static void add_layout_tests(TCase *tcase)
{
	tcase_add_loop_test(tcase, each_field_owns_its_bits, 0, n_known_rows());
	tcase_add_loop_test(tcase, each_field_survives_the_wire, 0, n_known_rows());
	tcase_add_loop_test(tcase, rows_of_a_layout_do_not_overlap, 0, n_known_layouts);
	tcase_add_loop_test(tcase, rows_are_in_wire_order, 0, n_known_layouts);
	tcase_add_loop_test(tcase, no_member_bit_has_two_rows, 0, n_known_layouts);
	tcase_add_loop_test(tcase, every_struct_survives_the_wire, 0, n_known_layouts);
	if (members_are_known)
		tcase_add_loop_test(tcase, rows_cover_every_member, 0, n_known_layouts);
	else
		puts("rows_cover_every_member is left out: this compiler cannot clear padding");
}

static Suite *wire_suite(void)
{
	Suite *suite = suite_create("wire");
	TCase *engine = tcase_create("engine");
	TCase *layouts = tcase_create("layouts");

	tcase_add_test(engine, most_significant_bit_comes_first);
	tcase_add_test(engine, field_that_begins_inside_a_byte_is_read);
	tcase_add_test(engine, member_is_truncated_to_its_bits);
	tcase_add_test(engine, member_across_bytes_is_truncated_to_its_bits);
	tcase_add_test(engine, member_is_printed_without_the_next);
	tcase_add_test(engine, data_that_just_fits_is_not_shortened);
	tcase_add_test(engine, integers_are_big_endian);
	tcase_add_test(engine, split_member_is_reassembled);
	tcase_add_test(engine, too_large_value_is_cut_to_its_field);
	tcase_add_test(engine, encode_leaves_reserved_bits_alone);
	tcase_add_test(engine, decode_clears_members_first);
	tcase_add_test(engine, print_leaves_out_zeros);
	tcase_add_test(engine, print_every_field_shows_zeros);
	tcase_add_test(engine, mapped_address_is_printed_as_ipv4);
	tcase_add_test(engine, long_data_is_shortened);
	suite_add_tcase(suite, engine);
	add_layout_tests(layouts);
	suite_add_tcase(suite, layouts);
	return suite;
}

int main(void)
{
	SRunner *runner = srunner_create(wire_suite());
	int failed;

	srandom(1);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
