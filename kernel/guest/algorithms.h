/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The algorithms of kernel/ in a guest kernel. Each registers itself at boot as el_NAME, with its published parameters. */
#ifndef ELEPHAN_ALGORITHMS_H
#define ELEPHAN_ALGORITHMS_H

#include <linux/init.h>
#include <net/tcp.h>

/*
 * Registers `name` (that of its file: "hstcp_fc") once more, as `registered`, with other values of its parameters: fixed
 * point, in the order of its table. It stays until the guest halts.
 *
 * Returns 0, -ENOENT if there is no such algorithm, -EINVAL if the number of values is not that of its table or `registered`
 * has 16 bytes or more, -EEXIST if `registered` is taken, or -ENOMEM.
 */
int elephan_algorithm(const char *name, const char *registered, const u64 *values, u32 count);

/* An algorithm as its file defines it. */
struct elephan_entry {
	const struct elephan_operations *operations;
	const volatile struct parameter *table;
	struct elephan_entry *next;
};

int elephan_enter(struct elephan_entry *entry);

/* The values of the connection whose operation is being called. */
extern const u64 *el_values;

#endif
