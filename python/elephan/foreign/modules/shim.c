/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * A congestion control module of Linux as an algorithm of elephan-cc.h. It is compiled together with the module, which registers its
 * `struct tcp_congestion_ops` here when the object is loaded.
 *
 * The calls follow net/ipv4/tcp_input.c. On an ACK: pkts_acked, in_ack_event, then cong_control; a module without it gets cong_avoid,
 * except while the window is being reduced (CWR and Recovery). On a congestion event: ssthresh; after a timeout CA_EVENT_LOSS, too.
 *
 * Parameters of a module are variables of its object. A connection with other values than those of this object is made in a private
 * copy of the object, one for each set of values: threads that run connections with different values share nothing.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "connection.h"

#define EXPORTED __attribute__((visibility("default")))
#define MOST_PARAMETERS 64

/* Flags of an ACK in net/ipv4/tcp_input.c, of which modules that define them for themselves get these. */
enum { ACK_DATA_ACKED = 0x04, ACK_DATA_SACKED = 0x20, ACK_ECE = 0x40, ACK_SND_UNA_ADVANCED = 0x400 };

EXPORTED struct elephan_cc elephan_cc;
EXPORTED int elephan_linux_configure(const double *values);

/* ---- Parameters ---- */

enum kind { KIND_INT, KIND_UINT, KIND_LONG, KIND_ULONG, KIND_SHORT, KIND_USHORT, KIND_BYTE, KIND_BOOL, KINDS };

static const struct {
	const char *type;
	double low, high;
} kinds[KINDS] = {
	[KIND_INT] = { "int", -2147483648.0, 2147483647.0 },
	[KIND_UINT] = { "uint", 0, 4294967295.0 },
	/* Whole numbers that a double has. */
	[KIND_LONG] = { "long", -9007199254740992.0, 9007199254740992.0 },
	[KIND_ULONG] = { "ulong", 0, 9007199254740992.0 },
	[KIND_SHORT] = { "short", -32768, 32767 },
	[KIND_USHORT] = { "ushort", 0, 65535 },
	[KIND_BYTE] = { "byte", 0, 255 },
	[KIND_BOOL] = { "bool", 0, 1 },
};

static struct elephan_cc_parameter rows[MOST_PARAMETERS + 1];
static struct {
	void *at;
	enum kind kind;
} variables[MOST_PARAMETERS];
static int parameters;
static double configured[MOST_PARAMETERS];

static double read_variable(int i)
{
	const void *at = variables[i].at;

	switch (variables[i].kind) {
	case KIND_INT: return *(const int *)at;
	case KIND_UINT: return *(const unsigned int *)at;
	case KIND_LONG: return *(const long *)at;
	case KIND_ULONG: return *(const unsigned long *)at;
	case KIND_SHORT: return *(const short *)at;
	case KIND_USHORT: return *(const unsigned short *)at;
	case KIND_BYTE: return *(const unsigned char *)at;
	default: return *(const bool *)at;
	}
}

static void write_variable(int i, double value)
{
	void *at = variables[i].at;

	switch (variables[i].kind) {
	case KIND_INT: *(int *)at = (int)value; break;
	case KIND_UINT: *(unsigned int *)at = (unsigned int)value; break;
	case KIND_LONG: *(long *)at = (long)value; break;
	case KIND_ULONG: *(unsigned long *)at = (unsigned long)value; break;
	case KIND_SHORT: *(short *)at = (short)value; break;
	case KIND_USHORT: *(unsigned short *)at = (unsigned short)value; break;
	case KIND_BYTE: *(unsigned char *)at = (unsigned char)value; break;
	default: *(bool *)at = value != 0; break;
	}
}

static void add_parameter(const char *name, void *at, enum kind kind, double low, double high)
{
	int i = parameters;

	if (i == MOST_PARAMETERS)
		return;
	rows[i] = (struct elephan_cc_parameter){ .name = name, .meaning = name, .low = low, .high = high };
	variables[i].at = at;
	variables[i].kind = kind;
	parameters++;
}

