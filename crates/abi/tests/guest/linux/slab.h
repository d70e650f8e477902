/* SPDX-License-Identifier: GPL-2.0 OR MIT */
#define GFP_KERNEL 0
#define struct_size(pointer, member, count) (sizeof(*(pointer)) + (count) * sizeof(*(pointer)->member))
#define kzalloc(size, flags) calloc(1, size)
#define kfree free
