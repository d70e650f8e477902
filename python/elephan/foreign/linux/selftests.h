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
#define bpf_ktime_get_ns() ktime_get_ns()
#define bpf_jiffies64() ((u64)jiffies)

#endif
