/* SPDX-License-Identifier: ISC */

/*
 * The dialer runs this: its slice of the configuration, prepared aside and
 * put in the running one's place at commit.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialer.h"
#include "hostname.h"
#include "log.h"

static struct slice	*running, *candidate;

/* NULL before the first configuration is in force. */
const struct slice *
slice_running(void)
{
	return running;
}

static struct slice *
slice_new(void)
{
	struct slice	*sl;

	if ((sl = calloc(1, sizeof(*sl))) == NULL)
		fatal("%s", __func__);
	TAILQ_INIT(&sl->sl_hosts);
	TAILQ_INIT(&sl->sl_resolvers);
	TAILQ_INIT(&sl->sl_closed);
	return sl;
}

static void
slice_free(struct slice *sl)
{
	struct host	*ho;
	struct closed	*cl;

	if (sl == NULL)
		return;
	while ((ho = TAILQ_FIRST(&sl->sl_hosts)) != NULL) {
		TAILQ_REMOVE(&sl->sl_hosts, ho, ho_entry);
		free(ho);
	}
	resolvers_clear(&sl->sl_resolvers);
	while ((cl = TAILQ_FIRST(&sl->sl_closed)) != NULL) {
		TAILQ_REMOVE(&sl->sl_closed, cl, cl_entry);
		free(cl);
	}
	free(sl);
}

void
slice_begin(uint64_t generation)
{
	(void)generation;
	slice_free(candidate);
	candidate = slice_new();
}

int
slice_weigh(char *why, size_t len)
{
	if (candidate->sl_timeout_ms > 0)
		return 0;
	snprintf(why, len, "the time to dial is 0");
	return -1;
}

void
slice_commit(void)
{
	struct slice	*old = running;

	running = candidate;
	candidate = NULL;
	stock_open();
	if (old != NULL && old->sl_mark != running->sl_mark)
		stock_renew();
	names_forget();
	resolve_servers(&running->sl_resolvers);
	slice_free(old);
}

void
slice_abort(void)
{
	slice_free(candidate);
	candidate = NULL;
}

int
dialer_parent_conf_dial(struct ipc *ip, const union msg *m)
{
	(void)ip;
	candidate->sl_timeout_ms = m->conf_dial.timeout_ms;
	candidate->sl_mark = m->conf_dial.mark;
	return 0;
}

int
dialer_parent_conf_host(struct ipc *ip, const union msg *m)
{
	const struct msg_conf_host	*mh = &m->conf_host;
	const char			*why;
	struct host			*ho;

	if ((ho = calloc(1, sizeof(*ho))) == NULL)
		fatal("%s", __func__);
	TAILQ_INSERT_TAIL(&candidate->sl_hosts, ho, ho_entry);
	if (hostname_canon(mh->name, strlen(mh->name), ho->ho_name,
	    sizeof(ho->ho_name), &why) == -1)
		return ipc_bad(ip, "host %s: %s", mh->name, why);
	if (addr_parse(mh->address, &ho->ho_addr) == -1)
		return ipc_bad(ip, "address %s", mh->address);
	return 0;
}

int
dialer_parent_conf_resolver(struct ipc *ip, const union msg *m)
{
	return resolvers_add(&candidate->sl_resolvers, ip, m);
}

int
dialer_parent_conf_deny_net(struct ipc *ip, const union msg *m)
{
	const char	*why;
	struct closed	*cl;

	if ((cl = calloc(1, sizeof(*cl))) == NULL)
		fatal("%s", __func__);
	TAILQ_INSERT_TAIL(&candidate->sl_closed, cl, cl_entry);
	if (prefix_parse(m->conf_deny_net.prefix, &cl->cl_prefix, &why) == -1)
		return ipc_bad(ip, "prefix %s: %s", m->conf_deny_net.prefix,
		    why);
	return 0;
}
