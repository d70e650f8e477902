/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the congestion control modules of Linux use of their kernel, for compilation as an ordinary shared object.
 *
 * Every #include <linux/...>, <net/...> or <asm/...> of a module leads here. The names and meanings are those of Linux 5.15 and newer;
 * nothing of its text is. A structure has only the members that shim.c keeps up to date: a module that reads another one does not
 * compile, and the compiler names it. Milliseconds are jiffies (HZ = 1000).
 */
#ifndef ELEPHAN_LINUX_H
#define ELEPHAN_LINUX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A type and no macro, for module_param() takes its name. */
#undef bool
typedef _Bool bool;

/* ---- Types and annotations ---- */

typedef unsigned char u8, __u8;
typedef unsigned short u16, __u16;
typedef unsigned int u32, __u32;
typedef unsigned long long u64, __u64;
typedef signed char s8, __s8;
typedef short s16, __s16;
typedef int s32, __s32;
typedef long long s64, __s64;
typedef s64 ktime_t;
typedef unsigned int gfp_t;

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#define __always_unused __attribute__((unused))
#define __maybe_unused __attribute__((unused))
#undef __attribute_const__
#define __attribute_const__ __attribute__((const))
#define __pure __attribute__((pure))
#define __printf(a, b)
#define __must_check
#define __read_mostly
#define __ro_after_init
#define __init
#define __exit
#define __initdata
#define __force
#define __rcu
#define __user
#define __percpu
#define noinline
#define notrace
#define asmlinkage
#undef fallthrough
#define fallthrough __attribute__((fallthrough))
#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define barrier() __asm__ __volatile__("" ::: "memory")

#define U8_MAX 0xffu
#define U16_MAX 0xffffu
#define U32_MAX 0xffffffffu
#define U64_MAX 0xffffffffffffffffull
#define S8_MAX 127
#define S16_MAX 32767
#define S32_MAX 2147483647
#define S32_MIN (-S32_MAX - 1)
#define S64_MAX 9223372036854775807ll
#ifndef INT_MAX
#define INT_MAX __INT_MAX__
#define UINT_MAX (INT_MAX * 2u + 1u)
#define ULONG_MAX (__LONG_MAX__ * 2ul + 1ul)
#endif
#define U32_C(x) x##u
#define U64_C(x) x##ull

#undef EPERM
#undef ENOENT
#undef ENOMEM
#undef EEXIST
#undef EINVAL
#undef ERANGE
#undef EOPNOTSUPP
#define EPERM 1
#define ENOENT 2
#define ENOMEM 12
#define EEXIST 17
#define EINVAL 22
#define ERANGE 34
#define EOPNOTSUPP 95

/* ---- Memory and text ---- */

#undef memset
#undef memcpy
#undef memmove
#undef memcmp
#undef strcmp
#undef strlen
#define memset __builtin_memset
#define memcpy __builtin_memcpy
#define memmove __builtin_memmove
#define memcmp __builtin_memcmp
#define strcmp __builtin_strcmp
#define strlen __builtin_strlen

#define GFP_KERNEL 0u
#define GFP_ATOMIC 0u
#define GFP_NOWAIT 0u
#define __GFP_NOWARN 0u
#define __GFP_ZERO 0u
/* Memory belongs to the connection for which the module is called; a copy of the connection has a copy of it. */
void *elephan_allocate(size_t count, size_t size);
void kfree(const void *memory);
#define kmalloc(size, flags) elephan_allocate(1, size)
#define kzalloc(size, flags) elephan_allocate(1, size)
#define kcalloc(count, size, flags) elephan_allocate(count, size)
#define kmalloc_array(count, size, flags) elephan_allocate(count, size)
#define kmalloc_obj(object, ...) ((__typeof__(object) *)elephan_allocate(1, sizeof(object)))
#define kzalloc_obj(object, ...) ((__typeof__(object) *)elephan_allocate(1, sizeof(object)))
#define kmalloc_objs(object, count, ...) ((__typeof__(object) *)elephan_allocate(count, sizeof(object)))
#define kzalloc_objs(object, count, ...) ((__typeof__(object) *)elephan_allocate(count, sizeof(object)))
#define kvfree kfree
#define kfree_sensitive kfree

