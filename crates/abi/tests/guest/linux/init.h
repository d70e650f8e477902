/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What happens at the boot of a kernel happens here before main(). */
#define __init
#define late_initcall(call) \
	static __attribute__((constructor)) void boot(void) \
	{ \
		if (call()) \
			abort(); \
	}
