/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: credentials that do not last.  A file with a token is opened
 * again by the parent, a plugin is run by it, by the name of the cluster; what
 * comes of that is bounded in size and time.  Nobody waits here: who needs the
 * credential is called when it is there.
 */

#include <sys/socket.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base64.h"
#include "clock.h"
#include "credential.h"
#include "k8sd.h"
#include "log.h"

#define PLUGIN_LEN	(64 * 1024)	/* of its output */
#define PLUGIN_S	60
#define MARGIN_S	10		/* before its end it is renewed */

struct renewal {
	struct cluster	*rn_cluster;
	struct opening	 rn_opening;
	int		 rn_fd;		/* the plugin's output, or -1 */
	struct event	*rn_read;
	struct event	*rn_late;
	struct secret	*rn_out;
	bool		 rn_silent;	/* the output has ended */
	bool		 rn_ended;	/* the plugin has, and well */
};

void
renewal_free(struct renewal *rn)
{
	if (rn == NULL)
		return;
	opening_done(&rn->rn_opening);
	if (rn->rn_read != NULL)
		event_free(rn->rn_read);
	if (rn->rn_late != NULL)
		event_free(rn->rn_late);
	if (rn->rn_fd != -1)
		close(rn->rn_fd);
	secret_free(rn->rn_out);
	free(rn);
}

/* The renewal is gone after this, and perhaps its cluster. */
static void
renewal_end(struct renewal *rn, const char *why)
{
	struct cluster	*kc = rn->rn_cluster;

	kc->kc_renewal = NULL;
	kc->kc_since_ms = clock_ms();
	kc->kc_failed_ms = why == NULL ? 0 : kc->kc_since_ms;
	if (why != NULL) {
		snprintf(kc->kc_why, sizeof(kc->kc_why), "%s: %s",
		    kc->kc_auth == AUTH_PLUGIN ? "credential plugin" :
		    "token file", why);
		log_warnx("cluster \"%s\": %s", kc->kc_name, kc->kc_why);
	}
	renewal_free(rn);
	cluster_tell(kc, kc->kc_line == NULL ? kc->kc_why : NULL);
}

/* ---- a token's file ---- */

static void
token_opened(void *arg, int fd)
{
	struct renewal	*rn = arg;
	struct secret	*token;
	const char	*why = NULL;

	token = secret_read_fd(fd, TOKEN_LEN);
	if (token == NULL)
		why = errno == ENODATA ? "it is empty" : strerror(errno);
	else if (cluster_bearer(rn->rn_cluster, token->sc_data,
	    token->sc_len) == -1)
		why = "not one line of printable characters";
	close(fd);
	secret_free(token);
	renewal_end(rn, why);
}

static void
opening_failed(void *arg, const char *why)
{
	renewal_end(arg, why);
}

static const struct opening_ops token_ops = {
	.oo_opened = token_opened,
	.oo_failed = opening_failed,
};

/* ---- a plugin ---- */

static struct secret *
pem(const char *text)
{
	struct secret	*sc;
	size_t		 len = strlen(text);

	if (len == 0 || len > PLUGIN_LEN || (sc = secret_alloc(len)) == NULL)
		return NULL;
	memcpy(sc->sc_data, text, len);
	sc->sc_len = len;
	return sc;
}

static const char *
use_certificate(struct cluster *kc, const struct exec_credential *ec)
{
	struct secret	*cert = pem(ec->ec_cert), *key = pem(ec->ec_key);
	const char	*why = NULL;

	if (cert == NULL || key == NULL ||
	    cluster_serve(kc, cert, key) == -1)
		why = "its certificate and key are no pair in PEM form";
	secret_free(cert);
	secret_free(key);
	return why;
}

/* A certificate alone needs no line, but has to be known as being there. */
static const char *
use_line(struct cluster *kc, const struct exec_credential *ec)
{
	if (ec->ec_token == NULL) {
		secret_free(kc->kc_line);
		if ((kc->kc_line = secret_alloc(1)) == NULL)
			fatal("%s", __func__);
	} else if (cluster_bearer(kc, ec->ec_token,
	    strlen(ec->ec_token)) == -1)
		return "its token is not one line of printable characters";
	return NULL;
}

