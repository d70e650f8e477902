// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The network of a run: a device for each of the two hosts, whose packets cross the links of the host's library in virtual time;
 * and /dev/elephan, by which the init program talks to the host and controls the run.
 *
 * A packet never leaves the kernel: the links know its length and header, and pass its address back when it is due at the other
 * host. There it is copied, once, as a device writes what arrives into memory of its own: what the receiving host holds must not
 * depend on what the sending host has freed.
 */
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/if_arp.h>
#include <linux/ip.h>
#include <linux/ktime.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <linux/skbuff.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <net/dsfield.h>
#include <net/net_namespace.h>
#include <net/tcp.h>
#include <trace/events/tcp.h>

#include "algorithms.h"
#include "host.h"

/* Requests of the init program. */
struct elephan_bytes {
	__u64 at;
	__u64 length;
};
/* Makes the network of a scenario (JSON); the reason why it cannot is written over it. */
#define ELEPHAN_OPEN _IOWR('E', 1, struct elephan_bytes)
/* Makes the device of a host in the network namespace of the caller; the argument is the direction of its packets. */
#define ELEPHAN_DEVICE _IO('E', 2)
/* The run begins; gives the time of its beginning on CLOCK_MONOTONIC, ns. */
#define ELEPHAN_START _IOR('E', 3, __u64)
/* The run ends; gives the length of the links' records. */
#define ELEPHAN_FINISH _IOR('E', 4, __u64)
/* Copies these records. */
#define ELEPHAN_RECORDS _IOW('E', 5, struct elephan_bytes)

/* Registers an algorithm of kernel/ with other values of its parameters. */
struct elephan_load {
	char name[32];
	char registered[32];
	__u64 values[32];
	__u64 count;
};
#define ELEPHAN_LOAD _IOW('E', 6, struct elephan_load)

#define DEVICE "path"
/* What the links need of a packet: an IPv4 header with options, and the ports. */
#define HEADER 64
#define LONGEST_SCENARIO (16ul << 20)
#define TIMER_SLOT 4096

static struct {
	const struct elephan_links *links;
	void *network;
	struct net_device *devices[2];
	/* A timer of interrupts, as a device has them: one of softirqs would run the timers of TCP that have slack with each packet. */
	struct hrtimer timer;
	struct tasklet_struct work;
	/* When the timer fires, ns of the run. */
	u64 armed;
	/* The beginning of the run. */
	u64 zero;
	bool is_running;
	/* What is due is being done; the timer is armed at its end. */
	bool is_advancing;
	struct sk_buff_head arrived;
	const unsigned char *records;
	unsigned long records_length;
} path;

static u64 now(void)
{
	return ktime_get_ns() - path.zero;
}

static void arm(void)
{
	u64 next = path.links->next(path.network);

	if (next >= path.armed)
		return;
	path.armed = next;
	hrtimer_start(&path.timer, ns_to_ktime(path.zero + next), HRTIMER_MODE_ABS);
}

static void deliver(void *packet, int direction, int service)
{
	struct net_device *device = path.devices[!direction];
	struct sk_buff *skb = skb_copy_expand(packet, 0, 0, GFP_ATOMIC);

	consume_skb(packet);
	if (!skb) {
		device->stats.rx_dropped++;
		return;
	}
	skb->dev = device;
	if (service >= 0)
		ipv4_change_dsfield(ip_hdr(skb), 0, service);
	__skb_queue_tail(&path.arrived, skb);
}

static void discard(void *packet)
{
	kfree_skb(packet);
}

static const struct elephan_abi kernel = { .deliver = deliver, .discard = discard };

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	tasklet_schedule(&path.work);
	return HRTIMER_NORESTART;
}

static void advance(struct tasklet_struct *work)
{
	struct sk_buff *skb;

	path.is_advancing = true;
	/* What a host answers at once may be due at once. */
	while (path.is_running) {
		path.links->advance(path.network, now());
		if (skb_queue_empty(&path.arrived))
			break;
		while ((skb = __skb_dequeue(&path.arrived))) {
			skb->dev->stats.rx_packets++;
			skb->dev->stats.rx_bytes += skb->len;
			netif_receive_skb(skb);
		}
	}
	path.is_advancing = false;
	path.armed = U64_MAX;
	if (path.is_running)
		arm();
}

