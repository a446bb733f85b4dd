/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * MADs of the subnet administration class (IBTA vol. 1, chapter 15): route resolution and multicast
 * on InfiniBand. Decoded for the trace only.
 */
#ifndef TOOLS_PURECM_SA_H
#define TOOLS_PURECM_SA_H

#include "mad/sa_msg.h"

/**
 * sa_decode() - decode a MAD of the SA class
 * @ret: its header, and the record if a layout is returned
 *
 * Return: the record's layout, or NULL for an unsupported record.
 */
const struct wire_layout *sa_decode(const uint8_t mad[MAD_BYTES], struct sa_msg *ret);

/** sa_name() - format "GetResp PathRecord". Return: @buf. */
const char *sa_name(const struct mad_hdr *hdr, char *buf, size_t bytes);

#endif
