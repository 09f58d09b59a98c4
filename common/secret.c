/* SPDX-License-Identifier: ISC */

/*
 * Memory for secrets; see secret.h.  Runs in the parent, which reads secrets
 * on behalf of others, and in the processes that own one: tlsengine, deciderd,
 * k8sd.  A fault elsewhere in these processes must not spill it.
 */

#include <sys/mman.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "secret.h"

static size_t
page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

/* Bytes of the readable pages: header, data and the NUL, rounded up. */
static size_t
body_size(size_t size)
{
	size_t	 page = page_size();

	return (sizeof(struct secret) + size + 1 + page - 1) / page * page;
}

static uint8_t *
map_start(struct secret *sc)
{
	return (uint8_t *)sc - page_size();
}

static size_t
map_size(size_t size)
{
	return body_size(size) + 2 * page_size();
}

/*
 * Staying out of core files is a promise, so failing to is an error.  Locking
 * depends on a limit that is often tiny in containers, and wiping on fork on
 * the kernel (Linux 4.14); children of ours exec at once, which discards the
 * copy anyway.
 */
static int
protect(void *body, size_t len)
{
	if (mprotect(body, len, PROT_READ | PROT_WRITE) == -1)
		return -1;
#ifdef MADV_DONTDUMP
	if (madvise(body, len, MADV_DONTDUMP) == -1)
		return -1;
#endif
#ifdef MADV_WIPEONFORK
	(void)madvise(body, len, MADV_WIPEONFORK);
#endif
	(void)mlock(body, len);
	return 0;
}

struct secret *
secret_alloc(size_t size)
{
	struct secret	*sc;
	uint8_t		*map;
	int		 saved;

	if (size == 0 || size > SECRET_MAX) {
		errno = EINVAL;
		return NULL;
	}
	map = mmap(NULL, map_size(size), PROT_NONE,
	    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return NULL;
	if (protect(map + page_size(), body_size(size)) == -1) {
		saved = errno;
		munmap(map, map_size(size));
		errno = saved;
		return NULL;
	}
	sc = (struct secret *)(map + page_size());
	sc->sc_size = size;
	return sc;
}

void
secret_free(struct secret *sc)
{
	size_t	 size;

	if (sc == NULL)
		return;
	size = sc->sc_size;
	explicit_bzero(sc, body_size(size));
	munmap(map_start(sc), map_size(size));
}

/* Reads until end of file or until the buffer is full. */
static int
secret_fill(struct secret *sc, int fd)
{
	ssize_t	 n;

	while (sc->sc_len < sc->sc_size) {
		n = read(fd, sc->sc_data + sc->sc_len,
		    sc->sc_size - sc->sc_len);
		if (n == 0)
			break;
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1)
			return -1;
		sc->sc_len += (size_t)n;
	}
	return 0;
}

struct secret *
secret_read_fd(int fd, size_t max)
{
	struct secret	*sc;
	int		 saved;

	if (max == 0 || max > SECRET_MAX - 2) {
		errno = EINVAL;
		return NULL;
	}
	/* Room for the newline, and for one more byte to notice excess. */
	if ((sc = secret_alloc(max + 2)) == NULL)
		return NULL;
	if (secret_fill(sc, fd) == -1)
		goto fail;
	if (sc->sc_len > 0 && sc->sc_data[sc->sc_len - 1] == '\n')
		sc->sc_data[--sc->sc_len] = '\0';
	errno = sc->sc_len == 0 ? ENODATA : EFBIG;
	if (sc->sc_len == 0 || sc->sc_len > max)
		goto fail;
	return sc;

fail:
	saved = errno;
	secret_free(sc);
	errno = saved;
	return NULL;
}

/*
 * timingsafe_bcmp(3), which libbsd lacks: no exit before the last byte, and
 * volatile so that the compiler adds none.
 */
int
secret_equal(const struct secret *sc, const void *data, size_t len)
{
	const uint8_t		*bytes = data;
	volatile uint8_t	 differ = 0;
	size_t			 i;

	if (len == 0 || sc->sc_len != len)
		return 0;
	for (i = 0; i < len; i++)
		differ |= sc->sc_data[i] ^ bytes[i];
	return differ == 0;
}