static const char *
use(struct cluster *kc, const struct exec_credential *ec)
{
	int64_t		 now = (int64_t)(clock_wall_ns() / 1000000000);
	const char	*why = NULL;

	if (ec->ec_until_s != 0 && ec->ec_until_s <= now)
		return "its credential has expired already";
	if (ec->ec_cert != NULL)
		why = use_certificate(kc, ec);
	if (why == NULL)
		why = use_line(kc, ec);
	if (why != NULL)
		return why;
	kc->kc_until_s = ec->ec_until_s;
	if (kc->kc_until_s != 0 && kc->kc_until_s - now > 2 * MARGIN_S)
		kc->kc_until_s -= MARGIN_S;
	return NULL;
}

static void
plugin_weigh(struct renewal *rn)
{
	struct exec_credential	 ec;
	char			 text[96];
	const char		*why;

	if (!rn->rn_silent || !rn->rn_ended)
		return;
	if (exec_credential_parse(&ec, (const char *)rn->rn_out->sc_data,
	    rn->rn_out->sc_len, text, sizeof(text)) == -1) {
		renewal_end(rn, text);
		return;
	}
	why = use(rn->rn_cluster, &ec);
	exec_credential_free(&ec);
	renewal_end(rn, why);
}

static void
plugin_read(evutil_socket_t fd, short what, void *arg)
{
	struct renewal	*rn = arg;
	struct secret	*out = rn->rn_out;
	ssize_t		 n;

	(void)what;
	n = read(fd, out->sc_data + out->sc_len, out->sc_size - out->sc_len);
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0 && (out->sc_len += (size_t)n) < out->sc_size)
		return;
	if (n > 0) {
		renewal_end(rn, "it wrote more than 64 KiB");
		return;
	}
	event_del(rn->rn_read);
	rn->rn_silent = true;
	plugin_weigh(rn);
}

static void
plugin_late(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	renewal_end(arg, "it has not ended within a minute");
}

static void
plugin_opened(void *arg, int fd)
{
	struct renewal	*rn = arg;

	rn->rn_fd = fd;
	shutdown(fd, SHUT_WR);
	if (evutil_make_socket_nonblocking(fd) == -1 ||
	    (rn->rn_out = secret_alloc(PLUGIN_LEN + 1)) == NULL ||
	    (rn->rn_read = event_new(child_base, fd, EV_READ | EV_PERSIST,
	    plugin_read, rn)) == NULL || event_add(rn->rn_read, NULL) == -1)
		fatal("%s", __func__);
}

static void
plugin_ended(void *arg, const char *why)
{
	struct renewal	*rn = arg;

	if (why != NULL) {
		renewal_end(rn, why);
		return;
	}
	rn->rn_ended = true;
	plugin_weigh(rn);
}

static const struct opening_ops plugin_ops = {
	.oo_opened = plugin_opened,
	.oo_failed = opening_failed,
	.oo_ended = plugin_ended,
};

void
renewal_begin(struct cluster *kc)
{
	static const struct timeval	 limit = { .tv_sec = PLUGIN_S };
	struct renewal			*rn = child_alloc(sizeof(*rn));
	bool				 plugin = kc->kc_auth == AUTH_PLUGIN;

	rn->rn_cluster = kc;
	rn->rn_fd = -1;
	kc->kc_renewal = rn;
	if ((rn->rn_late = evtimer_new(child_base, plugin_late, rn)) == NULL ||
	    evtimer_add(rn->rn_late, &limit) == -1)
		fatalx("%s: no memory", __func__);
	opening_ask(&rn->rn_opening, plugin ? OPEN_CLUSTER_PLUGIN :
	    OPEN_CLUSTER_TOKEN, kc->kc_name, plugin ? &plugin_ops : &token_ops,
	    rn);
}