/* Messages are not shown; their arguments are compiled, and not evaluated. */
int elephan_message(const char *format, ...);
#define printk(...) ((void)(0 && elephan_message(__VA_ARGS__)))
#define KERN_DEBUG ""
#define KERN_INFO ""
#define KERN_NOTICE ""
#define KERN_WARNING ""
#define KERN_ERR ""
#define pr_debug printk
#define pr_info printk
#define pr_notice printk
#define pr_warn printk
#define pr_err printk
#define pr_debug_once printk
#define pr_info_once printk
#define pr_warn_once printk
#define pr_err_once printk
#define pr_debug_ratelimited printk
#define pr_info_ratelimited printk
#define pr_warn_ratelimited printk
#define pr_err_ratelimited printk
#define printk_ratelimited printk
#define net_dbg_ratelimited printk
#define net_info_ratelimited printk
#define net_warn_ratelimited printk

#define WARN_ON(condition) unlikely(condition)
#define WARN_ON_ONCE(condition) unlikely(condition)
#define WARN(condition, ...) ({ printk(__VA_ARGS__); unlikely(condition); })
#define WARN_ONCE WARN
#define DEBUG_NET_WARN_ON_ONCE(condition) ((void)(condition))
#define BUG_ON(condition) ((condition) ? __builtin_trap() : (void)0)
#define BUILD_BUG_ON(condition) _Static_assert(!(condition), #condition)
#define BUILD_BUG_ON_MSG(condition, text) _Static_assert(!(condition), text)
#ifndef static_assert
#define static_assert(condition, ...) _Static_assert(condition, #condition)
#endif

/* A connection is called by one thread at a time. */
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, value) ((void)((x) = (value)))
#define xchg(at, value) ({ __auto_type el_at = (at); __typeof__(*el_at) el_was = *el_at; *el_at = (value); el_was; })
#define cmpxchg(at, old, value) ({ \
	__auto_type el_at = (at); \
	__typeof__(*el_at) el_was = *el_at; \
	if (el_was == (old)) \
		*el_at = (value); \
	(void)0, el_was; \
})
#define smp_store_release(at, value) ((void)(*(at) = (value)))
#define smp_load_acquire(at) (*(at))
#define smp_mb() barrier()
#define smp_rmb() barrier()
#define smp_wmb() barrier()
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_dereference(x) (x)

/* ---- Numbers ---- */

#define el_choose(x, sign, y) ({ __auto_type el_x = (x); __auto_type el_y = (y); el_x sign el_y ? el_x : el_y; })
#define el_choose_as(type, x, sign, y) ({ type el_x = (x); type el_y = (y); el_x sign el_y ? el_x : el_y; })
#undef min
#undef max
#define min(x, y) el_choose(x, <, y)
#define max(x, y) el_choose(x, >, y)
#define min_t(type, x, y) el_choose_as(type, x, <, y)
#define max_t(type, x, y) el_choose_as(type, x, >, y)
#define umin(x, y) min_t(u64, x, y)
#define umax(x, y) max_t(u64, x, y)
#define min3(x, y, z) min(min(x, y), z)
#define max3(x, y, z) max(max(x, y), z)
#define min_not_zero(x, y) ({ \
	__auto_type el_p = (x); \
	__auto_type el_q = (y); \
	el_p == 0 ? el_q : el_q == 0 ? el_p : min(el_p, el_q); \
})
#define clamp(value, low, high) min((__typeof__(value))max(value, low), high)
#define clamp_t(type, value, low, high) min_t(type, max_t(type, value, low), high)
#define clamp_val(value, low, high) clamp_t(__typeof__(value), value, low, high)
#define swap(x, y) ({ __typeof__(x) el_was = (x); (x) = (y); (y) = el_was; })
#undef abs
#define abs(x) ({ __auto_type el_x = (x); el_x < 0 ? -el_x : el_x; })
#define sizeof_field(type, member) sizeof(((type *)0)->member)
#define container_of(at, type, member) ((type *)((char *)(at) - offsetof(type, member)))
#define ARRAY_SIZE(x) (sizeof(x) / sizeof((x)[0]))
#define BIT(n) (1ul << (n))
#define BIT_ULL(n) (1ull << (n))
#define DIV_ROUND_UP(x, y) (((x) + (y) - 1) / (y))
#define DIV_ROUND_UP_ULL(x, y) DIV_ROUND_UP((u64)(x), y)
#define DIV_ROUND_CLOSEST(x, y) ({ \
	__auto_type el_x = (x); \
	__auto_type el_y = (y); \
	((el_x > 0) == (el_y > 0)) ? (el_x + el_y / 2) / el_y : (el_x - el_y / 2) / el_y; \
})
#define mult_frac(x, n, d) ({ __auto_type el_x = (x); el_x / (d) * (n) + el_x % (d) * (n) / (d); })

