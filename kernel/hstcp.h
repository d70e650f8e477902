/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * HighSpeed TCP's a(w) and b(w) (RFC 3649), by the formulas of section 5 or the table of appendix B. hstcp.bpf.c and
 * hstcp_fc.bpf.c share them; their first parameters are the same.
 */
#ifndef ELEPHAN_HSTCP_H
#define ELEPHAN_HSTCP_H

#include "logarithm.h"

enum { RESPONSE, W_LOW, W_HIGH, P_LOW, P_HIGH, B_HIGH };
enum { CONTINUOUS, STEPS };
#define HSTCP_PARAMETERS \
	{ "response", FIXED(0, CONTINUOUS) }, \
	{ "w_low", FIXED(Q20, 38) }, \
	{ "w_high", FIXED(Q20, 83000) }, \
	{ "p_low", FIXED(60, 1e-3) }, \
	{ "p_high", FIXED(60, 1e-7) }, \
	{ "b_high", FIXED(32, 0.1) }

/* RFC 3649, appendix B: the window from which `a` is the number of the row, counted from 1, and 100 b. */
#define ROWS 73
static const volatile u32 table[ROWS][2] = {
	{ 38, 50 }, { 118, 44 }, { 221, 41 }, { 347, 38 }, { 495, 37 }, { 663, 35 }, { 851, 34 }, { 1058, 33 },
	{ 1284, 32 }, { 1529, 31 }, { 1793, 30 }, { 2076, 29 }, { 2378, 28 }, { 2699, 28 }, { 3039, 27 },
	{ 3399, 27 }, { 3778, 26 }, { 4177, 26 }, { 4596, 25 }, { 5036, 25 }, { 5497, 24 }, { 5979, 24 },
	{ 6483, 23 }, { 7009, 23 }, { 7558, 22 }, { 8130, 22 }, { 8726, 22 }, { 9346, 21 }, { 9991, 21 },
	{ 10661, 21 }, { 11358, 20 }, { 12082, 20 }, { 12834, 20 }, { 13614, 19 }, { 14424, 19 }, { 15265, 19 },
	{ 16137, 19 }, { 17042, 18 }, { 17981, 18 }, { 18955, 18 }, { 19965, 17 }, { 21013, 17 }, { 22101, 17 },
	{ 23230, 17 }, { 24402, 16 }, { 25618, 16 }, { 26881, 16 }, { 28193, 16 }, { 29557, 15 }, { 30975, 15 },
	{ 32450, 15 }, { 33986, 15 }, { 35586, 14 }, { 37253, 14 }, { 38992, 14 }, { 40808, 14 }, { 42707, 13 },
	{ 44694, 13 }, { 46776, 13 }, { 48961, 13 }, { 51258, 13 }, { 53677, 12 }, { 56230, 12 }, { 58932, 12 },
	{ 61799, 12 }, { 64851, 11 }, { 68113, 11 }, { 71617, 11 }, { 75401, 10 }, { 79517, 10 }, { 84035, 10 },
	{ 89053, 10 }, { 94717, 9 },
};

struct response {
	/* Logarithms to base 2 (Q32): of w_low, and of 1/p at w_low. */
	u64 log_w_low;
	u64 log_p_low;
	/* The decrease of b (Q32), and of the logarithm of p, when the window doubles. */
	u64 slope_b;
	u64 slope_p;
	/* The last requested window, and its a (Q20). */
	u64 a;
	u32 w;
};

/* log2(1/p), Q32, for p in Q60. */
INLINE u64 log_inverse(u64 p)
{
	u64 log = log2_q32(max64(p, 1));
	return 60 * ONE32 > log ? 60 * ONE32 - log : 0;
}

INLINE void response_init(struct response *r)
{
	u64 log_w_low = log2_q32(PARAMETER(W_LOW)) - Q20 * ONE32;
	u64 log_w_high = log2_q32(PARAMETER(W_HIGH)) - Q20 * ONE32;
	/* Q26, so that the dividend fits into 64 bits. */
	u64 span = max64((log_w_high - log_w_low) >> 6, 1);
	u64 log_p_low = log_inverse(PARAMETER(P_LOW)), log_p_high = log_inverse(PARAMETER(P_HIGH));

	r->log_w_low = log_w_low;
	r->log_p_low = log_p_low;
	r->slope_b = (((1ull << 31) - PARAMETER(B_HIGH)) << 26) / span;
	r->slope_p = ((log_p_high - log_p_low) << 26) / span;
}

/* The distance of w above w_low, as a logarithm. */
INLINE u64 above(const struct response *r, u32 w)
{
	u64 log = log2_q32(w);
	return log > r->log_w_low ? log - r->log_w_low : 0;
}

/* b at x above w_low, Q32; beyond w_high it stays b_high. */
INLINE u64 b_at(const struct response *r, u64 x)
{
	u64 fall = (x >> 8) * (r->slope_b >> 8) >> 16;
	u64 half = 1ull << 31;
	return half > fall ? max64(half - fall, PARAMETER(B_HIGH)) : PARAMETER(B_HIGH);
}

/* The last row of the table that begins at or below w. */
INLINE u32 row(u32 w)
{
	u32 low = 0, step;

	for (step = 64; step > 0; step >>= 1) {
		u32 next = low + step;
		if (next < ROWS && table[next][0] <= w)
			low = next;
	}
	return low;
}

INLINE u32 w_low(void)
{
	return PARAMETER(RESPONSE) == STEPS ? 38 : PARAMETER(W_LOW) >> Q20;
}

/* Increase in a round trip at window w, Q20. */
static __attribute__((__noinline__)) u64 increase(struct response *r, u32 w)
{
	u64 x, b, log, a;

	if (!r)
		return ONE20;
	if (r->w == w)
		return r->a;
	if (PARAMETER(RESPONSE) == STEPS) {
		a = (u64)(1 + row(w)) << Q20;
	} else {
		x = above(r, w);
		b = b_at(r, x);
		/* a = 2 w^2 p b/(2 - b), of which w^2 p is 1 or more but for rounding: it is made twice as large. */
		log = ONE32 + 2 * log2_q32(w) - r->log_p_low - ((x >> 8) * (r->slope_p >> 8) >> 16);
		a = (s64)log > 0 ? exp2_q32(log) >> 12 : ONE20;
		a = (a * (b >> 12)) / ((2 * ONE32 - b) >> 12);
	}
	r->w = w;
	r->a = a;
	return a;
}

/* The window that remains of w after a loss. */
static __attribute__((__noinline__)) u32 decrease(const struct response *r, u32 w)
{
	u64 b;

	if (!r)
		return w >> 1;
	if (PARAMETER(RESPONSE) == STEPS) {
		u32 i = row(w);
		return i < ROWS ? (u64)w * (100 - table[i][1]) / 100 : w;
	}
	b = b_at(r, above(r, w));
	return (ONE32 - b) * w >> 32;
}

/* Grows the window for the acknowledged segments: up to w_low as in Standard TCP. */
INLINE void hstcp_grow(struct tcp_sock *tp, u64 *waiting, struct response *r, u32 acked)
{
	u32 w = tp->snd_cwnd;

	if (acked)
		grow_per_window(tp, waiting, w <= w_low() ? ONE20 : increase(r, w), acked);
}

#endif
