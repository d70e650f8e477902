/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What shim.c and kernel.c share: the connections of a module. */
#ifndef ELEPHAN_LINUX_CONNECTION_H
#define ELEPHAN_LINUX_CONNECTION_H

#include "elephan-cc.h"
#include "linux.h"

/* Memory that a module allocated, in a circle with the others of its connection. */
struct block {
	struct block *next, *previous;
	size_t size;
} __attribute__((aligned(16)));

/* The memory of a block follows it. */
#define MEMORY(block) ((void *)((block) + 1))

struct connection {
	struct tcp_sock tp; /* first: it is the module's `struct sock` */
	const struct elephan_cc *home; /* the table of the object that made it */
	struct block blocks;
	u64 now_ns;
	u64 random;
	u64 requests;
	u32 timestamp_offset;
	/* Samples of segments that were sent when `delivered` was in this range are application-limited, because the module said so. */
	u32 limited_from, limited_to;
	bool is_limited;
	bool is_taken; /* the module knows what the ACK that is being processed delivered */
	bool is_reducing; /* on_congestion was called, and the state that follows is not told yet */
};

/* The connection for which this thread calls the module, or called it last. */
extern _Thread_local struct connection *elephan_current;

/* What the module has registered; NULL for nothing. */
extern struct tcp_congestion_ops *elephan_registered;

#endif