/* Text and other types that are no number are left at their defaults. */
void elephan_parameter(const char *name, void *at, const char *type)
{
	for (int kind = 0; kind < KINDS; kind++)
		if (strcmp(kinds[kind].type, type) == 0)
			add_parameter(name, at, kind, kinds[kind].low, kinds[kind].high);
}

/* The type and the range that a module's own setter asks for. */
static struct {
	bool is_known;
	enum kind kind;
	double low, high;
} asked;

static int ask(enum kind kind, double low, double high)
{
	asked.is_known = true;
	asked.kind = kind;
	asked.low = low;
	asked.high = high;
	return 0;
}

int param_set_uint_minmax(const char *value, const struct kernel_param *parameter, unsigned int low, unsigned int high)
{
	(void)value, (void)parameter;
	return ask(KIND_UINT, low, high);
}

#define SETTER(type, kind) \
	int param_set_##type(const char *value, const struct kernel_param *parameter) \
	{ \
		(void)value, (void)parameter; \
		return ask(kind, kinds[kind].low, kinds[kind].high); \
	} \
	int param_get_##type(char *buffer, const struct kernel_param *parameter) \
	{ \
		(void)buffer, (void)parameter; \
		return 0; \
	}
SETTER(int, KIND_INT)
SETTER(uint, KIND_UINT)
SETTER(ulong, KIND_ULONG)
SETTER(bool, KIND_BOOL)

void elephan_parameter_of(const char *name, void *at, const struct kernel_param_ops *ops)
{
	const struct kernel_param parameter = { .name = name, .arg = at };

	asked.is_known = false;
	if (ops->set && ops->set("0", &parameter) == 0 && asked.is_known)
		add_parameter(name, at, asked.kind, asked.low, asked.high);
}

void elephan_meaning(const char *name, const char *text)
{
	for (int i = 0; i < parameters; i++)
		if (strcmp(rows[i].name, name) == 0)
			rows[i].meaning = text;
}

void elephan_title(const char *text)
{
	elephan_cc.title = text;
}

/* ---- Copies of this object ---- */

struct copy {
	struct copy *next;
	void *handle;
	int file; /* open as long as the copy is: the loader knows an object by its path */
	const struct elephan_cc *table;
	size_t connections;
	double values[MOST_PARAMETERS];
};

static pthread_mutex_t copies_lock = PTHREAD_MUTEX_INITIALIZER;
static struct copy *copies;

static const char FILES[] = "/proc/self/fd/";

static const char *own_path(void)
{
	Dl_info found;

	return dladdr(&elephan_cc, &found) ? found.dli_fname : "";
}

static bool is_copy(void)
{
	return strncmp(own_path(), FILES, sizeof(FILES) - 1) == 0;
}

static bool are_equal(const double *x, const double *y)
{
	for (int i = 0; i < parameters; i++)
		if (x[i] != y[i])
			return false;
	return true;
}

/* The values of a copy, before its module begins. Returns what the module returns: 0, or an error if it refuses a value. */
int elephan_linux_configure(const double *values)
{
	elephan_current = NULL;
	for (int i = 0; i < parameters; i++) {
		configured[i] = values[i];
		write_variable(i, values[i]);
		/* A part of a whole number. */
		if (read_variable(i) != values[i])
			return -EINVAL;
	}
	return elephan_module_init();
}

static void close_copy(struct copy *copy)
{
	if (copy->handle != NULL)
		dlclose(copy->handle);
	if (copy->file >= 0)
		close(copy->file);
	free(copy);
}