/* Divides the variable, and gives the remainder. */
#define do_div(x, y) ({ u32 el_y = (y); u32 el_rest = (u64)(x) % el_y; (x) = (u64)(x) / el_y; el_rest; })

static inline u64 div_u64(u64 x, u32 y) { return x / y; }
static inline u64 div_u64_rem(u64 x, u32 y, u32 *rest) { *rest = x % y; return x / y; }
static inline u64 div64_u64(u64 x, u64 y) { return x / y; }
static inline u64 div64_u64_rem(u64 x, u64 y, u64 *rest) { *rest = x % y; return x / y; }
static inline s64 div_s64(s64 x, s32 y) { return x / y; }
static inline s64 div64_s64(s64 x, s64 y) { return x / y; }
#define div64_long(x, y) div64_s64(x, y)
#define div64_ul(x, y) div64_u64(x, y)
static inline u64 mul_u32_u32(u32 x, u32 y) { return (u64)x * y; }
static inline u64 mul_u64_u32_shr(u64 x, u32 y, unsigned int shift) { return (u64)(((unsigned __int128)x * y) >> shift); }
static inline u64 mul_u64_u32_div(u64 x, u32 y, u32 divisor) { return (u64)((unsigned __int128)x * y / divisor); }
static inline u64 mul_u64_u64_div_u64(u64 x, u64 y, u64 divisor) { return (u64)((unsigned __int128)x * y / divisor); }

/* The position of the highest bit that is set, from 1; 0 without one. */
static inline int fls64(u64 x) { return x ? 64 - __builtin_clzll(x) : 0; }
static inline int fls(u32 x) { return fls64(x); }
#undef ffs
#define ffs __builtin_ffs
#define ilog2(x) (fls64(x) - 1)
#define is_power_of_2(x) ({ u64 el_n = (x); el_n != 0 && (el_n & (el_n - 1)) == 0; })
#define hweight32 __builtin_popcount
#define order_base_2(x) ({ u64 el_n = (x); el_n > 1 ? fls64(el_n - 1) : 0; })
#define roundup_pow_of_two(x) (1ul << order_base_2(x))
u64 int_sqrt64(u64 x);
#define int_sqrt(x) ((unsigned long)int_sqrt64(x))

u32 get_random_u32(void);
u32 get_random_u32_below(u32 bound);
void get_random_bytes(void *at, size_t count);
#define get_random_u8() ((u8)get_random_u32())
#define get_random_u16() ((u16)get_random_u32())
#define get_random_u64() ((u64)get_random_u32() << 32 | get_random_u32())
#define get_random_u32_inclusive(low, high) ((low) + get_random_u32_below((high) - (low) + 1))
#define get_random_int get_random_u32
#define prandom_u32 get_random_u32
#define prandom_u32_max get_random_u32_below
#define prandom_bytes get_random_bytes

