/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: clusters, with the server and the line that a call needs.
 * Nothing here asks a cluster anything.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base64.h"
#include "clock.h"
#include "credential.h"
#include "https/https.h"
#include "k8sd.h"
#include "log.h"

#define TOKEN_AGE_MS	(60 * 1000)	/* then its file is read again */
#define RETRY_MS	(5 * 1000)	/* between failures to renew */

static char *
copy(const char *text)
{
	char	*new;

	if ((new = strdup(text)) == NULL)
		fatal("%s", __func__);
	return new;
}

/* https://host:port/path: the path, without a slash at its end. */
static char *
path_of(const char *url)
{
	const char	*host = strstr(url, "://");
	char		*path;
	size_t		 len;

	path = copy(host == NULL ? "" : host + 3 + strcspn(host + 3, "/?"));
	path[strcspn(path, "?")] = '\0';
	for (len = strlen(path); len > 0 && path[len - 1] == '/'; len--)
		path[len - 1] = '\0';
	return path;
}

struct cluster *
cluster_new(const struct msg_conf_cluster *mc)
{
	struct cluster	*kc = child_alloc(sizeof(*kc));

	kc->kc_refs = 1;
	strlcpy(kc->kc_name, mc->name, sizeof(kc->kc_name));
	kc->kc_url = copy(mc->server);
	kc->kc_path = path_of(mc->server);
	kc->kc_space = copy(mc->space);
	kc->kc_tls_name = copy(mc->tls_name);
	kc->kc_proxy = copy(mc->proxy);
	kc->kc_user = copy(mc->user);
	kc->kc_auth = mc->auth;
	kc->kc_insecure = mc->insecure;
	TAILQ_INIT(&kc->kc_waiters);
	return kc;
}

static void
cluster_free(struct cluster *kc)
{
	struct cluster_waiter	*cw;
	size_t			 i;

	while ((cw = TAILQ_FIRST(&kc->kc_waiters)) != NULL) {
		TAILQ_REMOVE(&kc->kc_waiters, cw, cw_entry);
		free(cw);
	}
	renewal_free(kc->kc_renewal);
	if (kc->kc_told != NULL)
		event_free(kc->kc_told);
	for (i = 0; i < FILE_KIND_MAX; i++)
		secret_free(kc->kc_files[i]);
	secret_free(kc->kc_line);
	if (kc->kc_server != NULL)
		https_server_unref(kc->kc_server);
	free(kc->kc_bundle.tx_data);
	free(kc->kc_url);
	free(kc->kc_path);
	free(kc->kc_space);
	free(kc->kc_tls_name);
	freezero(kc->kc_proxy, strlen(kc->kc_proxy));
	free(kc->kc_user);
	free(kc);
}

struct cluster *
cluster_ref(struct cluster *kc)
{
	kc->kc_refs++;
	return kc;
}

void
cluster_unref(struct cluster *kc)
{
	if (kc != NULL && --kc->kc_refs == 0)
		cluster_free(kc);
}

const char *
cluster_name(const struct cluster *kc)
{
	return kc->kc_name;
}

const char *
cluster_path(const struct cluster *kc)
{
	return kc->kc_path;
}

const char *
cluster_namespace(const struct cluster *kc)
{
	return kc->kc_space[0] == '\0' ? "default" : kc->kc_space;
}

struct https_server *
cluster_server(struct cluster *kc)
{
	return kc->kc_server;
}

/* ---- the server ---- */

/* All that is said of a server's connections, in one place. */
static const char *
server_set(struct cluster *kc, struct https_server *sv,
    const struct secret *cert, const struct secret *key)
{
	struct https_trust	*tr = NULL;

	if (kc->kc_insecure)
		https_server_insecure(sv);
	else if (kc->kc_bundle.tx_data != NULL &&
	    (tr = https_trust_new(kc->kc_bundle.tx_data,
	    kc->kc_bundle.tx_len)) == NULL)
		return "its authority is not certificates in PEM form";
	else if (tr != NULL)
		https_server_trust(sv, tr);
	if (kc->kc_tls_name[0] != '\0' &&
	    https_server_name(sv, kc->kc_tls_name) == -1)
		return "the TLS server name cannot be used";
	if (kc->kc_proxy[0] != '\0' &&
	    https_server_proxy(sv, kc->kc_proxy) == -1)
		return "the proxy cannot be used: not http:// or https://";
	if (cert != NULL && https_server_certificate(sv, cert->sc_data,
	    cert->sc_len, key->sc_data, key->sc_len) == -1)
		return "certificate and key are no pair in PEM form";
	return NULL;
}

