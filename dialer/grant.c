/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: grants.  policyd is trusted to have decided, not to
 * be sound: what it sends is checked as if a stranger had, and a grant that
 * a sound policyd would not send ends us, and with us the daemon.
 */

#include <stdlib.h>
#include <string.h>

#include "dialer.h"
#include "hostname.h"
#include "log.h"

static size_t
count_words(const char *text)
{
	size_t	 n = 0;

	for (; (text += strspn(text, " "))[0] != '\0'; n++)
		text += strcspn(text, " ");
	return n;
}

static int
parse_nets(const char *text, struct permit *pm)
{
	char	 word[PREFIX_STRLEN];
	size_t	 len, n = count_words(text);

	if (n == 0)
		return 0;
	if ((pm->pm_nets = calloc(n, sizeof(*pm->pm_nets))) == NULL)
		fatal("%s", __func__);
	for (; (text += strspn(text, " "))[0] != '\0'; text += len) {
		if ((len = strcspn(text, " ")) >= sizeof(word))
			return -1;
		memcpy(word, text, len);
		word[len] = '\0';
		if (prefix_parse(word, &pm->pm_nets[pm->pm_nnets++],
		    NULL) == -1)
			return -1;
	}
	return 0;
}

static int
grant_check(struct ipc *ip, const struct msg_grant *mg, struct permit *pm)
{
	if (mg->dial == 0)
		return ipc_bad(ip, "dial 0");
	if (mg->port == 0)
		return ipc_bad(ip, "port 0");
	if (mg->to_private > 1)
		return ipc_bad(ip, "to private %u", mg->to_private);
	if (!hostname_is_canon(mg->host))
		return ipc_bad(ip, "a host that is not canonical");
	pm->pm_private = mg->to_private;
	if (parse_nets(mg->nets, pm) == -1)
		return ipc_bad(ip, "a prefix that is none");
	return 0;
}

int
dialer_policyd_grant(struct ipc *ip, const union msg *m)
{
	const struct msg_grant	*mg = &m->grant;
	struct permit		 pm = { .pm_nets = NULL };
	struct engine		*en;

	if (grant_check(ip, mg, &pm) == -1) {
		free(pm.pm_nets);
		return -1;
	}
	if (slice_running() == NULL)
		return ipc_bad(ip, "before there is a configuration");
	if ((en = engine_find(mg->instance)) == NULL)
		log_debug("a grant for engine %u, which is gone",
		    mg->instance);
	else if (en->en_ndials >= DIALS_ENGINE_MAX || dial_count() >= DIALS_MAX)
		engine_failed(en, mg->dial, DIAL_UNREACHABLE,
		    "too many connections are being made");
	else
		dial_start(en, mg, &pm);
	free(pm.pm_nets);
	return 0;
}
