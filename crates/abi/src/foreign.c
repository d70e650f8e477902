// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The interface of algorithms from outside, as the C compiler lays it out: a test compares it with that of Rust. */
#include "elephan-cc.h"

const uint64_t el_sizes[4] = {
	sizeof(struct elephan_cc_window),
	sizeof(struct elephan_cc_ack),
	sizeof(struct elephan_cc_parameter),
	sizeof(struct elephan_cc),
};
