// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The part that is compiled against the host's C library. */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"

/* A number from the environment; -1 if it is not set. */
static int number(const char *name)
{
	const char *text = getenv(name);

	return text ? atoi(text) : -1;
}

const struct elephan_links *elephan_host_links(char *error, unsigned long error_length)
{
	const char *path = getenv("ELEPHAN_LINKS");
	void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND) : NULL;
	elephan_links_t links = library ? (elephan_links_t)dlsym(library, ELEPHAN_LINKS) : NULL;
	const struct elephan_links *found = links ? links(ELEPHAN_ABI) : NULL;
	const char *cause;

	if (!found) {
		cause = !path ? "ELEPHAN_LINKS: expected the path of the library, found nothing" :
			!links ? dlerror() : "the library of the links: expected that of this image, found another version";
		snprintf(error, error_length, "%s", cause);
	}
	return found;
}

long elephan_host_read(void *to, unsigned long length)
{
	long done;

	do
		done = read(number("ELEPHAN_IN"), to, length);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}

long elephan_host_write(const void *from, unsigned long length)
{
	long done;

	do
		done = write(number("ELEPHAN_OUT"), from, length);
	while (done < 0 && errno == EINTR);
	return done < 0 ? -errno : done;
}