/* Opens a file of memory with this object's bytes: the loader takes it for another object, with variables of its own. */
static void *open_copy(int file)
{
	int from = open(own_path(), O_RDONLY | O_CLOEXEC);
	void *handle = NULL;
	struct stat status;
	char path[32];

	if (from < 0)
		return NULL;
	if (file >= 0 && fstat(from, &status) == 0 && sendfile(file, from, NULL, status.st_size) == status.st_size) {
		snprintf(path, sizeof(path), "%s%d", FILES, file);
		handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	close(from);
	return handle;
}

/* NULL if there is no memory, or the module refuses the values. */
static struct copy *make_copy(const double *values)
{
	struct copy *copy = calloc(1, sizeof(*copy));
	int (*configure)(const double *);

	if (copy == NULL)
		return NULL;
	copy->file = memfd_create("elephan", MFD_CLOEXEC);
	copy->handle = open_copy(copy->file);
	if (copy->handle != NULL) {
		*(void **)&configure = dlsym(copy->handle, "elephan_linux_configure");
		copy->table = dlsym(copy->handle, "elephan_cc");
		memcpy(copy->values, values, parameters * sizeof(values[0]));
		if (configure(values) == 0)
			return copy;
	}
	close_copy(copy);
	return NULL;
}

static void *create_in_copy(const double *values, uint64_t seed)
{
	struct copy *copy;
	void *state = NULL;

	pthread_mutex_lock(&copies_lock);
	for (copy = copies; copy != NULL && !are_equal(copy->values, values); copy = copy->next)
		;
	if (copy == NULL) {
		copy = make_copy(values);
		if (copy != NULL) {
			copy->next = copies;
			copies = copy;
		}
	}
	if (copy != NULL) {
		state = copy->table->create(values, seed);
		copy->connections += state != NULL;
	}
	pthread_mutex_unlock(&copies_lock);
	return state;
}

/* Counts the connections of a copy; the last one closes it. */
static void count(const struct elephan_cc *table, int change)
{
	pthread_mutex_lock(&copies_lock);
	for (struct copy **at = &copies; *at != NULL; at = &(*at)->next) {
		struct copy *copy = *at;

		if (copy->table != table)
			continue;
		copy->connections += change;
		if (copy->connections == 0) {
			*at = copy->next;
			close_copy(copy);
		}
		break;
	}
	pthread_mutex_unlock(&copies_lock);
}

/* Passes a call on to the copy to which the connection belongs. */
#define IS_FOREIGN(state) unlikely(((const struct connection *)(state))->home != &elephan_cc)
#define PASS_ON(function, state, ...) \
	if (IS_FOREIGN(state)) { \
		((const struct connection *)(state))->home->function(state, ##__VA_ARGS__); \
		return; \
	}

/* ---- The connection before and after a call ---- */

#define SK(c) (&(c)->tp.inet_conn.sk)
/* Whether the module reads the kernel's own pacing rate. */
#ifdef ELEPHAN_NO_PACING_RATE
#define READS_PACING_RATE 0
#else
#define READS_PACING_RATE 1
#endif
#define CALL(c, operation, ...) do { \
	const struct tcp_congestion_ops *ops = (c)->tp.inet_conn.icsk_ca_ops; \
	if (ops->operation) \
		ops->operation(SK(c), ##__VA_ARGS__); \
} while (0)

static void set_window(struct connection *c, const struct elephan_cc_window *window)
{
	struct tcp_sock *tp = &c->tp;

	tp->snd_cwnd = window->cwnd < 1 ? 1 : (u32)window->cwnd;
	tp->snd_ssthresh = window->ssthresh < TCP_INFINITE_SSTHRESH ? (u32)window->ssthresh : TCP_INFINITE_SSTHRESH;
	c->requests = 0;
	elephan_current = c;
}

static void set(struct connection *c, const struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct tcp_sock *tp = &c->tp;
	const struct sock *sk = SK(c);

	set_window(c, window);
	c->now_ns = ack->now_ns;
	tp->tcp_clock_cache = c->now_ns;
	tp->tcp_mstamp = c->now_ns / NSEC_PER_USEC;
	tp->lsndtime = ack->sent_ns / NSEC_PER_MSEC;
	/* When the next segment may leave. */
	tp->tcp_wstamp_ns = ack->sent_ns;
	if (sk->sk_pacing_status == SK_PACING_NEEDED && sk->sk_pacing_rate)
		tp->tcp_wstamp_ns += ack->mss * (u64)NSEC_PER_SEC / sk->sk_pacing_rate;
	tp->srtt_us = ack->srtt_ns / 125;
	if (ack->min_rtt_ns)
		tp->rtt_min.s[0].v = ack->min_rtt_ns / NSEC_PER_USEC;
	tp->snd_una = ack->snd_una;
	tp->snd_nxt = ack->snd_nxt;
	tp->delivered = ack->delivered;
	tp->delivered_ce = ack->delivered_ce;
	tp->lost = ack->lost;
	tp->packets_out = ack->in_flight + ack->sacked;
	tp->sacked_out = ack->sacked;
	tp->max_packets_out = ack->outstanding_max;
	tp->is_cwnd_limited = ack->is_window_limited != 0;
	tp->mss_cache = ack->mss;
	/* Timestamps in milliseconds, of an ACK that took half the smallest round-trip time. The receiver's have an offset, as in Linux
	   since 4.10. */
	if (ack->rtt_ns >= 0) {
		tp->rx_opt.rcv_tsecr = (c->now_ns - (u64)ack->rtt_ns) / NSEC_PER_MSEC;
		tp->rx_opt.rcv_tsval = c->timestamp_offset + (u32)((c->now_ns - ack->min_rtt_ns / 2) / NSEC_PER_MSEC);
	}
}

static void get(struct connection *c, struct elephan_cc_window *window)
{
	const struct tcp_sock *tp = &c->tp;
	const struct sock *sk = SK(c);

	window->cwnd = tp->snd_cwnd;
	window->ssthresh = tp->snd_ssthresh < TCP_INFINITE_SSTHRESH ? tp->snd_ssthresh : INFINITY;
	/* Without cong_control the rate below is the kernel's own, for modules to read. */
	window->pacing_rate = sk->sk_pacing_status == SK_PACING_NEEDED ? (double)sk->sk_pacing_rate : 0;
	window->requests = c->requests;
}

/* The kernel's pacing rate for modules without cong_control: twice the rate of the window in slow start, 1.2 times it later. */
static void update_pacing_rate(struct connection *c)
{
	const struct tcp_sock *tp = &c->tp;
	u64 percent = tp->snd_cwnd < tp->snd_ssthresh / 2 ? 200 : 120;

	if (READS_PACING_RATE && tp->srtt_us)
		SK(c)->sk_pacing_rate = (u64)tp->mss_cache * max(tp->snd_cwnd, tp->packets_out) * percent * (8 * USEC_PER_SEC / 100) / tp->srtt_us;
}

static struct rate_sample rate_sample(struct connection *c, const struct elephan_cc_ack *ack)
{
	const struct elephan_cc_rate *rate = &ack->rate;
	struct rate_sample rs = {
		.prior_delivered = rate->prior_delivered,
		.prior_delivered_ce = rate->prior_delivered_ce,
		.delivered = -1,
		.interval_us = -1,
		.rtt_us = ack->rtt_ns < 0 ? -1 : ack->rtt_ns / NSEC_PER_USEC,
		.losses = rate->lost,
		.acked_sacked = ack->acked,
		.prior_in_flight = ack->prior_in_flight,
		.is_app_limited = rate->is_app_limited,
		.is_ack_delayed = rate->is_ack_delayed,
	};

	if (rate->interval_ns > 0) {
		rs.delivered = rate->delivered;
		rs.delivered_ce = rate->delivered_ce;
		rs.interval_us = rate->interval_ns / NSEC_PER_USEC;
	}
	if (c->is_limited) {
		rs.is_app_limited |= between(rs.prior_delivered, c->limited_from, c->limited_to);
		if (after(rs.prior_delivered, c->limited_to))
			c->is_limited = false;
	}
	return rs;
}

/* A module marks what it sends from now on as application-limited, until this many segments are delivered. */
static void note_limit(struct connection *c, u32 was)
{
	if (c->tp.app_limited == was)
		return;
	if (!c->is_limited)
		c->limited_from = c->tp.delivered;
	c->limited_to = c->tp.app_limited;
	c->is_limited = true;
}

/* ---- The table ---- */

static void *create(const double *values, uint64_t seed)
{
	struct connection *c;
	struct tcp_sock *tp;

	if (!are_equal(values, configured))
		return is_copy() ? NULL : create_in_copy(values, seed);
	c = calloc(1, sizeof(*c));
	if (c == NULL)
		return NULL;
	tp = &c->tp;
	c->home = &elephan_cc;
	c->blocks.next = c->blocks.previous = &c->blocks;
	/* A draw of its own, so that the module's draws do not depend on it. */
	c->random = ~seed;
	elephan_current = c;
	c->timestamp_offset = get_random_u32();
	c->random = seed;
	tp->inet_conn.icsk_ca_ops = elephan_registered;
	tp->inet_conn.sk.sk_max_pacing_rate = ~0ul;
	tp->inet_conn.sk.sk_pacing_shift = 10;
	tp->inet_conn.sk.sk_gso_max_size = GSO_LEGACY_MAX_SIZE;
	tp->inet_conn.sk.sk_state = TCP_ESTABLISHED;
	tp->snd_cwnd_clamp = ~0u;
	tp->rtt_min.s[0].v = ~0u;
	if (elephan_registered->flags & TCP_CONG_NEEDS_ECN)
		tp->ecn_flags = TCP_ECN_OK;
	return c;
}

static void destroy(void *state)
{
	struct connection *c = state;
	const struct elephan_cc *home = c->home;

	if (IS_FOREIGN(c)) {
		home->destroy(c);
		count(home, -1);
		return;
	}
	elephan_current = c;
	CALL(c, release);
	while (c->blocks.next != &c->blocks)
		kfree(MEMORY(c->blocks.next));
	elephan_current = NULL;
	free(c);
}

/* Makes the words of a copy that point into a block point into the copy of the block. */
static void redirect(void *at, size_t size, const struct block *old, struct block *new)
{
	uintptr_t from = (uintptr_t)MEMORY(old);

	for (uintptr_t *word = at; size >= sizeof(*word); word++, size -= sizeof(*word))
		if (*word >= from && *word - from < max(old->size, (size_t)1))
			*word = (uintptr_t)MEMORY(new) + (*word - from);
}

static void *copied(const void *state)
{
	const struct connection *from = state;
	const struct block *end = &from->blocks;
	struct connection *c;

	if (IS_FOREIGN(from)) {
		c = from->home->clone(from);
		if (c != NULL)
			count(from->home, 1);
		return c;
	}
	c = malloc(sizeof(*c));
	if (c == NULL)
		return NULL;
	*c = *from;
	c->blocks.next = c->blocks.previous = &c->blocks;
	elephan_current = c;
	for (const struct block *old = end->previous; old != end; old = old->previous) {
		void *memory = elephan_allocate(1, old->size);

		if (memory == NULL) {
			while (c->blocks.next != &c->blocks)
				kfree(MEMORY(c->blocks.next));
			free(c);
			elephan_current = NULL;
			return NULL;
		}
		memcpy(memory, MEMORY(old), old->size);
	}
	/* The copies are in the order of the originals. */
	for (struct block *old = end->next, *new = c->blocks.next; old != end; old = old->next, new = new->next) {
		redirect(c->tp.inet_conn.icsk_ca_priv, sizeof(c->tp.inet_conn.icsk_ca_priv), old, new);
		for (struct block *other = c->blocks.next; other != &c->blocks; other = other->next)
			redirect(MEMORY(other), other->size, old, new);
	}
	elephan_current = NULL;
	return c;
}

static void on_start(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct connection *c = state;

	PASS_ON(on_start, state, window, ack)
	set(c, window, ack);
	/* The SYN-ACK is processed before init, which sets the window. CDG keeps its round-trip time. */
	if (ack->min_rtt_ns) {
		struct ack_sample sample = { .pkts_acked = 1, .rtt_us = ack->min_rtt_ns / NSEC_PER_USEC };

		CALL(c, pkts_acked, &sample);
		set_window(c, window);
	}
	c->tp.delivered_mstamp = c->tp.tcp_mstamp;
	update_pacing_rate(c);
	CALL(c, init);
	get(c, window);
}

/* Takes what is reported of the connection. The module hears what an ACK delivered before anything follows from it (tcp_clean_rtx_queue,
   then tcp_in_ack_event). */
static void take(struct connection *c, const struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct ack_sample sample = {
		.pkts_acked = ack->acked_cumulative,
		.rtt_us = ack->rtt_ns < 0 ? -1 : ack->rtt_ns / NSEC_PER_USEC,
		.in_flight = ack->mss * (ack->rate.delivered ? ack->rate.delivered : ack->prior_in_flight),
	};

	set(c, window, ack);
	if (!ack->acked || c->is_taken)
		return;
	c->is_taken = true;
	CALL(c, pkts_acked, &sample);
	CALL(c, in_ack_event, CA_ACK_WIN_UPDATE | (ack->is_predicted ? 0 : CA_ACK_SLOWPATH) | (ack->is_ece ? CA_ACK_ECE : 0));
}

static void on_ack(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct connection *c = state;
	struct tcp_sock *tp = &c->tp;
	const struct tcp_congestion_ops *ops = tp->inet_conn.icsk_ca_ops;
	u32 was_limited;

	PASS_ON(on_ack, state, window, ack)
	take(c, window, ack);
	c->is_taken = false;
	tp->delivered_mstamp = tp->tcp_mstamp;
	if (tp->app_limited && after(tp->delivered, tp->app_limited))
		tp->app_limited = 0;
	was_limited = tp->app_limited;
	tp->inet_conn.icsk_ca_state = ack->state;
	if (ops->cong_control) {
		struct rate_sample rs = rate_sample(c, ack);
#ifdef ELEPHAN_CONG_CONTROL_OF_FOUR
		int flag = (ack->acked_cumulative ? ACK_DATA_ACKED | ACK_SND_UNA_ADVANCED : 0) |
			(ack->acked > ack->acked_cumulative ? ACK_DATA_SACKED : 0) | (ack->is_ece ? ACK_ECE : 0);

		ops->cong_control(SK(c), tp->snd_una, flag, &rs);
#else
		ops->cong_control(SK(c), &rs);
#endif
	} else {
		/* Where segments are overtaken, the endpoint lets windows grow at other ACKs, too (tcp_may_raise_cwnd). */
		if (!tcp_in_cwnd_reduction(SK(c)) && (ack->acked_cumulative || ack->growth > 0))
			ops->cong_avoid(SK(c), tp->snd_una, ack->acked);
		update_pacing_rate(c);
	}
	note_limit(c, was_limited);
	get(c, window);
}

static void on_congestion(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t cause)
{
	struct connection *c = state;
	struct tcp_sock *tp = &c->tp;

	PASS_ON(on_congestion, state, window, ack, cause)
	take(c, window, ack);
	tp->prior_ssthresh = cause == ELEPHAN_CC_CAUSE_ECN ? 0 : tcp_current_ssthresh(SK(c));
	tp->prior_cwnd = tp->snd_cwnd;
	tp->snd_cwnd_cnt = 0;
	tp->snd_ssthresh = tp->inet_conn.icsk_ca_ops->ssthresh(SK(c));
	if (cause == ELEPHAN_CC_CAUSE_TIMEOUT)
		CALL(c, cwnd_event, CA_EVENT_LOSS);
	c->is_reducing = cause != ELEPHAN_CC_CAUSE_TIMEOUT && !tp->inet_conn.icsk_ca_ops->cong_control;
	get(c, window);
}

static void on_state(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack)
{
	struct connection *c = state;
	struct tcp_sock *tp = &c->tp;
	u32 reduced;

	PASS_ON(on_state, state, window, ack)
	take(c, window, ack);
	reduced = tp->snd_cwnd;
	/* The endpoint has reduced the window. In Linux it falls during the state: modules still see that of before, and may set another
	   threshold. */
	if (c->is_reducing)
		tp->snd_cwnd = tp->prior_cwnd;
	/* After a timeout, when what is lost is known, the window allows one segment more than is in flight. */
	if (ack->state == ELEPHAN_CC_LOSS && tp->inet_conn.icsk_ca_ops->cong_control)
		tp->snd_cwnd = ack->in_flight + 1;
	/* Modules compare the new state with the one before. */
	CALL(c, set_state, ack->state);
	tp->inet_conn.icsk_ca_state = ack->state;
	if (c->is_reducing)
		tp->snd_cwnd = min3(reduced, tp->snd_cwnd, max(tp->snd_ssthresh, 1u));
	c->is_reducing = false;
	get(c, window);
}

static void on_event(void *state, struct elephan_cc_window *window, const struct elephan_cc_ack *ack, uint32_t event)
{
	struct connection *c = state;
	struct tcp_sock *tp = &c->tp;

	PASS_ON(on_event, state, window, ack, event)
	take(c, window, ack);
	switch (event) {
	case ELEPHAN_CC_EVENT_RESTART:
		CALL(c, cwnd_event, CA_EVENT_CWND_RESTART);
		tp->snd_ssthresh = tcp_current_ssthresh(SK(c));
		fallthrough; /* the first data follows */
	case ELEPHAN_CC_EVENT_START:
		/* It was idle because it had no data; otherwise all was acknowledged at once, or is lost. */
		if (!ack->is_window_limited && ack->snd_una == ack->snd_nxt)
			tp->app_limited = max(tp->app_limited, 1u);
		CALL(c, cwnd_event, CA_EVENT_TX_START);
		CALL(c, cwnd_event_tx_start);
		break;
	case ELEPHAN_CC_EVENT_END_CWR:
		if (!tp->inet_conn.icsk_ca_ops->cong_control)
			CALL(c, cwnd_event, CA_EVENT_COMPLETE_CWR);
		break;
	case ELEPHAN_CC_EVENT_CE:
		CALL(c, cwnd_event, CA_EVENT_ECN_IS_CE);
		break;
	case ELEPHAN_CC_EVENT_NO_CE:
		CALL(c, cwnd_event, CA_EVENT_ECN_NO_CE);
		break;
	case ELEPHAN_CC_EVENT_TIMEOUT:
		/* Modules are told after ssthresh, in on_congestion. Another timeout changes no state. */
		if (ack->state == ELEPHAN_CC_LOSS && tp->inet_conn.icsk_ca_ops->cong_control)
			tp->snd_cwnd = 1;
		break;
	default:
		break;
	}
	get(c, window);
}

static void on_undo(void *state, struct elephan_cc_window *window, const struct elephan_cc_window *before)
{
	struct connection *c = state;
	struct tcp_sock *tp = &c->tp;

	PASS_ON(on_undo, state, window, before)
	set_window(c, window);
	tp->prior_cwnd = before->cwnd;
	tp->snd_cwnd = tp->inet_conn.icsk_ca_ops->undo_cwnd(SK(c));
	tp->snd_ssthresh = max(tp->snd_ssthresh, tp->prior_ssthresh);
	get(c, window);
}

/* The last of the object's functions that run when it is loaded: those of the module have registered its parameters. */
static void __attribute__((constructor)) begin(void)
{
	for (int i = 0; i < parameters; i++) {
		rows[i].value = configured[i] = read_variable(i);
		/* A default outside the range of its type's setter is the module's own affair. */
		rows[i].low = min(rows[i].low, rows[i].value);
		rows[i].high = max(rows[i].high, rows[i].value);
	}
	elephan_cc.abi = ELEPHAN_CC_ABI;
	elephan_cc.size = sizeof(elephan_cc);
#ifdef ELEPHAN_SOURCE
	elephan_cc.source = ELEPHAN_SOURCE;
#endif
	elephan_cc.parameters = parameters ? rows : NULL;
	elephan_cc.create = create;
	elephan_cc.clone = copied;
	elephan_cc.destroy = destroy;
	elephan_cc.on_start = on_start;
	elephan_cc.on_ack = on_ack;
	elephan_cc.on_congestion = on_congestion;
	elephan_cc.on_state = on_state;
	elephan_cc.on_event = on_event;
	elephan_cc.on_undo = on_undo;
	/* A copy begins when it has its values. */
	if (is_copy())
		return;
	if (elephan_module_init() != 0 || elephan_registered == NULL)
		return;
	elephan_cc.name = elephan_registered->name;
	if (elephan_registered->cong_control)
		elephan_cc.flags |= ELEPHAN_CC_GOVERNS_RECOVERY;
#ifndef ELEPHAN_NO_RATE
	elephan_cc.flags |= ELEPHAN_CC_NEEDS_RATE;
#endif
	if (elephan_registered->flags & TCP_CONG_NEEDS_ECN)
		elephan_cc.flags |= ELEPHAN_CC_NEEDS_ECN;
}