/* The best of the newest values: the best, the second best after it and the third, each with its time. */
struct minmax_sample {
	u32 t;
	u32 v;
};

struct minmax {
	struct minmax_sample s[3];
};

static inline u32 minmax_get(const struct minmax *m) { return m->s[0].v; }
u32 minmax_reset(struct minmax *m, u32 t, u32 value);
u32 minmax_running_max(struct minmax *m, u32 window, u32 t, u32 value);
u32 minmax_running_min(struct minmax *m, u32 window, u32 t, u32 value);

/* ---- Time ---- */

#define HZ 1000
#define MSEC_PER_SEC 1000L
#define USEC_PER_MSEC 1000L
#define USEC_PER_SEC 1000000L
#define NSEC_PER_USEC 1000L
#define NSEC_PER_MSEC 1000000L
#define NSEC_PER_SEC 1000000000L
#define TCP_TS_HZ 1000

/* The time of the call; the clock of a connection begins at one second. */
u64 elephan_clock_ns(void);
#define jiffies ((unsigned long)(elephan_clock_ns() / NSEC_PER_MSEC))
#define get_jiffies_64() ((u64)jiffies)
#define tcp_jiffies32 ((u32)jiffies)
#define ktime_get() ((ktime_t)elephan_clock_ns())
#define ktime_get_ns() elephan_clock_ns()
#define ktime_get_real() ktime_get()
#define local_clock() elephan_clock_ns()
#define sched_clock() elephan_clock_ns()
#define tcp_clock_ns() elephan_clock_ns()
#define tcp_clock_us() (elephan_clock_ns() / NSEC_PER_USEC)
#define tcp_clock_ms() (elephan_clock_ns() / NSEC_PER_MSEC)
#define ktime_to_ns(t) (t)
#define ktime_to_us(t) ((t) / NSEC_PER_USEC)
#define ktime_to_ms(t) ((t) / NSEC_PER_MSEC)
#define ktime_sub(x, y) ((x) - (y))
#define ktime_us_delta(x, y) ktime_to_us((x) - (y))
#define msecs_to_jiffies(ms) ((unsigned long)(ms))
#define usecs_to_jiffies(us) (((unsigned long)(us) + 999) / 1000)
#define nsecs_to_jiffies(ns) ((unsigned long)((ns) / NSEC_PER_MSEC))
#define jiffies_to_msecs(j) ((unsigned int)(j))
#define jiffies_to_usecs(j) ((unsigned int)(j) * 1000u)

#define time_after(x, y) ((long)((y) - (x)) < 0)
#define time_before(x, y) time_after(y, x)
#define time_after_eq(x, y) ((long)((x) - (y)) >= 0)
#define time_before_eq(x, y) time_after_eq(y, x)
#define time_after32(x, y) ((s32)((u32)(y) - (u32)(x)) < 0)
#define time_before32(x, y) time_after32(y, x)

/* Sequence numbers and other counts that wrap around. */
static inline bool before(u32 x, u32 y) { return (s32)(x - y) < 0; }
#define after(x, y) before(y, x)
static inline bool between(u32 x, u32 low, u32 high) { return high - low >= x - low; }

/* ---- Modules ---- */

struct module;
#define THIS_MODULE ((struct module *)0)
#define el_nothing _Static_assert(1, "")
#define EXPORT_SYMBOL(name) el_nothing
#define EXPORT_SYMBOL_GPL(name) el_nothing
#define MODULE_AUTHOR(text) el_nothing
#define MODULE_LICENSE(text) el_nothing
#define MODULE_VERSION(text) el_nothing
#define MODULE_ALIAS(text) el_nothing
#define MODULE_ALIAS_TCP_CA(text) el_nothing
#define MODULE_INFO(name, text) el_nothing
#define MODULE_SOFTDEP(text) el_nothing

struct kernel_param {
	const char *name;
	void *arg;
};

struct kernel_param_ops {
	unsigned int flags;
	int (*set)(const char *value, const struct kernel_param *parameter);
	int (*get)(char *buffer, const struct kernel_param *parameter);
};