static struct elephan_window window_of(const struct sock *sk)
{
	return (struct elephan_window){ .cwnd = tcp_snd_cwnd(tcp_sk(sk)), .ssthresh = tcp_sk(sk)->snd_ssthresh };
}

/* Called before each change of a connection's state of congestion. */
static void enters(void *unused, struct sock *sk, const u8 state)
{
	if (!path.is_running || !path.devices[0] || !net_eq(sock_net(sk), dev_net(path.devices[0])))
		return;
	local_bh_disable();
	path.links->state(path.network, now(), ntohs(inet_sk(sk)->inet_dport), inet_csk(sk)->icsk_ca_state, state, window_of(sk));
	local_bh_enable();
}

static netdev_tx_t transmit(struct sk_buff *skb, struct net_device *device)
{
	int direction = device == path.devices[1];
	unsigned int header = min_t(unsigned int, skb->len, HEADER);
	struct elephan_window window = {};

	if (!path.is_running || !pskb_may_pull(skb, min_t(unsigned int, skb->len, sizeof(struct iphdr) + 4))) {
		device->stats.tx_dropped++;
		dev_kfree_skb(skb);
		return NETDEV_TX_OK;
	}
	device->stats.tx_packets++;
	device->stats.tx_bytes += skb->len;
	if (skb->sk && sk_fullsock(skb->sk) && sk_is_tcp(skb->sk))
		window = window_of(skb->sk);
	/* As for a device that has sent the packet: it no longer counts as held by the sending host. */
	skb_orphan(skb);
	skb_scrub_packet(skb, true);
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb->protocol = htons(ETH_P_IP);
	skb_reset_mac_header(skb);
	skb_reset_network_header(skb);
	header = min(header, skb_headlen(skb));
	path.links->enter(path.network, now(), direction, skb->data, header, skb->len, window, skb);
	if (!path.is_advancing)
		arm();
	return NETDEV_TX_OK;
}

static const struct net_device_ops operations = { .ndo_start_xmit = transmit };

static void setup(struct net_device *device)
{
	device->netdev_ops = &operations;
	device->type = ARPHRD_NONE;
	device->flags = IFF_POINTOPOINT | IFF_NOARP;
	device->priv_flags |= IFF_NO_QUEUE;
	device->features = NETIF_F_SG | NETIF_F_HW_CSUM | NETIF_F_HIGHDMA;
	device->mtu = ETH_DATA_LEN;
	device->min_mtu = 68;
	device->max_mtu = 65535;
	device->needs_free_netdev = true;
}

static long make_device(unsigned long direction)
{
	struct net_device *device;
	long failed;

	if (direction > 1 || path.devices[direction])
		return -EINVAL;
	device = alloc_netdev(0, DEVICE, NET_NAME_USER, setup);
	if (!device)
		return -ENOMEM;
	dev_net_set(device, current->nsproxy->net_ns);
	failed = register_netdev(device);
	if (failed)
		free_netdev(device);
	else
		path.devices[direction] = device;
	return failed;
}

static long open_network(void __user *argument)
{
	struct elephan_bytes bytes;
	char error[256] = "the network was made before";
	char *scenario;

	if (copy_from_user(&bytes, argument, sizeof(bytes)) || bytes.length > LONGEST_SCENARIO)
		return -EINVAL;
	scenario = memdup_user_nul(u64_to_user_ptr(bytes.at), bytes.length);
	if (IS_ERR(scenario))
		return PTR_ERR(scenario);
	if (!path.links)
		path.links = elephan_host_links(error, sizeof(error));
	if (path.links && !path.network)
		path.network = path.links->open(scenario, bytes.length, &kernel, error, sizeof(error));
	else if (path.links)
		path.network = NULL;
	kfree(scenario);
	if (path.network)
		return 0;
	bytes.length = min_t(u64, bytes.length, strlen(error));
	if (copy_to_user(u64_to_user_ptr(bytes.at), error, bytes.length) || copy_to_user(argument, &bytes, sizeof(bytes)))
		return -EFAULT;
	return -EPROTO;
}

/*
 * Sleeps until a tick begins whose number is a multiple of the slots that timers of TCP have (kernel/time/timer.c, LVL_GRAN(4)), so
 * that clocks and timers of the kernel begin with the run. Returns when that is.
 */
