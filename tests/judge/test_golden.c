/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs that two Linux kernels sent each other, decoded with the tables of mad/. capture_golden.py
 * captured them; the assertions follow from the protocol, and hold for any new capture. GOLDEN_DIR
 * is the folder of the files.
 */
#include <check.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "mad/cm_msg.h"
#include "mad/cma_hdr.h"
#include "tests/unit/mad/hex.h"

#define N_CONNECT_SCENES 2

static const char *const connect_scenes[N_CONNECT_SCENES] = { "connect_ipv4", "connect_ipv6" };

static const char *folder;
static glob_t golden;

static void read_mad(const char *path, uint8_t mad[MAD_BYTES])
{
	char text[4096];
	FILE *file = fopen(path, "r");
	size_t n;

	ck_assert_msg(file, "%s cannot be opened", path);
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = '\0';
	ck_assert_msg(hex_read(text, mad, MAD_BYTES) == MAD_BYTES, "%s is not a MAD", path);
}

static struct cm_msg message(const char *scene, const char *name)
{
	uint8_t mad[MAD_BYTES];
	struct cm_msg msg;
	char path[512];

	snprintf(path, sizeof(path), "%s/%s_%s.hex", folder, scene, name);
	read_mad(path, mad);
	ck_assert_int_eq(cm_msg_decode(mad, sizeof(mad), &msg), 0);
	return msg;
}

static struct cma_hdr cma_of(const uint8_t *private_data)
{
	struct cma_hdr cma;

	wire_decode(&cma_hdr_layout, private_data, &cma);
	return cma;
}

START_TEST(golden_mad_is_encoded_to_the_same_bytes)
{
	uint8_t mad[MAD_BYTES], again[MAD_BYTES];
	struct cm_msg msg;

	read_mad(golden.gl_pathv[_i], mad);
	ck_assert_int_eq(cm_msg_decode(mad, sizeof(mad), &msg), 0);
	cm_msg_encode(&msg, again);
	ck_assert_mem_eq(mad, again, sizeof(mad));
}
END_TEST

START_TEST(req_has_the_kernels_constants)
{
	const struct cm_req req = message(connect_scenes[_i], "req").req;

	ck_assert_uint_eq(req.service_id, cma_service_id(0x0106, 7000));
	ck_assert_uint_ne(req.local_comm_id, 0);
	ck_assert_uint_ne(req.local_ca_guid, 0);
	ck_assert_uint_ne(req.local_qpn, 0);
	ck_assert_uint_eq(req.remote_cm_response_timeout, 20);
	ck_assert_uint_eq(req.local_cm_response_timeout, 20);
	ck_assert_uint_eq(req.max_cm_retries, 15);
	ck_assert_uint_eq(req.transport_service_type, CM_TRANSPORT_RC);
	ck_assert_uint_eq(req.pkey, 0xffff);
	ck_assert_uint_eq(req.retry_count, 7);
	ck_assert_uint_eq(req.vendor_id, 0);
}
END_TEST

START_TEST(req_of_roce_has_no_lids_and_no_alternate_path)
{
	const struct cm_req req = message(connect_scenes[_i], "req").req;
	const struct cm_req_path none = { 0 };

	ck_assert_uint_eq(req.primary.local_lid, req.primary.remote_lid);
	ck_assert_uint_eq(req.primary.subnet_local, req.primary.hop_limit <= 1);
	ck_assert_uint_ne(req.primary.local_ack_timeout, 0);
	ck_assert_mem_eq(&req.alternate, &none, sizeof(none));
}
END_TEST

START_TEST(cma_header_has_the_addresses_of_the_path)
{
	const struct cm_req req = message(connect_scenes[_i], "req").req;
	const struct cma_hdr cma = cma_of(req.private_data);
	const size_t skip = _i ? 0 : 12; /* the GID of an IPv4 address begins with ::ffff */

	ck_assert_uint_eq(cma.cma_version, 0);
	ck_assert_uint_eq(cma.ip_version, _i ? 6 : 4);
	ck_assert_uint_ne(cma.src_port, 0);
	ck_assert_mem_eq(cma.src_addr + skip, req.primary.local_gid.raw + skip, 16 - skip);
	ck_assert_mem_eq(cma.dst_addr + skip, req.primary.remote_gid.raw + skip, 16 - skip);
}
END_TEST

