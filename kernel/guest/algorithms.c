// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Registers the algorithms of kernel/ with a guest kernel, and calls their operations.
 *
 * The kernel calls an operation with arguments of its own types; the files expect an array of words, the form of eBPF. Each
 * setting of the parameters is a registered algorithm of its own, with its values behind its operations.
 */
#include "elephan.h"

#include <linux/slab.h>

/* el_values belongs to one call at a time. */
#if defined(CONFIG_SMP) || defined(CONFIG_PREEMPTION)
#error "expected a kernel with one processor and no preemption"
#endif

struct instance {
	struct tcp_congestion_ops ops;
	const struct elephan_operations *algorithm;
	u64 values[];
};

const u64 *el_values;

static struct elephan_entry *entries;

static const struct instance *instance(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct instance, ops);
}

/* Takes the values of this connection. Returns those of the call that an interrupt may have brought this one into. */
static const u64 *enter(const struct sock *sk)
{
	const u64 *outer = el_values;

	el_values = instance(sk)->values;
	return outer;
}

static void leave(const u64 *outer)
{
	el_values = outer;
}

static u32 call_ssthresh(struct sock *sk)
{
	u64 ctx[] = { (unsigned long)sk };
	const u64 *outer = enter(sk);
	u32 window = instance(sk)->algorithm->ssthresh(ctx);

	leave(outer);
	return window;
}

static u32 call_undo_cwnd(struct sock *sk)
{
	u64 ctx[] = { (unsigned long)sk };
	const u64 *outer = enter(sk);
	u32 window = instance(sk)->algorithm->undo_cwnd(ctx);

	leave(outer);
	return window;
}

static void call_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	u64 ctx[] = { (unsigned long)sk, ack, acked };
	const u64 *outer = enter(sk);

	instance(sk)->algorithm->cong_avoid(ctx);
	leave(outer);
}

static void call_set_state(struct sock *sk, u8 state)
{
	u64 ctx[] = { (unsigned long)sk, state };
	const u64 *outer = enter(sk);

	instance(sk)->algorithm->set_state(ctx);
	leave(outer);
}

static void call_cwnd_event(struct sock *sk, enum tcp_ca_event event)
{
	u64 ctx[] = { (unsigned long)sk, event };
	const u64 *outer = enter(sk);

	instance(sk)->algorithm->cwnd_event(ctx);
	leave(outer);
}

static void call_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	u64 ctx[] = { (unsigned long)sk, (unsigned long)sample };
	const u64 *outer = enter(sk);

	instance(sk)->algorithm->pkts_acked(ctx);
	leave(outer);
}

static void call_init(struct sock *sk)
{
	u64 ctx[] = { (unsigned long)sk };
	const u64 *outer = enter(sk);

	instance(sk)->algorithm->init(ctx);
	leave(outer);
}

static u32 rows(const struct elephan_entry *entry)
{
	u32 count = 0;

	while (entry->table[count].name[0])
		count++;
	return count;
}

/* Registers an algorithm with these values, or with those of its table. */
static int instantiate(const struct elephan_entry *entry, const char *registered, const u64 *values)
{
	const struct elephan_operations *algorithm = entry->operations;
	u32 count = rows(entry), i;
	struct instance *made = kzalloc(struct_size(made, values, count), GFP_KERNEL);
	int error = -EINVAL;

	if (!made)
		return -ENOMEM;
	made->algorithm = algorithm;
	made->ops.ssthresh = call_ssthresh;
	made->ops.cong_avoid = call_cong_avoid;
	made->ops.undo_cwnd = call_undo_cwnd;
	made->ops.set_state = algorithm->set_state ? call_set_state : NULL;
	made->ops.cwnd_event = algorithm->cwnd_event ? call_cwnd_event : NULL;
	made->ops.pkts_acked = algorithm->pkts_acked ? call_pkts_acked : NULL;
	made->ops.init = algorithm->init ? call_init : NULL;
	made->ops.flags = algorithm->flags;
	for (i = 0; i < count; i++)
		made->values[i] = values ? values[i] : entry->table[i].value;
	if (strscpy(made->ops.name, registered, sizeof(made->ops.name)) > 0)
		error = tcp_register_congestion_control(&made->ops);
	if (error)
		kfree(made);
	return error;
}

int elephan_algorithm(const char *name, const char *registered, const u64 *values, u32 count)
{
	const struct elephan_entry *entry;

	for (entry = entries; entry; entry = entry->next)
		/* Behind the "el_" of the name that the file registers. */
		if (!strcmp(entry->operations->name + 3, name))
			return count == rows(entry) ? instantiate(entry, registered, values) : -EINVAL;
	return -ENOENT;
}

int elephan_enter(struct elephan_entry *entry)
{
	entry->next = entries;
	entries = entry;
	return instantiate(entry, entry->operations->name, NULL);
}
