/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What eBPF files in the form of the kernel's selftests use of libbpf and of bpf_tracing_net.h, for compilation as a module.
 */
#ifndef ELEPHAN_LINUX_SELFTESTS_H
#define ELEPHAN_LINUX_SELFTESTS_H

#include "linux.h"

#define SEC(name)
#define __ksym
#define __kconfig
#define __weak __attribute__((weak))
#define BPF_PROG(name, arguments...) name(arguments)
#define BPF_STRUCT_OPS(name, arguments...) name(arguments)
#define BPF_CORE_READ_BITFIELD(from, member) ((from)->member)
#define bpf_ktime_get_ns() ktime_get_ns()
#define bpf_jiffies64() ((u64)jiffies)
#define bpf_tcp_send_ack(sk, rcv_nxt) __tcp_send_ack(sk, rcv_nxt)

/* Maps are declarations only. Another program could have stored something for a socket; here there is none. */
enum { BPF_MAP_TYPE_SK_STORAGE = 24, BPF_F_NO_PREALLOC = 1 };
#define __uint(name, number) int (*name)[number]
#define __type(name, type) typeof(type) *name
#define bpf_sk_storage_get(map, sk, value, flags) ({ \
	_Static_assert((flags) == 0, "bpf_sk_storage_get() that stores a value is not supported"); \
	(void)(map), (void)(sk), (void *)NULL; \
})
#define bpf_sk_storage_delete(map, sk) (-EINVAL)

/* A connection keeps its algorithm. */
enum { SOL_TCP = 6, TCP_CONGESTION = 13 };
#define bpf_setsockopt(sk, level, name, value, size) (-EINVAL)
#define bpf_getsockopt(sk, level, name, value, size) (-EINVAL)

#endif
