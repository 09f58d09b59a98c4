/* SPDX-License-Identifier: ISC */

/*
 * k8sd: calls to API servers.  A call waits for its turn (there is a rate for
 * each cluster); after that, the time of its request is for all: waiting for a
 * credential, attempts, and rests between them.
 */

#ifndef API_H
#define API_H

#include <stddef.h>
#include <stdint.h>

#include "cluster.h"
#include "https/https.h"
#include "kjson.h"

#define API_TIMEOUT_MS	30000
#define API_WHY_LEN	600
#define API_PATH_LEN	1024
#define API_PAGE	100	/* objects of a list at once */

struct api_call;

/* All of it is copied. */
struct api_request {
	const char	*ar_method;
	const char	*ar_path;	/* with its query */
	const char	*ar_type;	/* NULL: application/json */
	const char	*ar_body;	/* or NULL: none */
	uint64_t	 ar_timeout_ms;	/* 0: API_TIMEOUT_MS */
	const char	*ar_verb;	/* for a 403: "create" */
	const char	*ar_resource;	/* likewise: "pods" */
	/* Pieces of an answer that has no end; such a call is tried once. */
	https_data	*ar_data;
	void		*ar_data_arg;
	uint64_t	 ar_idle_ms;
	int		 ar_text;	/* the answer is no JSON */
	int		 ar_urgent;	/* before all that wait for a turn */
};

enum api_result {
	API_OK,
	API_REFUSED,		/* with a status and the API's reason */
	API_LOST,		/* no connection, no credential */
	API_LATE,
	API_BAD			/* an answer that is none */
};

struct api_answer {
	enum api_result	 aa_result;
	long		 aa_status;	/* 0: there was no answer */
	const cJSON	*aa_json;	/* of API_OK; or a Status, or NULL */
	const char	*aa_reason;	/* "NotFound" or "" */
	const char	*aa_why;	/* for people; "" if all is well */
};

typedef void	 api_done(void *, const struct api_answer *);

/* The answer comes later, and with it the call ends. */
struct api_call	*api_begin(struct cluster *, const struct api_request *,
		    api_done *, void *);
void	 api_cancel(struct api_call *);

/* The cluster of this name as it is configured now, if it still is. */
void	 api_renew(struct cluster **);

/* The server's clock, as its last answer had it; else our own. */
int64_t	 api_now(struct cluster *);

/* What /version said to whoever asked first, or "". */
const char	*api_version(struct cluster *);
void	 api_version_set(struct cluster *, const char *);

/* api_error.c: what to say of an answer that is not what was asked for. */
void	 api_explain(const struct api_request *, const struct https_answer *,
	    const cJSON *, char *, size_t);

#endif /* API_H */