static const char *
server_make(struct cluster *kc, const struct secret *cert,
    const struct secret *key)
{
	struct https_server	*sv;
	const char		*why;

	if ((sv = https_server_new(kc->kc_url)) == NULL)
		return "the server's URL cannot be used";
	if ((why = server_set(kc, sv, cert, key)) != NULL) {
		https_server_unref(sv);
		return why;
	}
	if (kc->kc_server != NULL)
		https_server_unref(kc->kc_server);
	kc->kc_server = sv;
	return NULL;
}

/* Calls that are out keep the one that they have. */
int
cluster_serve(struct cluster *kc, const struct secret *cert,
    const struct secret *key)
{
	return server_make(kc, cert, key) == NULL ? 0 : -1;
}

/* ---- the line ---- */

static void
line_set(struct cluster *kc, struct secret *line)
{
	secret_free(kc->kc_line);
	kc->kc_line = line;
	kc->kc_since_ms = clock_ms();
	kc->kc_until_s = 0;
}

static struct secret *
line_new(const char *scheme, size_t len)
{
	static const char	 name[] = "Authorization: ";
	struct secret		*line;
	size_t			 head = strlen(name) + strlen(scheme);

	if ((line = secret_alloc(head + len + 1)) == NULL)
		fatal("%s", __func__);
	snprintf((char *)line->sc_data, line->sc_size, "%s%s", name, scheme);
	line->sc_len = head;
	return line;
}

/* What is in it ends in a header: one line of what can be seen. */
int
cluster_bearer(struct cluster *kc, const void *token, size_t len)
{
	const unsigned char	*p = token;
	struct secret		*line;
	size_t			 i;

	if (len == 0 || len > TOKEN_LEN)
		return -1;
	for (i = 0; i < len; i++)
		if (p[i] <= ' ' || p[i] >= 0x7f)
			return -1;
	line = line_new("Bearer ", len);
	memcpy(line->sc_data + line->sc_len, token, len);
	line->sc_len += len;
	line_set(kc, line);
	return 0;
}

static const char *
line_basic(struct cluster *kc)
{
	const struct secret	*password = kc->kc_files[FILE_PASSWORD];
	struct secret		*line, *both;
	size_t			 user = strlen(kc->kc_user), len;

	if (password == NULL || strchr(kc->kc_user, ':') != NULL)
		return "user and password cannot be sent";
	len = user + 1 + password->sc_len;
	if ((both = secret_alloc(len)) == NULL)
		fatal("%s", __func__);
	memcpy(both->sc_data, kc->kc_user, user);
	both->sc_data[user] = ':';
	memcpy(both->sc_data + user + 1, password->sc_data, password->sc_len);
	line = line_new("Basic ", BASE64_SIZE(len));
	base64_encode(both->sc_data, len, (char *)line->sc_data +
	    line->sc_len);
	line->sc_len += BASE64_SIZE(len) - 1;
	secret_free(both);
	line_set(kc, line);
	return NULL;
}

static const char *
line_first(struct cluster *kc)
{
	const struct secret	*token = kc->kc_files[FILE_TOKEN];

	switch (kc->kc_auth) {
	case AUTH_BASIC:
		return line_basic(kc);
	case AUTH_TOKEN:
	case AUTH_TOKEN_FILE:
		if (token == NULL || cluster_bearer(kc, token->sc_data,
		    token->sc_len) == -1)
			return "the token is not one line of printable "
			    "characters";
		return NULL;
	default:
		return NULL;
	}
}

/* ---- a slice is complete ---- */