int elephan_module_init(void);
void elephan_parameter(const char *name, void *at, const char *type);
void elephan_parameter_of(const char *name, void *at, const struct kernel_param_ops *ops);
void elephan_meaning(const char *name, const char *text);
void elephan_title(const char *text);

#define el_join_(x, y) x##y
#define el_join(x, y) el_join_(x, y)
#define el_at_start(...) \
	static void __attribute__((constructor)) el_join(elephan_at_start_, __COUNTER__)(void) { __VA_ARGS__; } \
	el_nothing

#ifdef ELEPHAN_HELPER
/* A file of which another module uses functions: its own registration and parameters are left out. */
#define module_init(function) static int (*const el_join(el_unused_, __LINE__))(void) __maybe_unused = function
#define module_param_named(name, value, type, mode) el_nothing
#define module_param_cb(name, ops, at, mode) \
	static const struct kernel_param_ops *const el_join(el_unused_, __LINE__) __maybe_unused = ops
#define MODULE_PARM_DESC(name, text) el_nothing
#define MODULE_DESCRIPTION(text) el_nothing
#else
#define module_init(function) int elephan_module_init(void) { return function(); } el_nothing
#define module_param_named(name, value, type, mode) el_at_start(elephan_parameter(#name, &(value), #type))
#define module_param_cb(name, ops, at, mode) el_at_start(elephan_parameter_of(#name, at, ops))
#define MODULE_PARM_DESC(name, text) el_at_start(elephan_meaning(#name, text))
#define MODULE_DESCRIPTION(text) el_at_start(elephan_title(text))
#endif
#define late_initcall module_init
#define module_exit(function) static void (*const el_join(el_unused_, __LINE__))(void) __maybe_unused = function
#define module_param(name, type, mode) module_param_named(name, name, type, mode)
#define module_param_array(name, type, count, mode) el_nothing
#define module_param_array_named(name, array, type, count, mode) el_nothing

int param_set_uint_minmax(const char *value, const struct kernel_param *parameter, unsigned int low, unsigned int high);
int param_set_int(const char *value, const struct kernel_param *parameter);
int param_set_uint(const char *value, const struct kernel_param *parameter);
int param_set_ulong(const char *value, const struct kernel_param *parameter);
int param_set_bool(const char *value, const struct kernel_param *parameter);
int param_get_int(char *buffer, const struct kernel_param *parameter);
int param_get_uint(char *buffer, const struct kernel_param *parameter);
int param_get_ulong(char *buffer, const struct kernel_param *parameter);
int param_get_bool(char *buffer, const struct kernel_param *parameter);

/* Descriptions for eBPF. */
struct btf_id_set8;
struct btf_kfunc_id_set {
	struct module *owner;
	const void *set, *check_set;
};
/* As in Linux 5.16 and 5.17. */
#define DEFINE_KFUNC_BTF_ID_SET(set, name) const void *const name __maybe_unused = set
#define register_kfunc_btf_id_set(list, set) ((void)(set))
#define unregister_kfunc_btf_id_set(list, set) ((void)(set))
#define __bpf_kfunc
#define __bpf_kfunc_start_defs() el_nothing
#define __bpf_kfunc_end_defs() el_nothing
#define BTF_SET8_START(name) static const char name[1] __maybe_unused;
#define BTF_SET8_END(name)
#define BTF_KFUNCS_START(name) BTF_SET8_START(name)
#define BTF_KFUNCS_END(name)
#define BTF_SET_START(name) BTF_SET8_START(name)
#define BTF_SET_END(name)
#define BTF_ID(...)
#define BTF_ID_FLAGS(...)
#define BPF_PROG_TYPE_STRUCT_OPS 0
#define BPF_SOCK_OPS_BASE_RTT 0
#define register_btf_kfunc_id_set(type, set) ((void)(set), 0)
/* No program of sockets is attached. */
#define tcp_call_bpf(sk, op, count, arguments) (-EPERM)

