/* SPDX-License-Identifier: ISC */


/*
 * The dialer runs this: the order in which addresses are tried (RFC 8305, 4).
 * Families take turns, IPv6 first; within one the order is the answer's.
 * Addresses may still be added when some have been tried.
 */

#include <string.h>

#include "dialer.h"

void
plan_init(struct plan *pl)
{
	memset(pl, 0, sizeof(*pl));
	pl->pl_turn = FAMILY_V6;
}

static enum family
family_of(const struct addr *ad)
{
	return ad->ad_af == AF_INET6 ? FAMILY_V6 : FAMILY_V4;
}

/* -1 if the address is planned already or the plan is full. */
int
plan_add(struct plan *pl, const struct addr *ad)
{
	enum family	 fa = family_of(ad);
	size_t		 i;

	for (i = 0; i < pl->pl_count[fa]; i++)
		if (addr_cmp(&pl->pl_addr[fa][i], ad) == 0)
			return -1;
	if (i == PLAN_MAX)
		return -1;
	pl->pl_addr[fa][i] = *ad;
	pl->pl_count[fa]++;
	return 0;
}

/* 1 with the next address, or 0. */
int
plan_next(struct plan *pl, struct addr *ad)
{
	enum family	 fa = pl->pl_turn;

	if (pl->pl_next[fa] == pl->pl_count[fa])
		fa = fa == FAMILY_V6 ? FAMILY_V4 : FAMILY_V6;
	if (pl->pl_next[fa] == pl->pl_count[fa])
		return 0;
	*ad = pl->pl_addr[fa][pl->pl_next[fa]++];
	pl->pl_turn = fa == FAMILY_V6 ? FAMILY_V4 : FAMILY_V6;
	return 1;
}