int
cluster_prepare(struct cluster *kc, char *why, size_t len)
{
	const struct secret	*cert = kc->kc_files[FILE_CERTIFICATE];
	const struct secret	*key = kc->kc_files[FILE_KEY];
	const char		*what = NULL;

	if ((cert == NULL) != (key == NULL))
		what = "certificate and key go together";
	if (what == NULL)
		what = server_make(kc, cert, key);
	if (what == NULL)
		what = line_first(kc);
	if (what == NULL)
		return 0;
	return child_refuse(why, len, "cluster \"%s\": %s", kc->kc_name, what);
}

/* ---- for a call ---- */

static bool
renews(const struct cluster *kc)
{
	return kc->kc_auth == AUTH_TOKEN_FILE || kc->kc_auth == AUTH_PLUGIN;
}

static void
renew(struct cluster *kc)
{
	if (kc->kc_renewal == NULL && (kc->kc_failed_ms == 0 ||
	    clock_ms() - kc->kc_failed_ms > RETRY_MS))
		renewal_begin(kc);
}

const char *
cluster_authorization(struct cluster *kc)
{
	if (kc->kc_auth == AUTH_NONE)
		return "";
	if (kc->kc_until_s != 0 &&
	    (int64_t)(clock_wall_ns() / 1000000000) >= kc->kc_until_s) {
		secret_free(kc->kc_line);
		kc->kc_line = NULL;
	}
	/* An old token is used while its file is looked at. */
	if (renews(kc) && (kc->kc_line == NULL ||
	    (kc->kc_auth == AUTH_TOKEN_FILE &&
	    clock_ms() - kc->kc_since_ms > TOKEN_AGE_MS)))
		renew(kc);
	return kc->kc_line == NULL ? NULL : (const char *)kc->kc_line->sc_data;
}

void
cluster_refused(struct cluster *kc)
{
	if (!renews(kc) || kc->kc_renewal != NULL)
		return;
	secret_free(kc->kc_line);
	kc->kc_line = NULL;
	renew(kc);
}

/* Everybody who waits now; who begins to wait meanwhile is not told. */
void
cluster_tell(struct cluster *kc, const char *why)
{
	struct cluster_waiter	*cw;
	uint64_t		 turn = kc->kc_turn++;

	cluster_ref(kc);
	while ((cw = TAILQ_FIRST(&kc->kc_waiters)) != NULL &&
	    cw->cw_turn <= turn) {
		TAILQ_REMOVE(&kc->kc_waiters, cw, cw_entry);
		cw->cw_ready(cw->cw_arg, why);
		free(cw);
	}
	cluster_unref(kc);
}

/* Nothing is under way: the line is there, or could not be had just now. */
static void
tell_later(evutil_socket_t fd, short what, void *arg)
{
	struct cluster	*kc = arg;

	(void)fd, (void)what;
	if (kc->kc_renewal == NULL)
		cluster_tell(kc, kc->kc_line == NULL && renews(kc) ?
		    kc->kc_why : NULL);
}

void
cluster_wait(struct cluster *kc, cluster_ready *ready, void *arg)
{
	static const struct timeval	 at_once;
	struct cluster_waiter		*cw = child_alloc(sizeof(*cw));

	cw->cw_turn = kc->kc_turn;
	cw->cw_ready = ready;
	cw->cw_arg = arg;
	TAILQ_INSERT_TAIL(&kc->kc_waiters, cw, cw_entry);
	if (kc->kc_renewal != NULL)
		return;
	if (kc->kc_told == NULL && (kc->kc_told = evtimer_new(child_base,
	    tell_later, kc)) == NULL)
		fatalx("%s: no memory", __func__);
	if (evtimer_add(kc->kc_told, &at_once) == -1)
		fatalx("%s", __func__);
}

void
cluster_wait_cancel(struct cluster *kc, cluster_ready *ready, void *arg)
{
	struct cluster_waiter	*cw, *next;

	TAILQ_FOREACH_SAFE(cw, &kc->kc_waiters, cw_entry, next)
		if (cw->cw_ready == ready && cw->cw_arg == arg) {
			TAILQ_REMOVE(&kc->kc_waiters, cw, cw_entry);
			free(cw);
		}
}