/* ---- Sockets ---- */

struct tcp_congestion_ops;
struct sk_buff;
struct net;

enum sk_pacing { SK_PACING_NONE = 0, SK_PACING_NEEDED = 1, SK_PACING_FQ = 2 };
enum { TCP_ESTABLISHED = 1, TCP_SYN_SENT = 2, TCP_CLOSE = 7, TCP_LISTEN = 10 };
enum { ICSK_ACK_SCHED = 1, ICSK_ACK_TIMER = 2, ICSK_ACK_PUSHED = 4, ICSK_ACK_PUSHED2 = 8, ICSK_ACK_NOW = 16 };

#define GSO_MAX_SIZE 65536u
#define GSO_LEGACY_MAX_SIZE 65536u
#define MAX_TCP_HEADER 320

struct sock {
	unsigned long sk_pacing_rate;     /* bytes of payload per second */
	unsigned long sk_max_pacing_rate; /* no limit */
	u32 sk_pacing_status;
	u32 sk_gso_max_size;
	u8 sk_pacing_shift;
	u8 sk_state;
};

struct inet_connection_sock {
	struct sock sk;
	const struct tcp_congestion_ops *icsk_ca_ops;
	u8 icsk_ca_state;
	struct {
		u8 pending;
	} icsk_ack;
	/* Larger than Linux's 104 bytes, because the kernels of some published modules have enlarged it. */
	u64 icsk_ca_priv[256 / sizeof(u64)];
};

#define ICSK_CA_PRIV_SIZE sizeof_field(struct inet_connection_sock, icsk_ca_priv)

struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 snd_cwnd;
	u32 snd_ssthresh;
	u32 snd_cwnd_cnt;
	u32 snd_cwnd_clamp;
	u32 prior_cwnd;
	u32 prior_ssthresh;
	u32 snd_una;
	u32 snd_nxt;
	u32 rcv_nxt;
	u32 packets_out;
	u32 sacked_out;
	u32 lost_out;
	u32 retrans_out;
	u32 max_packets_out;
	u32 mss_cache;
	u32 srtt_us; /* in eighths */
	struct minmax rtt_min;
	u32 delivered;
	u32 delivered_ce;
	u32 lost;
	u32 app_limited;
	u32 lsndtime;
	u64 tcp_mstamp;
	u64 delivered_mstamp;
	u64 tcp_clock_cache;
	u64 tcp_wstamp_ns;
	u8 ecn_flags;
	u8 is_cwnd_limited;
	struct {
		u32 rcv_tsval;
		u32 rcv_tsecr;
	} rx_opt;
};

#define tcp_sk(s) ((struct tcp_sock *)(s))
#define inet_csk(s) ((struct inet_connection_sock *)(s))
#define inet_csk_ca(s) ((void *)inet_csk(s)->icsk_ca_priv)
#define sock_net(s) ((struct net *)0)
#define INET_ECN_xmit(sk) ((void)(sk))
#define INET_ECN_dontxmit(sk) ((void)(sk))
/* The receiver's own acknowledgments do what DCTCP asks of them. */
#define __tcp_send_ack(sk, ...) ((void)(sk))
#define NET_INC_STATS(net, field) ((void)0)
#define NET_ADD_STATS(net, field, count) ((void)0)

/* ---- Congestion control ---- */

#define TCP_CA_NAME_MAX 16
#define TCP_CONG_NON_RESTRICTED 1
#define TCP_CONG_NEEDS_ECN 2
#define TCP_INFINITE_SSTHRESH 0x7fffffff
#define TCP_INIT_CWND 10
#define TCP_ECN_OK 1
#define TCP_ECN_QUEUE_CWR 2
#define TCP_ECN_DEMAND_CWR 4
#define TCP_ECN_SEEN 8
#define TCP_ECN_MODE_RFC3168 TCP_ECN_OK
/* The feedback of the endpoint's ECN is that of RFC 3168, or of DCTCP; never AccECN. */
#define tcp_ecn_mode_any(tp) (((tp)->ecn_flags & TCP_ECN_OK) != 0)
#define tcp_ecn_mode_rfc3168(tp) tcp_ecn_mode_any(tp)
#define tcp_ecn_mode_accecn(tp) ((void)(tp), false)
#define tcp_ecn_disabled(tp) (!tcp_ecn_mode_any(tp))

