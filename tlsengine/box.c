/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: the other end of a local sandbox.  box binds the
 * listeners inside, where we cannot, and hands them over; it gets the files
 * that clients in there need to trust us.  It runs beside the agent and is
 * believed nothing: what it sends is a listener that serves it, or is not.
 */

#include <sys/mman.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "flow/conn.h"
#include "log.h"
#include "tlsengine.h"

static struct ipc	*box;
static unsigned int	 nlisteners;
static bool		 ready;		/* box has sent all */

static void
box_gone(struct ipc *ip, const char *why)
{
	(void)ip;
	if (why != NULL)
		fatalx("session %s: bad message from box: %s", child_session,
		    why);
	log_debug("session %s: the sandbox has ended", child_session);
	conns_end();
	/* Records go out first: whoever hears of the end may read them. */
	ipc_flush(recorder);
	ipc_send(policyd, -1, ENGINE_BYE, empty);
	ipc_flush(policyd);
	exit(0);
}

static int
tlsengine_box_listen(struct ipc *ip, const union msg *m)
{
	int	 fd = ipc_take_fd(ip);

	if (fd == -1)
		return 0;
	if (ready || m->box_listen.kind >= LISTEN_KIND_MAX ||
	    ++nlisteners > BOX_LISTENERS) {
		close(fd);
		return ipc_bad(ip, "listener %u of kind %u", nlisteners,
		    m->box_listen.kind);
	}
	listen_add(m->box_listen.kind, fd);
	return 0;
}

static void
write_all(int fd, const void *data, size_t len)
{
	if (write(fd, data, len) != (ssize_t)len)
		fatal("sealed file");
}

/*
 * A file in memory that nobody can change any more.  Of two parts the first
 * may lack its last newline, which PEM cannot do without.
 */
static void
send_sealed(enum trust_kind kind, const void *a, size_t alen, const void *b,
    size_t blen)
{
	int	 fd;

	if ((fd = memfd_create("trust", MFD_CLOEXEC | MFD_ALLOW_SEALING)) == -1)
		fatal("memfd_create");
	write_all(fd, a, alen);
	if (b != NULL) {
		write_all(fd, "\n", 1);
		write_all(fd, b, blen);
	}
	if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE |
	    F_SEAL_SEAL) == -1)
		fatal("sealed file");
	ipc_send(box, fd, BOX_TRUST, box_trust, .kind = kind);
}

static int
tlsengine_box_ready(struct ipc *ip, const union msg *m)
{
	const struct secret	*bundle = trust_bundle();
	struct trust_file	 certs, keys;
	const char		*pem;
	unsigned char		*java;
	size_t			 len, javalen;

	if (ready)
		return ipc_bad(ip, "ready twice");
	ready = true;
	if (!m->box_ready.redirect)
		log_info("session %s: only well-known ports arrive",
		    child_session);
	pem = mint_ca_pem(mint, &len);
	java = trust_java(&javalen);
	trust_nss(&certs, &keys);
	send_sealed(TRUST_CA, pem, len, NULL, 0);
	send_sealed(TRUST_BUNDLE, bundle->sc_data, bundle->sc_len, pem, len);
	send_sealed(TRUST_JAVA, java, javalen, NULL, 0);
	send_sealed(TRUST_NSS_CERTS, certs.tf_data, certs.tf_len, NULL, 0);
	send_sealed(TRUST_NSS_KEYS, keys.tf_data, keys.tf_len, NULL, 0);
	free(java);
	free(certs.tf_data);
	free(keys.tf_data);
	ipc_send(ip, -1, BOX_GO, box_go, .session = child_session);
	return 0;
}

static const ipc_handler box_handlers[MSG_MAX] = {
	[MSG_BOX_LISTEN] = tlsengine_box_listen,
	[MSG_BOX_READY] = tlsengine_box_ready,
};

/* Messages of box are read once there is a CA. */
void
box_attach(int fd)
{
	box = child_peer(ROLE_BOX, fd, box_handlers);
	box->ip_gone = box_gone;
	if (mint == NULL)
		event_del(&box->ip_rev);
}

void
box_hear(void)
{
	if (box != NULL && event_add(&box->ip_rev, NULL) == -1)
		fatalx("box: event_add");
}
