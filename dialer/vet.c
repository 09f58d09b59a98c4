/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: the address policy.  Whoever runs a name chooses its
 * addresses, anew for each question, so every address is judged just before
 * it is dialled, and what was judged is what connect(2) gets.
 *
 * A name may answer with addresses of which some are refused; these are left
 * out and the rest is dialled, as names with a private address beside a
 * public one are in honest use and a refused address is never reached.
 */

#include "dialer.h"

static bool
matches_any(const struct prefix *pf, const struct addr *ad, size_t n)
{
	size_t	 i;

	for (i = 0; i < n; i++)
		if (prefix_match(pf, &ad[i]))
			return true;
	return false;
}

/* Through a translator (NAT64) an address reaches those it embeds. */
static bool
is_closed(const struct slice *sl, const struct addr *ad)
{
	struct addr		 v4[ADDR_EMBED_MAX];
	const struct closed	*cl;
	size_t			 n = addr_embedded(ad, v4);

	TAILQ_FOREACH(cl, &sl->sl_closed, cl_entry)
		if (prefix_match(&cl->cl_prefix, ad) ||
		    matches_any(&cl->cl_prefix, v4, n))
			return true;
	return false;
}

static bool
is_opened(const struct permit *pm, const struct addr *ad)
{
	size_t	 i;

	if (pm->pm_private)
		return true;
	for (i = 0; i < pm->pm_nnets; i++)
		if (prefix_match(&pm->pm_nets[i], ad))
			return true;
	return false;
}

const char *
vet(const struct slice *sl, const struct permit *pm, const struct addr *ad)
{
	enum addr_class	 class = addr_classify(ad);

	if (class != ADDR_GLOBAL &&
	    !(addr_class_openable(class) && is_opened(pm, ad)))
		return addr_class_name(class);
	return is_closed(sl, ad) ? "closed" : NULL;
}
