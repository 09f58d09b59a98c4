/* SPDX-License-Identifier: ISC */

/*
 * egressctl: a request that the command line describes.
 */

#ifndef URL_H
#define URL_H

#include <stdint.h>

#include "hostname.h"
#include "urlpath.h"
#include "words.h"

/* What a URL is about, in canonical form. */
struct url {
	enum url_scheme	 ur_scheme;
	char		 ur_host[HOSTNAME_MAX];
	uint16_t	 ur_port;
	char		 ur_path[URLPATH_MAX];
};

int	 url_request(const char *method, const char *url, struct url *);

#endif /* URL_H */
