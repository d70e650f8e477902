// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Compares the guest's algorithms with the host's, call by call: windows, answers and the private words of the connections
 * must be equal. ALGORITHMS is X(reno) X(hstcp) ...
 */
#define ALGORITHM test
#include "elephan.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "connection.h"

#define X(name) extern const struct tcp_congestion_ops el_##name; extern const struct parameter el_##name##_parameters[];
ALGORITHMS
#undef X

static const struct {
	const char *name;
	const struct tcp_congestion_ops *ops;
	const struct parameter *table;
} algorithms[] = {
#define X(name) { #name, &el_##name, el_##name##_parameters },
	ALGORITHMS
};

#define MOST 16
#define STEPS 30000
#define INFINITE_SSTHRESH 0x7fffffff

int elephan_algorithm(const char *name, const char *registered, const u64 *values, u32 count);

void host_call(unsigned algorithm, const u64 *values, enum operation operation, const struct told *told,
	       struct changed *changed)
{
	const struct tcp_congestion_ops *ops = algorithms[algorithm].ops;
	struct ack_sample sample = { .rtt_us = told->rtt_us, .pkts_acked = told->acked };
	struct tcp_sock tp = before(told, changed);
	u64 ctx[3] = { (u64)&tp };

	el_values = values;
	changed->answer = 0;
	switch (operation) {
	case INIT:
		if (ops->init)
			ops->init(ctx);
		break;
	case PKTS_ACKED:
		ctx[1] = (u64)&sample;
		if (ops->pkts_acked)
			ops->pkts_acked(ctx);
		break;
	case CONG_AVOID:
		ctx[1] = told->snd_una;
		ctx[2] = told->acked;
		ops->cong_avoid(ctx);
		break;
	case SSTHRESH:
		changed->answer = ops->ssthresh(ctx);
		break;
	case SET_STATE:
		ctx[1] = told->state;
		if (ops->set_state)
			ops->set_state(ctx);
		break;
	case UNDO_CWND:
		changed->answer = ops->undo_cwnd(ctx);
		break;
	}
	after(&tp, changed);
}

static u64 seed = 1;

/* Below `limit`, by xorshift. */
static u32 draw(u32 limit)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (u32)(seed >> 32) % limit;
}

/* One setting of an algorithm, in both modes. */
struct pair {
	unsigned algorithm;
	const u64 *values;
	const char *registered;
	/* Whose ACKs may interrupt. */
	const char *other;
	struct told told;
	struct changed host, guest;
};

static int call(struct pair *pair, enum operation operation)
{
	if (draw(2))
		guest_interrupt(pair->other);
	host_call(pair->algorithm, pair->values, operation, &pair->told, &pair->host);
	guest_call(pair->registered, operation, &pair->told, &pair->guest);
	guest_interrupt(NULL);
	if (!memcmp(&pair->host, &pair->guest, sizeof(pair->host)))
		return 0;
	printf("%s, operation %d: expected window %u, threshold %u, answer %u, found %u, %u, %u\n", pair->registered, operation,
	       pair->host.snd_cwnd, pair->host.snd_ssthresh, pair->host.answer, pair->guest.snd_cwnd, pair->guest.snd_ssthresh,
	       pair->guest.answer);
	return 1;
}

static void set_window(struct pair *pair, u32 cwnd, u32 ssthresh)
{
	pair->host.snd_cwnd = pair->guest.snd_cwnd = cwnd;
	pair->host.snd_ssthresh = pair->guest.snd_ssthresh = ssthresh;
}

static int congestion(struct pair *pair, u32 state)
{
	int wrong = call(pair, SSTHRESH);

	set_window(pair, state == TCP_CA_Loss ? 1 : pair->host.answer, pair->host.answer);
	pair->told.state = state;
	wrong |= call(pair, SET_STATE);
	pair->told.tcp_mstamp += draw(100000);
	pair->told.state = 0;
	return wrong | call(pair, SET_STATE);
}

static int ack(struct pair *pair)
{
	struct told *told = &pair->told;
	u32 queueing = draw(40000);

	told->acked = 1 + draw(4);
	told->rtt_us = draw(20) ? (s32)(told->min_rtt_us + queueing) : -1;
	told->srtt_us = 8 * (told->min_rtt_us + queueing / 2);
	told->tcp_mstamp += 1 + draw(2000);
	told->delivered += told->acked;
	told->delivered_ce += draw(3) ? 0 : told->acked;
	told->snd_una += 1448 * told->acked;
	told->snd_nxt = told->snd_una + 1448 * pair->host.snd_cwnd;
	told->max_packets_out = pair->host.snd_cwnd - draw(2) * (pair->host.snd_cwnd / 2);
	told->is_cwnd_limited = draw(10) != 0;
	return call(pair, PKTS_ACKED) | call(pair, CONG_AVOID);
}

static int compare(struct pair *pair)
{
	u32 step;
	int wrong;

	pair->told = (struct told){ .tcp_mstamp = 1000000, .mss_cache = 1448, .min_rtt_us = 50000, .snd_nxt = 0xffff0000 };
	memset(&pair->host, 0, sizeof(pair->host));
	memset(&pair->guest, 0, sizeof(pair->guest));
	set_window(pair, 10, INFINITE_SSTHRESH);
	wrong = call(pair, INIT);
	for (step = 0; step < STEPS && !wrong; step++) {
		u32 event = draw(1000);

		if (event < 4 || pair->host.snd_cwnd > 200000)
			wrong = congestion(pair, event & 1 ? TCP_CA_Recovery : TCP_CA_CWR);
		else if (event < 5)
			wrong = congestion(pair, TCP_CA_Loss);
		else if (event < 6)
			set_window(pair, pair->host.snd_cwnd, 2 + draw(50000));
		else if (event < 8)
			wrong = call(pair, UNDO_CWND);
		else
			wrong = ack(pair);
	}
	return wrong;
}

static int expect(int found, int expected, const char *what)
{
	if (found != expected)
		printf("%s: expected %d, found %d\n", what, expected, found);
	return found != expected;
}

/* Another value of each parameter, in its range: the second of the words, the other of a flag, three quarters of a number. */
static u64 another(const struct parameter *row)
{
	return !row->bits && !row->value ? 1 : row->value - row->value / 4;
}

int main(void)
{
	struct pair pair;
	int wrong = 0;
	unsigned i;

	for (i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
		const struct parameter *table = algorithms[i].table;
		const char *name = algorithms[i].name, *published = algorithms[i].ops->name;
		u64 values[2][MOST];
		char other[16];
		u32 count = 0;

		for (; count < MOST && table[count].name[0]; count++) {
			values[0][count] = table[count].value;
			values[1][count] = another(&table[count]);
		}
		snprintf(other, sizeof(other), "el_%u", i);
		wrong |= expect(elephan_algorithm(name, other, values[1], count - 1), -EINVAL, "a value too few");
		wrong |= expect(elephan_algorithm(name, other, values[1], count), 0, name);
		wrong |= expect(elephan_algorithm(name, other, values[1], count), -EEXIST, "a name that is taken");
		pair = (struct pair){ .algorithm = i, .values = values[0], .registered = published, .other = other };
		wrong |= compare(&pair);
		pair = (struct pair){ .algorithm = i, .values = values[1], .registered = other, .other = published };
		wrong |= compare(&pair);
	}
	wrong |= expect(elephan_algorithm("cubic", "el_cubic", NULL, 0), -ENOENT, "an algorithm of others");
	wrong |= expect(elephan_algorithm("reno", "el_0123456789abc", (u64[]){ 0, 0 }, 2), -EINVAL, "a name of 16 bytes");
	return wrong;
}
