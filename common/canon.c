/* SPDX-License-Identifier: ISC */

/*
 * policyd and controld run this; see canon.h.  The input is a stranger's.
 */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "canon.h"
#include "hostname.h"
#include "urlpath.h"

static const char	 token[] = "abcdefghijklmnopqrstuvwxyz"
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~";

/* RFC 9110, 5.6.2. */
static bool
method_is_sound(const char *method)
{
	return method[0] != '\0' && method[strspn(method, token)] == '\0';
}

/* RFC 9112, 3.2.4: `*' is the whole server, for OPTIONS only. */
static bool
path_is_sound(const char *path, const char *method)
{
	char	 canon[URLPATH_MAX];

	if (strcmp(path, "*") == 0)
		return strcmp(method, "OPTIONS") == 0;
	return urlpath_canon(path, strlen(path), canon, sizeof(canon),
	    NULL) != -1 && strcmp(path, canon) == 0;
}

const char *
canon_fault(const char *host, const char *method, const char *path)
{
	if (!hostname_is_canon(host))
		return "a host that is not canonical";
	if (!method_is_sound(method))
		return "a method that is no token";
	if (!path_is_sound(path, method))
		return "a path that is not canonical";
	return NULL;
}
