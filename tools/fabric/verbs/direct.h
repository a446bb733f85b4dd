/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes and reads without packets. A program that polls memory makes no calls; the thread that
 * would store packets for it waits until the scheduler takes the processor from such a program,
 * which takes milliseconds; and a read needs another thread to run, which may be asleep. So a short
 * RDMA write to a process of this machine is stored by the requester, by process_vm_writev(2), and
 * a read is copied likewise, if the responder has granted that (../wire/grants.h).
 *
 * It uses no PSN, and is not acknowledged: it is executed when nothing else is outstanding, so it
 * comes after all earlier requests of its queue pair and before all later ones. A read waits for
 * that; a write does not, or the sends that often follow it would be slowed down. An unreliable
 * requester does not know what is outstanding; it compares PSNs with its grant. In all other cases,
 * and for all that the grant does not cover, the requester sends packets; so it is always the
 * responder that refuses. All functions are locked.
 */
#ifndef FABRIC_DIRECT_H
#define FABRIC_DIRECT_H

#include "tools/fabric/verbs/objects.h"

/** direct_open() - look for the grant of the peer */
void direct_open(struct fab_qp *qp);

/** direct_close() - may be called repeatedly, and without direct_open() */
void direct_close(struct fab_qp *qp);

/**
 * direct_execute() - execute a send, before which all others are complete
 *
 * Return: false if it needs packets.
 */
bool direct_execute(struct fab_qp *qp, const struct fab_send *send);

/** direct_is_worth_waiting() - return whether a send is a read that can be executed later */
bool direct_is_worth_waiting(const struct fab_qp *qp, const struct fab_send *send);

#endif
