/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What a congestion control module of Linux calls of its kernel. */
#include <stdlib.h>

#include "connection.h"

/* Modules take a time of zero for none. The endpoint's clock begins here, too. */
#define CLOCK_START_NS 1000000000ull

_Thread_local struct connection *elephan_current;

struct tcp_congestion_ops *elephan_registered;

u64 elephan_clock_ns(void)
{
	return elephan_current ? elephan_current->now_ns : CLOCK_START_NS;
}

int elephan_message(const char *format, ...)
{
	(void)format;
	return 0;
}

void *elephan_allocate(size_t count, size_t size)
{
	struct block *block;
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes) || bytes > SIZE_MAX - sizeof(*block))
		return NULL;
	block = calloc(1, sizeof(*block) + bytes);
	if (block == NULL)
		return NULL;
	block->size = bytes;
	block->next = block->previous = block;
	if (elephan_current) {
		block->next = elephan_current->blocks.next;
		block->previous = &elephan_current->blocks;
		block->next->previous = block;
		block->previous->next = block;
	}
	return MEMORY(block);
}

void kfree(const void *memory)
{
	struct block *block;

	if (memory == NULL)
		return;
	block = (struct block *)(uintptr_t)memory - 1;
	block->previous->next = block->next;
	block->next->previous = block->previous;
	free(block);
}

/* Steele, Lea and Flood's SplitMix64. */
static u64 next_random(void)
{
	static _Thread_local u64 without_connection;
	u64 *state = elephan_current ? &elephan_current->random : &without_connection;
	u64 z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

u32 get_random_u32(void)
{
	return next_random() >> 32;
}

u32 get_random_u32_below(u32 bound)
{
	return (u64)get_random_u32() * bound >> 32;
}

void get_random_bytes(void *at, size_t count)
{
	for (u8 *byte = at; count-- > 0; byte++)
		*byte = next_random() >> 56;
}

u64 int_sqrt64(u64 x)
{
	u64 root = 0;

	for (int bit = 31; bit >= 0; bit--) {
		u64 tried = root | 1ull << bit;

		if (tried * tried <= x)
			root = tried;
	}
	return root;
}

u32 minmax_reset(struct minmax *m, u32 t, u32 value)
{
	m->s[0] = m->s[1] = m->s[2] = (struct minmax_sample){ .t = t, .v = value };
	return value;
}

/*
 * Kathleen Nichols' filter of an extreme over a window of time. A value that is at least as good as a stored one takes its place and
 * those after it. When the best is older than the window the next best follows. While no new value is better, the second and the
 * third are replaced after a quarter and half of the window, so that they are not as old as the best.
 */
static u32 running(struct minmax *m, u32 window, u32 t, u32 value, bool is_max)
{
	const struct minmax_sample now = { .t = t, .v = value };
	struct minmax_sample *s = m->s;

#define IS_AS_GOOD(i) (is_max ? value >= s[i].v : value <= s[i].v)
	if (IS_AS_GOOD(0) || t - s[2].t > window)
		return minmax_reset(m, t, value);
	if (IS_AS_GOOD(1))
		s[1] = s[2] = now;
	else if (IS_AS_GOOD(2))
		s[2] = now;
#undef IS_AS_GOOD
	if (t - s[0].t > window) {
		for (int passes = 0; passes < 2 && t - s[0].t > window; passes++) {
			s[0] = s[1];
			s[1] = s[2];
			s[2] = now;
		}
	} else if (s[1].t == s[0].t && t - s[0].t > window / 4) {
		s[1] = s[2] = now;
	} else if (s[2].t == s[1].t && t - s[0].t > window / 2) {
		s[2] = now;
	}
	return s[0].v;
}

u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 value)
{
	return running(m, window, t, value, true);
}

u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 value)
{
	return running(m, window, t, value, false);
}

/* Takes as many acknowledged segments as lead to the threshold, and returns the others. */
u32 tcp_slow_start(struct tcp_sock *tp, u32 acked)
{
	u32 room = tp->snd_ssthresh - tp->snd_cwnd;
	u32 taken = min(acked, room);

	tp->snd_cwnd = min(tp->snd_cwnd + taken, tp->snd_cwnd_clamp);
	return acked - taken;
}

/* A segment more for each `w` acknowledged segments. */
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked)
{
	/* What was counted for a larger `w` is worth one segment. */
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd_cnt = 0;
		tp->snd_cwnd++;
	}
	tp->snd_cwnd_cnt += acked;
	if (tp->snd_cwnd_cnt >= w) {
		tp->snd_cwnd += tp->snd_cwnd_cnt / w;
		tp->snd_cwnd_cnt %= w;
	}
	tp->snd_cwnd = min(tp->snd_cwnd, tp->snd_cwnd_clamp);
}

void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	(void)ack;
	if (!tcp_is_cwnd_limited(sk))
		return;
	if (tcp_in_slow_start(tp))
		acked = tcp_slow_start(tp, acked);
	if (acked)
		tcp_cong_avoid_ai(tp, tp->snd_cwnd, acked);
}

u32 tcp_reno_ssthresh(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd / 2, 2u);
}

u32 tcp_reno_undo_cwnd(struct sock *sk)
{
	return max(tcp_sk(sk)->snd_cwnd, tcp_sk(sk)->prior_cwnd);
}

/* The endpoint asks for the new threshold as soon as the module has returned. */
void tcp_enter_cwr(struct sock *sk)
{
	container_of(tcp_sk(sk), struct connection, tp)->requests |= ELEPHAN_CC_REQUEST_CWR;
}

/* The first that a module registers; others are fallbacks to which it changes itself. */
int tcp_register_congestion_control(struct tcp_congestion_ops *ops)
{
	if (!ops->ssthresh || !ops->undo_cwnd || !(ops->cong_avoid || ops->cong_control))
		return -EINVAL;
	if (elephan_registered == NULL)
		elephan_registered = ops;
	return 0;
}
