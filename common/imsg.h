/* SPDX-License-Identifier: ISC */

/*
 * The imsg interface of OpenBSD: typed messages and descriptors over a
 * stream socket between two of our processes.  Written anew for Linux,
 * where a descriptor that finds no free slot is dropped by the kernel
 * (MSG_CTRUNC) although its message arrives.
 */

#ifndef IMSG_H
#define IMSG_H

#include <sys/types.h>
#include <sys/queue.h>

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define IMSG_HEADER_SIZE	12
#define IMSG_MAX_SIZE		65536
#define IMSG_READ_SIZE		(2 * IMSG_MAX_SIZE)

/* imsg_get_fd() on a message whose descriptor the kernel had to drop. */
#define IMSG_FD_NONE		(-1)
#define IMSG_FD_LOST		(-2)

/*
 * A buffer that is written at one end and read at the other.  It either
 * owns its storage or, inside a received message, borrows the channel's
 * read buffer until the next read.
 */
struct ibuf {
	unsigned char	*buf;
	size_t		 size;
	size_t		 max;
	size_t		 wpos;
	size_t		 rpos;
};

struct ibuf	*ibuf_dynamic(size_t, size_t);
void		 ibuf_from_buffer(struct ibuf *, void *, size_t);
int		 ibuf_grow(struct ibuf *, size_t);
int		 ibuf_set_n32(struct ibuf *, size_t, uint32_t);
int		 ibuf_skip(struct ibuf *, size_t);
void		 ibuf_slide(struct ibuf *);
void		 ibuf_free(struct ibuf *);

static inline void *
ibuf_data(const struct ibuf *b)
{
	return b->buf + b->rpos;
}

static inline size_t
ibuf_size(const struct ibuf *b)
{
	return b->wpos - b->rpos;
}

/* Where len more bytes go, or NULL. */
static inline void *
ibuf_room(struct ibuf *b, size_t len)
{
	unsigned char	*p;

	if (len > b->size - b->wpos && ibuf_grow(b, len) == -1)
		return NULL;
	p = b->buf + b->wpos;
	b->wpos += len;
	return p;
}

static inline int
ibuf_add(struct ibuf *b, const void *data, size_t len)
{
	void	*p;

	if (len == 0)
		return 0;
	if ((p = ibuf_room(b, len)) == NULL)
		return -1;
	memcpy(p, data, len);
	return 0;
}

static inline int
ibuf_add_n8(struct ibuf *b, uint8_t v)
{
	return ibuf_add(b, &v, sizeof(v));
}

static inline int
ibuf_add_n16(struct ibuf *b, uint16_t v)
{
	v = htobe16(v);
	return ibuf_add(b, &v, sizeof(v));
}

static inline int
ibuf_add_n32(struct ibuf *b, uint32_t v)
{
	v = htobe32(v);
	return ibuf_add(b, &v, sizeof(v));
}

static inline int
ibuf_add_n64(struct ibuf *b, uint64_t v)
{
	v = htobe64(v);
	return ibuf_add(b, &v, sizeof(v));
}

static inline int
ibuf_get(struct ibuf *b, void *data, size_t len)
{
	if (ibuf_size(b) < len) {
		errno = EBADMSG;
		return -1;
	}
	memcpy(data, ibuf_data(b), len);
	b->rpos += len;
	return 0;
}

static inline int
ibuf_get_n8(struct ibuf *b, uint8_t *v)
{
	return ibuf_get(b, v, sizeof(*v));
}

static inline int
ibuf_get_n16(struct ibuf *b, uint16_t *v)
{
	if (ibuf_get(b, v, sizeof(*v)) == -1)
		return -1;
	*v = be16toh(*v);
	return 0;
}

static inline int
ibuf_get_n32(struct ibuf *b, uint32_t *v)
{
	if (ibuf_get(b, v, sizeof(*v)) == -1)
		return -1;
	*v = be32toh(*v);
	return 0;
}

static inline int
ibuf_get_n64(struct ibuf *b, uint64_t *v)
{
	if (ibuf_get(b, v, sizeof(*v)) == -1)
		return -1;
	*v = be64toh(*v);
	return 0;
}

/* A descriptor, sent along with byte number `at' of the stream. */
struct imsg_fd {
	TAILQ_ENTRY(imsg_fd)	 entry;
	int			 fd;
	uint64_t		 at;
};
TAILQ_HEAD(imsg_fds, imsg_fd);

/*
 * One channel: what is to be sent, what has come, descriptors among it.
 * Messages are encoded where they wait, one behind the other.
 */
struct imsgbuf {
	int			 fd;
	struct ibuf		 out;
	size_t			 begin;		/* in out: the open message */
	uint64_t		 sent;		/* bytes, ever */
	struct imsg_fds		 outfds;
	unsigned char		*rbuf;
	size_t			 rlen;		/* bytes in rbuf */
	size_t			 rpos;		/* of these, consumed */
	int			 fds[2];
	size_t			 fdend[2];	/* fds[i] came before this */
	size_t			 nfds;
};

struct imsg {
	uint32_t		 type;
	uint32_t		 peerid;
	struct ibuf		 data;
	int			 fd;
};

int		 imsgbuf_init(struct imsgbuf *, int);
void		 imsgbuf_clear(struct imsgbuf *);
int		 imsgbuf_read(struct imsgbuf *);
int		 imsgbuf_write(struct imsgbuf *);
int		 imsgbuf_flush(struct imsgbuf *);
int		 imsgbuf_get(struct imsgbuf *, struct imsg *);
size_t		 imsgbuf_queuelen(const struct imsgbuf *);
struct ibuf	*imsg_open(struct imsgbuf *, uint32_t, uint32_t);
int		 imsg_close(struct imsgbuf *, int);
int		 imsg_get_fd(struct imsg *);
void		 imsg_free(struct imsg *);

#endif /* IMSG_H */
