/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What purecm can do and stock librdmacm cannot. Programs that want it include this beside
 * <rdma/rdma_cma.h>. It adds no symbol to the library, so such a program runs over the stock
 * library too: there rdma_set_option() answers ENOSYS to everything below.
 *
 * Environment, read once when a program first uses the library
 * - PURECM_LOG: what goes to standard error. Unset or empty: nothing. "warn": what was tolerated
 *   but is not as it should be. "debug": also every message and every change of state.
 */
#ifndef PURECM_PURECM_H
#define PURECM_PURECM_H

/* Level for rdma_set_option(); the letters p, c, m, so that no stock level comes near. */
#define PURECM_OPTION 0x70636d

/**
 * enum purecm_option - options of level PURECM_OPTION
 * @PURECM_OPTION_CONNECT_TIMEOUT_MS: uint32_t, above 0. How long a request (rdma_connect()) or
 *      an answer (rdma_accept()) is repeated to a peer that stays silent, before
 *      RDMA_CM_EVENT_UNREACHABLE. A peer that asks for more time gets it. To be set before the
 *      call it is for, else rdma_set_option() fails with EINVAL
 */
enum purecm_option {
	PURECM_OPTION_CONNECT_TIMEOUT_MS = 1,
};

#endif /* PURECM_PURECM_H */