static u64 sleep_until_slot(void)
{
	u64 ticks = (-(jiffies + 1) & (TIMER_SLOT - 1)) + 1;
	ktime_t begin = ns_to_ktime((div64_u64(ktime_get_ns(), TICK_NSEC) + ticks) * TICK_NSEC);

	set_current_state(TASK_UNINTERRUPTIBLE);
	schedule_hrtimeout(&begin, HRTIMER_MODE_ABS);
	return ktime_to_ns(begin);
}

static long start(__u64 __user *zero)
{
	if (!path.network || path.is_running)
		return -EINVAL;
	path.zero = sleep_until_slot();
	path.armed = U64_MAX;
	path.is_running = true;
	local_bh_disable();
	arm();
	local_bh_enable();
	return put_user(path.zero, zero);
}

static long finish(__u64 __user *length)
{
	struct sk_buff *skb;

	if (!path.is_running)
		return -EINVAL;
	/* First, so that work which is pending arms the timer no more. */
	path.is_running = false;
	hrtimer_cancel(&path.timer);
	tasklet_kill(&path.work);
	while ((skb = __skb_dequeue(&path.arrived)))
		kfree_skb(skb);
	path.records_length = path.links->finish(path.network, now(), &path.records);
	return put_user(path.records_length, length);
}

static long take_records(void __user *argument)
{
	struct elephan_bytes bytes;

	if (copy_from_user(&bytes, argument, sizeof(bytes)) || bytes.length > path.records_length)
		return -EINVAL;
	return copy_to_user(u64_to_user_ptr(bytes.at), path.records, bytes.length) ? -EFAULT : 0;
}

static long load(void __user *argument)
{
	struct elephan_load *wanted = memdup_user(argument, sizeof(*wanted));
	long failed = -EINVAL;

	if (IS_ERR(wanted))
		return PTR_ERR(wanted);
	wanted->name[sizeof(wanted->name) - 1] = 0;
	wanted->registered[sizeof(wanted->registered) - 1] = 0;
	if (wanted->count <= ARRAY_SIZE(wanted->values))
		failed = elephan_algorithm(wanted->name, wanted->registered, wanted->values, wanted->count);
	kfree(wanted);
	return failed;
}

static long control(struct file *file, unsigned int request, unsigned long argument)
{
	void __user *at = (void __user *)argument;

	switch (request) {
	case ELEPHAN_OPEN:
		return open_network(at);
	case ELEPHAN_DEVICE:
		return make_device(argument);
	case ELEPHAN_START:
		return start(at);
	case ELEPHAN_FINISH:
		return finish(at);
	case ELEPHAN_RECORDS:
		return take_records(at);
	case ELEPHAN_LOAD:
		return load(at);
	}
	return -ENOTTY;
}

/* The largest piece that is passed on at once. */
#define PIECE (64ul << 10)

static ssize_t from_host(struct file *file, char __user *to, size_t length, loff_t *at)
{
	void *piece = kmalloc(PIECE, GFP_KERNEL);
	long done;

	if (!piece)
		return -ENOMEM;
	done = elephan_host_read(piece, min(length, PIECE));
	if (done > 0 && copy_to_user(to, piece, done))
		done = -EFAULT;
	kfree(piece);
	return done;
}

static ssize_t to_host(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	void *piece = memdup_user(from, min(length, PIECE));
	long done;

	if (IS_ERR(piece))
		return PTR_ERR(piece);
	done = elephan_host_write(piece, min(length, PIECE));
	kfree(piece);
	return done;
}

static const struct file_operations files = {
	.owner = THIS_MODULE,
	.read = from_host,
	.write = to_host,
	.unlocked_ioctl = control,
};

/* Reserved for local use (Documentation/admin-guide/devices.txt): the guest's only file system, which the host makes, has it. */
#define ELEPHAN_MINOR 240

static struct miscdevice device = { .minor = ELEPHAN_MINOR, .name = "elephan", .fops = &files };

static int __init begin(void)
{
	__skb_queue_head_init(&path.arrived);
	tasklet_setup(&path.work, advance);
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&path.timer, interrupt, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(&path.timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	path.timer.function = interrupt;
#endif
	return register_trace_tcp_cong_state_set(enters, NULL) ?: misc_register(&device);
}
device_initcall(begin);
