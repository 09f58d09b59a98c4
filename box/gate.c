/* SPDX-License-Identifier: ISC */

/*
 * egressd-box runs this: its channel to the engine of its session.  The
 * engine gets the listeners of the sandbox and answers with the trust files
 * and the word to go.  It is believed no more than any peer: what it sends is
 * checked against the message table, and its files must be sealed.
 */

#include <sys/mman.h>
#include <sys/stat.h>

#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "box.h"
#include "clock.h"
#include "msg.h"
#include "name.h"

#define GO_TIMEOUT_MS	10000
#define TRUST_MAX	(4 * 1024 * 1024)
#define SEALS		(F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW)

static void
gate_send(struct box *bx, uint32_t type, const union msg *m, int fd)
{
	struct ibuf	*b;

	if ((b = imsg_open(&bx->bx_channel, type, 0)) == NULL ||
	    msg_find(type)->md_put(b, m) == -1 ||
	    imsg_close(&bx->bx_channel, fd) == -1)
		err(BOX_FAILED, "message to the gate");
}

/*
 * The sent descriptors are closed here: were a copy to stay with us, a
 * connection would still be accepted by the kernel after the engine's death.
 */
void
gate_offer(struct box *bx, int redirect)
{
	union msg	 m;
	size_t		 i;

	if (fcntl(bx->bx_engine, F_SETFL, O_NONBLOCK) == -1 ||
	    imsgbuf_init(&bx->bx_channel, bx->bx_engine) == -1)
		err(BOX_FAILED, "channel to the gate");
	for (i = 0; i < bx->bx_nlisteners; i++) {
		m.box_listen.kind = bx->bx_listeners[i].bl_kind;
		gate_send(bx, MSG_BOX_LISTEN, &m, bx->bx_listeners[i].bl_fd);
	}
	bx->bx_nlisteners = 0;
	m.box_ready.redirect = redirect;
	gate_send(bx, MSG_BOX_READY, &m, -1);
	if (imsgbuf_flush(&bx->bx_channel) == -1)
		err(BOX_FAILED, "the gate does not listen");
}

static void
gate_trust(struct box *bx, uint8_t kind, int fd)
{
	struct stat	 st;
	int		 seals;

	if (kind >= TRUST_KIND_MAX || bx->bx_trust[kind] != -1)
		errx(BOX_FAILED, "the gate sent trust file %u", kind);
	if (fd < 0)
		errx(BOX_FAILED, "no descriptor left for trust file %u", kind);
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode) || st.st_size == 0 ||
	    st.st_size > TRUST_MAX)
		errx(BOX_FAILED, "trust file %u: not a file of 1 to %d bytes",
		    kind, TRUST_MAX);
	if ((seals = fcntl(fd, F_GET_SEALS)) == -1 ||
	    (seals & SEALS) != SEALS)
		errx(BOX_FAILED, "trust file %u is not sealed", kind);
	bx->bx_trust[kind] = fd;
}

static void
gate_go(struct box *bx, const char *session)
{
	const char	*why;
	size_t		 i;

	if ((why = name_session_error(session)) != NULL)
		errx(BOX_FAILED, "the gate sent a session id: %s", why);
	for (i = 0; i < TRUST_KIND_MAX; i++)
		if (bx->bx_trust[i] == -1)
			errx(BOX_FAILED, "the gate sent no trust file %zu", i);
	strlcpy(bx->bx_session, session, sizeof(bx->bx_session));
}

/* 1 when the message was the word to go. */
static int
gate_take(struct box *bx, struct imsg *im)
{
	char			 why[256];
	const struct msg_way	 mw = { ROLE_ENGINE, ROLE_BOX, S_OPEN, why,
	    sizeof(why) };
	union msg		 m;

	if (msg_take(&mw, im, &m) == NULL)
		errx(BOX_FAILED, "the gate broke the protocol: %s", why);
	if (im->type == MSG_BOX_GO) {
		gate_go(bx, m.box_go.session);
		return 1;
	}
	if (im->type != MSG_BOX_TRUST)
		errx(BOX_FAILED, "the gate sent message %u", im->type);
	gate_trust(bx, m.box_trust.kind, imsg_get_fd(im));
	return 0;
}

/* 1 after the word to go, which must be the last. */
static int
gate_read(struct box *bx)
{
	struct imsg	 im;
	int		 n, go = 0;

	if ((n = imsgbuf_read(&bx->bx_channel)) == 0)
		errx(BOX_FAILED, "the gate hung up");
	if (n == -1 && errno == EAGAIN)
		return 0;
	if (n == -1)
		err(BOX_FAILED, "channel to the gate");
	while ((n = imsgbuf_get(&bx->bx_channel, &im)) == 1) {
		if (go)
			errx(BOX_FAILED, "the gate spoke after its last word");
		go = gate_take(bx, &im);
		imsg_free(&im);
	}
	if (n == -1)
		errx(BOX_FAILED, "the gate broke the protocol");
	return go;
}

void
gate_await(struct box *bx)
{
	struct pollfd	 pfd = { .fd = bx->bx_engine, .events = POLLIN };
	int64_t		 end = (int64_t)clock_ms() + GO_TIMEOUT_MS, left;

	do {
		if ((left = end - (int64_t)clock_ms()) <= 0 ||
		    poll(&pfd, 1, left) == 0)
			errx(BOX_FAILED, "the gate did not answer in %d s",
			    GO_TIMEOUT_MS / 1000);
	} while (!gate_read(bx));
	/* From now on only its end is of interest, see job.c. */
	imsgbuf_clear(&bx->bx_channel);
}
