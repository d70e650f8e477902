/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The border between the guest kernel and its host process. It is included on both sides, so it uses plain C types only.
 *
 * The links are a shared library of the host, written in Rust (crates/emulator), which the process opens when a run begins. So
 * an image depends on the kernel and on this folder, and not on the rest of Elephan.
 */
#ifndef ELEPHAN_HOST_H
#define ELEPHAN_HOST_H

/* Changes with every change of the structures below; the library refuses another one. */
#define ELEPHAN_ABI 2

/* The links pass packets back through these. `packet` is what elephan_links.enter was given. */
struct elephan_abi {
	/* The packet has reached the other host; `service` is its new service byte, -1 if no link has changed it. */
	void (*deliver)(void *packet, int direction, int service);
	/* A link has dropped or lost the packet. */
	void (*discard)(void *packet);
};

/* The window of a TCP socket, segments; zeros for other packets. */
struct elephan_window {
	unsigned int cwnd;
	unsigned int ssthresh;
};

/* The links of a run. Times are nanoseconds since it began; directions are 0 for packets of the sending host, 1 for others. */
struct elephan_links {
	/* The network of a scenario (JSON); NULL if it cannot be resolved, with the reason in `error`. */
	void *(*open)(const char *scenario, unsigned long length, const struct elephan_abi *kernel, char *error,
		      unsigned long error_length);
	/* A packet leaves its host; `header` has the first bytes of its `length`. `window` is that of the packet's socket. */
	void (*enter)(void *network, unsigned long long now, int direction, const unsigned char *header,
		      unsigned long header_length, unsigned int length, struct elephan_window window, void *packet);
	/* A connection of the sending host to this port is about to leave the state of congestion `before` (TCP_CA_OPEN, ...)
	 * for `state`. */
	void (*state)(void *network, unsigned long long now, unsigned int port, int before, int state, struct elephan_window window);
	/* When something is due next; the maximum for never. */
	unsigned long long (*next)(const void *network);
	/* Does everything that is due by `now`. */
	void (*advance)(void *network, unsigned long long now);
	/* Ends the run; returns the length of the records, which stay until the process ends. */
	unsigned long (*finish)(void *network, unsigned long long now, const unsigned char **records);
};

/* The only symbol of the library: its functions; NULL for another ABI. */
#define ELEPHAN_LINKS "elephan_links"
typedef const struct elephan_links *(*elephan_links_t)(unsigned int abi);

/* Opens the library that the environment names; NULL with the reason in `error`. */
const struct elephan_links *elephan_host_links(char *error, unsigned long error_length);
/* Reads from and writes to the host's pipes; return the number of bytes, or a negative error number. The host waits, virtual time
 * does not pass. */
long elephan_host_read(void *to, unsigned long length);
long elephan_host_write(const void *from, unsigned long length);

#endif
