/* SPDX-License-Identifier: ISC */

/*
 * An HTTPS client in the event loop of a child.  The server is a stranger: it
 * is verified, nothing of what it says is followed, and what it may send is
 * bounded in size and time.  Nothing here waits for anybody, and connections
 * are kept for the next request.
 *
 * Plain HTTP is spoken too, but a name is then taken for private addresses
 * only.  No cookie and no file takes part, and no proxy but one that the
 * server was given.
 */

#ifndef HTTPS_H
#define HTTPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct https_call;
struct https_server;
struct https_trust;
struct sandbox;

/* What the libraries below need of the kernel, for a role's sb_library. */
extern const struct sandbox	 https_sandbox;

/* Before confinement; also the resolver (resolver.h), which the role feeds. */
void	 https_warm(void);

/*
 * The certificates of a bundle in PEM form, parsed once for all who have the
 * same; NULL unless there is at least one and all can be read.
 */
struct https_trust	*https_trust_new(const char *, size_t);
void	 https_trust_unref(struct https_trust *);

/*
 * A server by a URL: where it is and which connections to it are good.  NULL
 * for a URL that cannot be used.  A server with https and without trust is
 * never asked.  Calls keep their server.
 */
struct https_server	*https_server_new(const char *);
int	 https_server_tls(const struct https_server *);
void	 https_server_trust(struct https_server *, struct https_trust *);
void	 https_server_unref(struct https_server *);

/*
 * Each at most once, before the first call; -1 for what cannot be used.
 *
 * certificate	a chain and its key in PEM form, which are copied; the key is
 *		not encrypted, and is that of the first certificate
 * name		which the server's certificate has to bear, and which it is
 *		told, instead of the URL's host
 * proxy	the URL of an http or https proxy that takes CONNECT; who calls
 *		says of any other that it is not supported.  An https proxy is
 *		verified by the server's own trust.
 * insecure	nobody is verified
 */
int	 https_server_certificate(struct https_server *, const void *, size_t,
	    const void *, size_t);
int	 https_server_name(struct https_server *, const char *);
int	 https_server_proxy(struct https_server *, const char *);
void	 https_server_insecure(struct https_server *);

/*
 * A piece of an answer, from the event loop as it comes.  -1 ends the call,
 * whose end is told then; https_cancel() on it is fine too, and 0 after it.
 */
typedef int	 https_data(void *, const char *, size_t);

#define HTTPS_NO_LIMIT	UINT64_MAX

/* Whatever this points to has to stay until the call has ended. */
struct https_request {
	const char		*hr_method;
	const char		*hr_path;	/* or NULL: as the URL says */
	const char *const	*hr_headers;	/* lines, up to a NULL */
	const void		*hr_body;	/* or NULL: none */
	size_t			 hr_body_len;
	size_t			 hr_answer_max;	/* bytes of a body */
	uint64_t		 hr_timeout_ms;	/* from now to its end */
	uint64_t		 hr_idle_ms;	/* of silence, or 0 */
	/* The body of a 2xx goes there and is not kept; or NULL. */
	https_data		*hr_data;
	void			*hr_arg;
};

enum https_result {
	HTTPS_ANSWERED,		/* with any status; or hr_data ended it */
	HTTPS_FAILED,		/* ha_why says how */
	HTTPS_HUGE,		/* the answer is longer than permitted */
	HTTPS_LATE		/* the time is over */
};

struct https_answer {
	enum https_result	 ha_result;
	const char		*ha_why;
	long			 ha_status;
	long long		 ha_retry_after_s;	/* 0: not said */
	long long		 ha_date_s;		/* likewise */
	const char		*ha_body;
	size_t			 ha_body_len;
	unsigned int		 ha_close;	/* code of a WebSocket */
};

/*
 * The answer comes later, never from within https_begin(), and with it the
 * call ends.  https_cancel() ends it before, without an answer.
 */
typedef void	 https_done(void *, const struct https_answer *);

struct https_call	*https_begin(struct https_server *,
			    const struct https_request *, https_done *, void *);
void	 https_cancel(struct https_call *);

#endif /* HTTPS_H */
