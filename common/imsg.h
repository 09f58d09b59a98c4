/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

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

#include <stddef.h>
#include <stdint.h>

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
	TAILQ_ENTRY(ibuf)	 entry;
	unsigned char		*buf;
	size_t			 size;
	size_t			 max;
	size_t			 wpos;
	size_t			 rpos;
	int			 fd;
};
TAILQ_HEAD(ibufqueue, ibuf);

struct ibuf	*ibuf_dynamic(size_t, size_t);
void		 ibuf_from_buffer(struct ibuf *, void *, size_t);
int		 ibuf_add(struct ibuf *, const void *, size_t);
int		 ibuf_add_n8(struct ibuf *, uint8_t);
int		 ibuf_add_n16(struct ibuf *, uint16_t);
int		 ibuf_add_n32(struct ibuf *, uint32_t);
int		 ibuf_add_n64(struct ibuf *, uint64_t);
int		 ibuf_set_n32(struct ibuf *, size_t, uint32_t);
int		 ibuf_get_n8(struct ibuf *, uint8_t *);
int		 ibuf_get_n16(struct ibuf *, uint16_t *);
int		 ibuf_get_n32(struct ibuf *, uint32_t *);
int		 ibuf_get_n64(struct ibuf *, uint64_t *);
int		 ibuf_skip(struct ibuf *, size_t);
void		*ibuf_data(const struct ibuf *);
size_t		 ibuf_size(const struct ibuf *);
void		 ibuf_fd_set(struct ibuf *, int);
void		 ibuf_free(struct ibuf *);

/* One channel: what is to be sent, what has come, descriptors among it. */
struct imsgbuf {
	int			 fd;
	size_t			 queued;	/* bytes not yet sent */
	struct ibufqueue	 outq;
	unsigned char		*rbuf;
	size_t			 rlen;		/* bytes in rbuf */
	size_t			 rpos;		/* of these, consumed */
	int			 fds[2];
	size_t			 fdend[2];	/* its message begins before */
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
struct ibuf	*imsg_create(uint32_t, uint32_t);
void		 imsg_close(struct imsgbuf *, struct ibuf *);
int		 imsg_get_fd(struct imsg *);
void		 imsg_free(struct imsg *);

#endif /* IMSG_H */