START_TEST(rep_answers_its_req)
{
	const struct cm_req req = message(connect_scenes[_i], "req").req;
	const struct cm_rep rep = message(connect_scenes[_i], "rep").rep;

	ck_assert_uint_eq(rep.remote_comm_id, req.local_comm_id);
	ck_assert_uint_ne(rep.local_comm_id, 0);
	ck_assert_uint_ne(rep.local_ca_guid, 0);
	ck_assert_uint_ne(rep.local_ca_guid, req.local_ca_guid);
	ck_assert_uint_ne(rep.local_qpn, 0);
	ck_assert_uint_eq(rep.target_ack_delay, 15); /* of rxe */
	ck_assert_uint_eq(rep.rnr_retry_count, req.rnr_retry_count);
	ck_assert_uint_eq(rep.vendor_id, 0);
}
END_TEST

START_TEST(rtu_answers_its_rep)
{
	const struct cm_rep rep = message(connect_scenes[_i], "rep").rep;
	const struct cm_rtu rtu = message(connect_scenes[_i], "rtu").rtu;

	ck_assert_uint_eq(rtu.local_comm_id, rep.remote_comm_id);
	ck_assert_uint_eq(rtu.remote_comm_id, rep.local_comm_id);
}
END_TEST

START_TEST(dreq_names_the_receivers_queue_pair)
{
	const struct cm_req req = message(connect_scenes[_i], "req").req;
	const struct cm_rep rep = message(connect_scenes[_i], "rep").rep;
	const struct cm_dreq dreq = message(connect_scenes[_i], "dreq").dreq;
	bool from_client = dreq.local_comm_id == req.local_comm_id;

	ck_assert_uint_eq(dreq.local_comm_id, from_client ? req.local_comm_id : rep.local_comm_id);
	ck_assert_uint_eq(dreq.remote_comm_id, from_client ? rep.local_comm_id : req.local_comm_id);
	ck_assert_uint_eq(dreq.remote_qpn, from_client ? rep.local_qpn : req.local_qpn);
}
END_TEST

START_TEST(drep_names_the_same_connection)
{
	const struct cm_rep rep = message(connect_scenes[_i], "rep").rep;
	const struct cm_drep drep = message(connect_scenes[_i], "drep").drep;

	if (drep.local_comm_id == rep.local_comm_id)
		ck_assert_uint_eq(drep.remote_comm_id, rep.remote_comm_id);
	else
		ck_assert_uint_eq(drep.remote_comm_id, rep.local_comm_id);
}
END_TEST

START_TEST(mra_answers_the_repeated_req)
{
	const struct cm_req req = message("slow", "req").req;
	const struct cm_mra mra = message("slow", "mra").mra;

	ck_assert_uint_eq(mra.remote_comm_id, req.local_comm_id);
	ck_assert_uint_ne(mra.local_comm_id, 0);
	ck_assert_uint_eq(mra.message, CM_ANSWERED_REQ);
	ck_assert_uint_eq(mra.service_timeout, 24);
}
END_TEST

START_TEST(rejection_by_an_ended_client_has_its_guid)
{
	const struct cm_req req = message("slow", "req").req;
	const struct cm_rej rej = message("slow", "rej").rej;
	uint8_t guid[8];

	for (int i = 0; i < 8; i++)
		guid[i] = req.local_ca_guid >> (56 - 8 * i);
	ck_assert_uint_eq(rej.reason, 4);
	ck_assert_uint_eq(rej.local_comm_id, req.local_comm_id);
	ck_assert_uint_eq(rej.remote_comm_id, 0);
	ck_assert_uint_eq(rej.message, CM_ANSWERED_OTHER);
	ck_assert_uint_eq(rej.ari_bytes, sizeof(guid));
	ck_assert_mem_eq(rej.ari, guid, sizeof(guid));
}
END_TEST

START_TEST(rejection_without_a_listener_names_the_req)
{
	const struct cm_req req = message("nobody", "req").req;
	const struct cm_rej rej = message("nobody", "rej").rej;

	ck_assert_uint_eq(rej.reason, 8);
	ck_assert_uint_eq(rej.remote_comm_id, req.local_comm_id);
	ck_assert_uint_eq(rej.local_comm_id, 0);
	ck_assert_uint_eq(rej.message, CM_ANSWERED_REQ);
	ck_assert_uint_eq(rej.ari_bytes, 0);
}
END_TEST

