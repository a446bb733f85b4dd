/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A collective operation of gloo by verbs, for the table: RANK SIZE FOLDER, where the ranks find each
 * other by files in a folder. Prints "sum" and the time of an operation if each element is the sum
 * of all ranks'.
 */
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include <gloo/allreduce_ring.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

static const int COUNT = 65536, TIMES = 20;

int main(int argc, char **argv)
{
	if (argc != 4) {
		std::fprintf(stderr, "usage: gloo RANK SIZE FOLDER\n");
		return 2;
	}
	const int rank = std::atoi(argv[1]), size = std::atoi(argv[2]);
	gloo::transport::ibverbs::attr attr;
	attr.name = "fab0";
	attr.port = 1;
	attr.index = 1;
	auto device = gloo::transport::ibverbs::CreateDevice(attr);
	auto store = gloo::rendezvous::FileStore(argv[3]);
	auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
	context->connectFullMesh(store, device);

	std::vector<int> data(COUNT);
	gloo::AllreduceRing<int> allreduce(context, { data.data() }, COUNT);
	const auto begin = std::chrono::steady_clock::now();
	for (int i = 0; i < TIMES; i++) {
		data.assign(COUNT, rank + i);
		allreduce.run();
		for (int value : data)
			if (value != size * (size - 1) / 2 + size * i) {
				std::printf("wrong: %d\n", value);
				return 1;
			}
	}
	const std::chrono::duration<double, std::micro> us = std::chrono::steady_clock::now() - begin;
	std::printf("sum of %d ranks: %.0f us\n", size, us.count() / TIMES);
	/* gloo destroys queue pairs without waiting for their last completions. */
	std::fflush(stdout);
	std::this_thread::sleep_for(std::chrono::milliseconds(500));
	return 0;
}
