/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: a dial, from the grant to the one answer that the
 * engine gets for it (happy eyeballs, RFC 8305).
 */

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dialer.h"
#include "log.h"

static int	ndials;

int
dial_count(void)
{
	return ndials;
}

/* Sends no answer: the caller has, or the engine is gone. */
void
dial_free(struct dial *di)
{
	struct attempt	*at;

	while ((at = TAILQ_FIRST(&di->di_attempts)) != NULL)
		attempt_free(at);
	if (di->di_name != NULL)
		name_leave(di);
	event_del(&di->di_timeout);
	event_del(&di->di_stagger);
	TAILQ_REMOVE(&di->di_engine->en_dials, di, di_entry);
	di->di_engine->en_ndials--;
	ndials--;
	free(di->di_permit.pm_nets);
	free(di);
}

static void LOG_FORMAT(3, 4)
dial_fail(struct dial *di, enum dial_failure failure, const char *fmt, ...)
{
	char	 why[PATH_LEN];
	va_list	 ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	engine_failed(di->di_engine, di->di_number, failure, why);
	dial_free(di);
}

/* What would open a refused address, in few words. */
static const char *
dial_remedy(const struct dial *di)
{
	enum addr_class	 class = addr_classify(&di->di_refused);

	if (strcmp(di->di_refusal, addr_class_name(class)) != 0)
		return "our own, or \"address deny\"";
	return addr_class_openable(class) ? "\"to private\" would allow it" :
	    "never dialled";
}

/* No address is left to try: report the best reason. */
static void
dial_give_up(struct dial *di)
{
	char	 text[ADDR_STRLEN], why[128];

	if (di->di_errno != 0) {
		strlcpy(why, strerror(di->di_errno), sizeof(why));
		why[0] = (char)tolower((unsigned char)why[0]);
		dial_fail(di, DIAL_UNREACHABLE, "%s (%s)", why,
		    addr_format(&di->di_errno_addr, text, sizeof(text)));
	} else if (di->di_refusal != NULL)
		dial_fail(di, DIAL_ADDRESS_REFUSED, "%s address %s (%s)",
		    di->di_refusal,
		    addr_format(&di->di_refused, text, sizeof(text)),
		    dial_remedy(di));
	else
		dial_fail(di, DIAL_UNREACHABLE, "%s", di->di_why);
}

/* "no route" only says that this machine lacks a family. */
static bool
is_no_route(int error)
{
	return error == ENETUNREACH || error == EAFNOSUPPORT ||
	    error == EADDRNOTAVAIL;
}

static void
dial_note(struct dial *di, const struct addr *ad, int error)
{
	if (di->di_errno != 0 && is_no_route(error))
		return;
	di->di_errno = error;
	di->di_errno_addr = *ad;
}

/* Start the attempts that are due; may free the dial. */
static void
dial_go(struct dial *di)
{
	static const struct timeval	 stagger = { 0, STAGGER_MS * 1000 };
	bool				 busy = !TAILQ_EMPTY(&di->di_attempts);
	struct addr			 ad;
	int				 error;

	if (event_pending(&di->di_stagger, EV_TIMEOUT, NULL))
		return;
	if (busy && !engine_may_widen(di->di_engine)) {
		event_add(&di->di_stagger, &stagger);
		return;
	}
	while (plan_next(&di->di_plan, &ad)) {
		if ((error = attempt_start(di, &ad)) == 0) {
			event_add(&di->di_stagger, &stagger);
			return;
		}
		dial_note(di, &ad, error);
	}
	if (!busy && di->di_name == NULL)
		dial_give_up(di);
}

static void
dial_on_stagger(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	dial_go(arg);
}

static void
dial_on_timeout(evutil_socket_t fd, short what, void *arg)
{
	struct dial	*di = arg;

	(void)fd, (void)what;
	dial_fail(di, DIAL_UNREACHABLE, "timed out after %llu ms",
	    (unsigned long long)di->di_timeout_ms);
}

