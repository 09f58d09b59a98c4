/* SPDX-License-Identifier: ISC */

/*
 * Every process runs this.
 */

#include <stddef.h>

#include "role.h"

static const char *const role_names[ROLE_MAX] = {
	[ROLE_PARENT] = "parent",
	[ROLE_CONTROLD] = "controld",
	[ROLE_POLICYD] = "policyd",
	[ROLE_RECORDER] = "recorder",
	[ROLE_DIALER] = "dialer",
	[ROLE_DECIDERD] = "deciderd",
	[ROLE_K8SD] = "k8sd",
	[ROLE_PODD] = "podd",
	[ROLE_ENGINE] = "tlsengine",
	[ROLE_BOX] = "box",
};

const char *
role_name(uint32_t role)
{
	return role < ROLE_MAX ? role_names[role] : NULL;
}