START_TEST(sidr_req_names_a_udp_service)
{
	const struct cm_sidr_req req = message("datagram", "sidr_req").sidr_req;
	const struct cma_hdr cma = cma_of(req.private_data);

	ck_assert_uint_ne(req.request_id, 0);
	ck_assert_uint_eq(req.pkey, 0xffff);
	ck_assert_uint_eq(req.service_id, cma_service_id(0x0111, 7174));
	ck_assert_uint_eq(cma.ip_version, 4);
}
END_TEST

START_TEST(sidr_rep_has_queue_pair_and_qkey)
{
	const struct cm_sidr_req req = message("datagram", "sidr_req").sidr_req;
	const struct cm_sidr_rep rep = message("datagram", "sidr_rep").sidr_rep;

	ck_assert_uint_eq(rep.request_id, req.request_id);
	ck_assert_uint_eq(rep.service_id, req.service_id);
	ck_assert_uint_eq(rep.status, 0);
	ck_assert_uint_eq(rep.qkey, 0x01234567);
	ck_assert_uint_gt(rep.qpn, 1);
	ck_assert_uint_eq(rep.vendor_id, 0);
}
END_TEST

START_TEST(sidr_rep_without_listener_has_status_unsupported)
{
	const struct cm_sidr_req req = message("datagram_nobody", "sidr_req").sidr_req;
	const struct cm_sidr_rep rep = message("datagram_nobody", "sidr_rep").sidr_rep;

	ck_assert_uint_eq(rep.request_id, req.request_id);
	ck_assert_uint_eq(rep.service_id, req.service_id);
	ck_assert_uint_eq(rep.status, 1);
	ck_assert_uint_eq(rep.qpn, 0);
}
END_TEST

static Suite *golden_suite(void)
{
	Suite *suite = suite_create("golden");
	TCase *files = tcase_create("files");
	TCase *fields = tcase_create("fields");

	tcase_add_loop_test(files, golden_mad_is_encoded_to_the_same_bytes, 0, golden.gl_pathc);
	suite_add_tcase(suite, files);
	tcase_add_loop_test(fields, req_has_the_kernels_constants, 0, N_CONNECT_SCENES);
	tcase_add_loop_test(fields, req_of_roce_has_no_lids_and_no_alternate_path, 0,
			    N_CONNECT_SCENES);
	tcase_add_loop_test(fields, cma_header_has_the_addresses_of_the_path, 0, N_CONNECT_SCENES);
	tcase_add_loop_test(fields, rep_answers_its_req, 0, N_CONNECT_SCENES);
	tcase_add_loop_test(fields, rtu_answers_its_rep, 0, N_CONNECT_SCENES);
	tcase_add_loop_test(fields, dreq_names_the_receivers_queue_pair, 0, N_CONNECT_SCENES);
	tcase_add_loop_test(fields, drep_names_the_same_connection, 0, N_CONNECT_SCENES);
	tcase_add_test(fields, mra_answers_the_repeated_req);
	tcase_add_test(fields, rejection_by_an_ended_client_has_its_guid);
	tcase_add_test(fields, rejection_without_a_listener_names_the_req);
	tcase_add_test(fields, sidr_req_names_a_udp_service);
	tcase_add_test(fields, sidr_rep_has_queue_pair_and_qkey);
	tcase_add_test(fields, sidr_rep_without_listener_has_status_unsupported);
	suite_add_tcase(suite, fields);
	return suite;
}

int main(void)
{
	char pattern[512];
	SRunner *runner;
	int failed;

	folder = getenv("GOLDEN_DIR") ?: "golden";
	snprintf(pattern, sizeof(pattern), "%s/*.hex", folder);
	if (glob(pattern, 0, NULL, &golden)) {
		fprintf(stderr, "test_golden: no file matches %s: is GOLDEN_DIR set?\n", pattern);
		return EXIT_FAILURE;
	}
	runner = srunner_create(golden_suite());
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	globfree(&golden);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