/* Addresses from a name server or the host itself; perhaps none. */
void
dial_addresses(struct dial *di, const struct addr *ad, size_t n)
{
	const char	*refusal;
	size_t		 i;

	for (i = 0; i < n; i++) {
		refusal = vet(slice_running(), &di->di_permit, &ad[i]);
		if (refusal == NULL)
			plan_add(&di->di_plan, &ad[i]);
		else if (di->di_refusal == NULL) {
			di->di_refusal = refusal;
			di->di_refused = ad[i];
		}
	}
	dial_go(di);
}

void
dial_attempt_failed(struct dial *di, struct attempt *at, int error)
{
	dial_note(di, &at->at_addr, error);
	attempt_free(at);
	event_del(&di->di_stagger);
	dial_go(di);
}

void
dial_connected(struct dial *di, struct attempt *at)
{
	int	 fd = at->at_fd;

	/* The engine gets the socket: freeing the attempt must not close it. */
	event_del(&at->at_event);
	at->at_fd = -1;
	engine_dialed(di->di_engine, di->di_number, &at->at_addr, fd);
	dial_free(di);
}

static struct dial *
dial_new(struct engine *en, const struct msg_grant *mg, struct permit *pm)
{
	const struct slice	*sl = slice_running();
	struct timeval		 tv;
	struct dial		*di;

	if ((di = calloc(1, sizeof(*di))) == NULL)
		fatal("%s", __func__);
	di->di_engine = en;
	di->di_number = mg->dial;
	di->di_port = mg->port;
	di->di_permit = *pm;
	pm->pm_nets = NULL;
	di->di_timeout_ms = sl->sl_timeout_ms;
	di->di_why = "no address";
	TAILQ_INIT(&di->di_attempts);
	plan_init(&di->di_plan);
	TAILQ_INSERT_TAIL(&en->en_dials, di, di_entry);
	en->en_ndials++;
	ndials++;
	event_assign(&di->di_stagger, child_base, -1, 0, dial_on_stagger, di);
	event_assign(&di->di_timeout, child_base, -1, 0, dial_on_timeout, di);
	tv.tv_sec = (time_t)(di->di_timeout_ms / 1000);
	tv.tv_usec = (suseconds_t)(di->di_timeout_ms % 1000 * 1000);
	if (event_add(&di->di_timeout, &tv) == -1)
		fatalx("%s: event_add", __func__);
	return di;
}

/* Addresses of `hosts' are the operator's and not vetted. */
static bool
dial_from_hosts(struct dial *di, const char *host)
{
	const struct host	*ho;
	bool			 found = false;

	TAILQ_FOREACH(ho, &slice_running()->sl_hosts, ho_entry)
		if (strcmp(ho->ho_name, host) == 0) {
			plan_add(&di->di_plan, &ho->ho_addr);
			found = true;
		}
	return found;
}

/* RFC 6761, 6.3: name servers are not asked for localhost. */
static bool
is_localhost(const char *host)
{
	static const char	 suffix[] = ".localhost";
	size_t			 len = strlen(host), cut = sizeof(suffix) - 1;

	return strcmp(host, suffix + 1) == 0 ||
	    (len > cut && strcmp(host + len - cut, suffix) == 0);
}

/* Owns the permit's prefixes from here on; the host is canonical. */
void
dial_start(struct engine *en, const struct msg_grant *mg, struct permit *pm)
{
	struct dial	*di = dial_new(en, mg, pm);
	struct addr	 ad;

	if (dial_from_hosts(di, mg->host))
		dial_go(di);
	else if (addr_parse(mg->host, &ad) == 0)
		dial_addresses(di, &ad, 1);
	else if (is_localhost(mg->host))
		dial_fail(di, DIAL_ADDRESS_REFUSED, "%s name",
		    addr_class_name(ADDR_LOOPBACK));
	else if (name_join(di, mg->host) == -1)
		dial_fail(di, DIAL_UNREACHABLE, "too many names are being "
		    "resolved");
}
