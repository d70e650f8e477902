/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Logarithms and powers of two in fixed point, accurate to 1e-8. */
#ifndef ELEPHAN_LOGARITHM_H
#define ELEPHAN_LOGARITHM_H

#define ONE32 (1ull << 32)

/* The logarithm to base 2 of x, which is 1 or more (Q32): the highest bit, and the rest by repeated squaring. */
static __attribute__((__noinline__)) u64 log2_q32(u64 x)
{
	u64 whole = 0, mantissa, result;
	int bit;

	/* Without branches, because the verifier would follow every combination of them. */
	for (bit = 32; bit > 0; bit >>= 1) {
		u64 rest = x >> (whole + bit);
		whole += bit * ((rest | -rest) >> 63);
	}
	/* In [1, 2), Q31. */
	mantissa = x << (63 - whole) >> 32;
	result = whole << 32;
	for (bit = 31; bit >= 4; bit--) {
		u64 carry;

		mantissa = mantissa * mantissa >> 31;
		carry = mantissa >> 32;
		mantissa >>= carry;
		result |= carry << bit;
	}
	return result;
}

/* 2 to the power of x (Q32, below 30) in Q32: the series of e^(f ln 2) for the fraction f. */
static __attribute__((__noinline__)) u64 exp2_q32(u64 x)
{
	/* (ln 2)^k / k!, k = 1 ... 10, Q32 */
	static const volatile u64 series[10] = {
		2977044472, 1031764991, 238388332, 41309550, 5726720, 661577, 65510, 5676, 437, 30,
	};
	u64 f = x & (ONE32 - 1), sum = 0;
	int k;

	for (k = 9; k >= 0; k--)
		sum = (sum * f >> 32) + series[k];
	return ((sum * f >> 32) + ONE32) << (x >> 32 & 31);
}

#endif
