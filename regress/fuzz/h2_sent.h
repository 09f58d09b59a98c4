/* SPDX-License-Identifier: ISC */

/*
 * What we send, as a peer would see it: frames, each where it may be, with
 * bodies in their order.
 */

#ifndef H2_SENT_H
#define H2_SENT_H

#include "../unit/h2_io.h"

#define REQUIRE(cond) do { if (!(cond)) abort(); } while (0)
#define IDS	1024	/* of streams that are looked at */

enum { IDLE, OPEN, ENDED, RESET };

static struct {
	unsigned char	 head[H2_FRAME_HEAD];
	size_t		 headlen;
	size_t		 left;
	size_t		 skip;		/* the preface */
	int32_t		 block_of;
	uint8_t		 state[IDS];
	size_t		 pos[IDS];	/* of bodies */
} sent;

static inline uint32_t
head32(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 |
	    (uint32_t)p[2] << 8 | p[3];
}

static inline void
sent_on_stream(uint8_t type, uint8_t flags, int32_t id)
{
	uint8_t	*state = &sent.state[id];

	if (type == H2_HEADERS && *state == IDLE)
		*state = OPEN;
	if (type == H2_DATA || type == H2_HEADERS)
		REQUIRE(*state == OPEN);
	REQUIRE(type != H2_RST_STREAM || *state != RESET);
	if ((type == H2_DATA || type == H2_HEADERS) && flags & H2_F_END_STREAM)
		*state = ENDED;
	if (type == H2_RST_STREAM)
		*state = RESET;
}

static inline void
sent_head(void)
{
	uint8_t	 type = sent.head[3], flags = sent.head[4];
	int32_t	 id = head32(sent.head + 5);

	sent.left = head32(sent.head) >> 8;
	REQUIRE(sent.left <= H2_FRAME_MAX && type < H2_NTYPES && id >= 0);
	REQUIRE(type != H2_PRIORITY && type != H2_PUSH_PROMISE);
	REQUIRE((type == H2_CONTINUATION) == (sent.block_of != 0) &&
	    (sent.block_of == 0 || sent.block_of == id));
	REQUIRE(id != 0 || type == H2_SETTINGS || type == H2_PING ||
	    type == H2_GOAWAY || type == H2_WINDOW_UPDATE);
	REQUIRE(type != H2_WINDOW_UPDATE || sent.left == 4);
	if (type == H2_HEADERS || type == H2_CONTINUATION)
		sent.block_of = flags & H2_F_END_HEADERS ? 0 : id;
	if (id != 0 && id < IDS)
		sent_on_stream(type, flags, id);
}

static inline size_t
sent_payload(const unsigned char *p, size_t len)
{
	int32_t	 id = head32(sent.head + 5);
	size_t	 i, n = len < sent.left ? len : sent.left;

	if (sent.head[3] == H2_DATA && id < IDS)
		for (i = 0; i < n; i++)
			REQUIRE(p[i] == (unsigned char)(id + sent.pos[id]++));
	sent.left -= n;
	return n;
}

static void
wire_got(const unsigned char *p, size_t len)
{
	size_t	 n;

	for (; len > 0; p += n, len -= n) {
		n = 1;
		if (sent.skip > 0)
			sent.skip--;
		else if (sent.left > 0)
			n = sent_payload(p, len);
		else {
			sent.head[sent.headlen++] = *p;
			if (sent.headlen == H2_FRAME_HEAD) {
				sent_head();
				sent.headlen = 0;
			}
		}
	}
}

#endif /* H2_SENT_H */