enum tcp_ca_state { TCP_CA_Open = 0, TCP_CA_Disorder = 1, TCP_CA_CWR = 2, TCP_CA_Recovery = 3, TCP_CA_Loss = 4 };
#define TCPF_CA_Open BIT(TCP_CA_Open)
#define TCPF_CA_Disorder BIT(TCP_CA_Disorder)
#define TCPF_CA_CWR BIT(TCP_CA_CWR)
#define TCPF_CA_Recovery BIT(TCP_CA_Recovery)
#define TCPF_CA_Loss BIT(TCP_CA_Loss)

enum tcp_ca_event {
	CA_EVENT_TX_START,
	CA_EVENT_CWND_RESTART,
	CA_EVENT_COMPLETE_CWR,
	CA_EVENT_LOSS,
	CA_EVENT_ECN_NO_CE,
	CA_EVENT_ECN_IS_CE,
};

enum tcp_ca_ack_event_flags { CA_ACK_SLOWPATH = 1, CA_ACK_WIN_UPDATE = 2, CA_ACK_ECE = 4 };

struct ack_sample {
	u32 pkts_acked;
	s32 rtt_us;
	u32 in_flight; /* bytes delivered since the newest acknowledged segment was sent */
};

struct rate_sample {
	u32 prior_delivered;
	u32 prior_delivered_ce;
	s32 delivered;
	s32 delivered_ce;
	long interval_us;
	long rtt_us;
	int losses;
	u32 acked_sacked;
	u32 prior_in_flight;
	bool is_app_limited;
	bool is_ack_delayed;
};

union tcp_cc_info;

struct tcp_congestion_ops {
	u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, u32 ack, u32 acked);
	void (*set_state)(struct sock *sk, u8 new_state);
	void (*cwnd_event)(struct sock *sk, enum tcp_ca_event event);
	void (*cwnd_event_tx_start)(struct sock *sk);
	void (*in_ack_event)(struct sock *sk, u32 flags);
	void (*pkts_acked)(struct sock *sk, const struct ack_sample *sample);
	u32 (*min_tso_segs)(struct sock *sk);
#ifdef ELEPHAN_CONG_CONTROL_OF_FOUR
	void (*cong_control)(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs);
#else
	void (*cong_control)(struct sock *sk, const struct rate_sample *rs);
#endif
	u32 (*undo_cwnd)(struct sock *sk);
	u32 (*sndbuf_expand)(struct sock *sk);
	size_t (*get_info)(struct sock *sk, u32 extension, int *attribute, union tcp_cc_info *info);
	char name[TCP_CA_NAME_MAX];
	struct module *owner;
	u32 key;
	u32 flags;
	void (*init)(struct sock *sk);
	void (*release)(struct sock *sk);
};

int tcp_register_congestion_control(struct tcp_congestion_ops *ops);
#define tcp_unregister_congestion_control(ops) ((void)(ops))

u32 tcp_slow_start(struct tcp_sock *tp, u32 acked);
void tcp_cong_avoid_ai(struct tcp_sock *tp, u32 w, u32 acked);
u32 tcp_reno_ssthresh(struct sock *sk);
void tcp_reno_cong_avoid(struct sock *sk, u32 ack, u32 acked);
u32 tcp_reno_undo_cwnd(struct sock *sk);
void tcp_enter_cwr(struct sock *sk);

static inline u32 tcp_snd_cwnd(const struct tcp_sock *tp) { return tp->snd_cwnd; }
static inline void tcp_snd_cwnd_set(struct tcp_sock *tp, u32 value) { tp->snd_cwnd = value; }
static inline bool tcp_in_slow_start(const struct tcp_sock *tp) { return tp->snd_cwnd < tp->snd_ssthresh; }
static inline bool tcp_in_initial_slowstart(const struct tcp_sock *tp) { return tp->snd_ssthresh >= TCP_INFINITE_SSTHRESH; }
static inline unsigned int tcp_left_out(const struct tcp_sock *tp) { return tp->sacked_out + tp->lost_out; }
static inline u32 tcp_min_rtt(const struct tcp_sock *tp) { return minmax_get(&tp->rtt_min); }
static inline bool tcp_needs_ecn(const struct tcp_sock *tp) { return tp->ecn_flags & TCP_ECN_OK; }
#define tcp_ca_needs_ecn(sk) (inet_csk(sk)->icsk_ca_ops->flags & TCP_CONG_NEEDS_ECN)

static inline unsigned int tcp_packets_in_flight(const struct tcp_sock *tp)
{
	return tp->packets_out - tcp_left_out(tp) + tp->retrans_out;
}

static inline bool tcp_in_cwnd_reduction(const struct sock *sk)
{
	return inet_csk(sk)->icsk_ca_state == TCP_CA_CWR || inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;
}

/* The threshold to return to: three quarters of the window, if slow start was left below it. */
static inline u32 tcp_current_ssthresh(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_in_cwnd_reduction(sk) ? tp->snd_ssthresh : max(tp->snd_ssthresh, tp->snd_cwnd / 2 + tp->snd_cwnd / 4);
}

/* Whether the window limits the sender; in slow start it may be up to twice what is used. */
static inline bool tcp_is_cwnd_limited(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->is_cwnd_limited || (tcp_in_slow_start(tp) && tp->snd_cwnd < 2 * tp->max_packets_out);
}

static inline u32 tcp_stamp_us_delta(u64 later, u64 earlier) { return later > earlier ? later - earlier : 0; }
#define tcp_time_stamp(tp) ((u32)((tp)->tcp_mstamp / USEC_PER_MSEC))
#define tcp_time_stamp_ms(tp) tcp_time_stamp(tp)
#define tcp_time_stamp_ts(tp) tcp_time_stamp(tp)

/* Protective load balancing is off, as by default. */
struct tcp_plb_state {
	u8 consec_cong_rounds;
};
#define TCP_PLB_SCALE 8
static inline void tcp_plb_init(const struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }
static inline void tcp_plb_update_state(const struct sock *sk, struct tcp_plb_state *plb, int ratio) { (void)sk, (void)plb, (void)ratio; }
static inline void tcp_plb_check_rehash(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }
static inline void tcp_plb_update_state_upon_rto(struct sock *sk, struct tcp_plb_state *plb) { (void)sk, (void)plb; }

/* ---- What a module tells `ss -i`; nothing asks here ---- */

enum { INET_DIAG_VEGASINFO = 3, INET_DIAG_DCTCPINFO = 9, INET_DIAG_BBRINFO = 16 };

struct tcpvegas_info {
	u32 tcpv_enabled, tcpv_rttcnt, tcpv_rtt, tcpv_minrtt;
};

struct tcp_dctcp_info {
	u16 dctcp_enabled, dctcp_ce_state;
	u32 dctcp_alpha, dctcp_ab_ecn, dctcp_ab_tot;
};

struct tcp_bbr_info {
	u32 bbr_bw_lo, bbr_bw_hi, bbr_min_rtt, bbr_pacing_gain, bbr_cwnd_gain;
	u32 bbr_bw_hi_lsb, bbr_bw_hi_msb, bbr_bw_lo_lsb, bbr_bw_lo_msb;
	u8 bbr_mode, bbr_phase, unused1, bbr_version;
	u32 bbr_inflight_lo, bbr_inflight_hi, bbr_extra_acked;
};

union tcp_cc_info {
	struct tcpvegas_info vegas;
	struct tcp_dctcp_info dctcp;
	struct tcp_bbr_info bbr;
};

#endif
