/* SPDX-License-Identifier: ISC */

/*
 * What the parts of the HTTPS client know of each other.
 */

#ifndef HTTPS_PRIVATE_H
#define HTTPS_PRIVATE_H

#include <sys/queue.h>

#include <stdbool.h>

#include <event2/event_struct.h>

#include <curl/curl.h>

#include "https/https.h"
#include "role.h"

TAILQ_HEAD(https_calls, https_call);

struct https_server {
	unsigned int		 sv_refs;
	char			*sv_url;
	char			*sv_origin;	/* the URL without its path */
	char			 sv_host[HOST_LEN + 1];
	uint16_t		 sv_port;
	bool			 sv_tls;
	struct https_trust	*sv_trust;
	bool			 sv_insecure;
	char			*sv_cert;	/* PEM, or NULL */
	size_t			 sv_cert_len;
	struct secret		*sv_key;
	/* With a name of its own, which the URLs then have as their host. */
	char			*sv_host_line;	/* "Host: ..." */
	struct curl_slist	*sv_connect_to;
	char			*sv_proxy;	/* its URL, or NULL */
	/* The peer that is dialled: the host, or the proxy. */
	char			 sv_dial[HOST_LEN + 1];
	uint16_t		 sv_dial_port;
	/* Names are asked for again when what is known is old. */
	bool			 sv_named;	/* it is no address */
	bool			 sv_asking;
	char			*sv_known;	/* for CURLOPT_RESOLVE */
	uint64_t		 sv_until_ms;
	struct https_calls	 sv_waiting;
	bool			 sv_afresh;	/* by a new connection */
	bool			 sv_shares;	/* one for all: HTTP/2 */
};

struct https_call {
	TAILQ_ENTRY(https_call)	 ca_entry;	/* sv_waiting, or due */
	struct https_server	*ca_server;
	struct https_request	 ca_request;
	https_done		*ca_done;
	void			*ca_arg;
	struct event		 ca_event;	/* late, or failed at once */
	uint64_t		 ca_until_ms;
	bool			 ca_waiting;	/* for an address */
	bool			 ca_due;	/* ca_body is to be handed on */
	CURL			*ca_easy;
	char			*ca_url;	/* or NULL: the server's */
	struct curl_slist	*ca_headers;	/* an array */
	struct curl_slist	*ca_resolve;
	char			*ca_body;	/* of the answer */
	size_t			 ca_body_len;
	size_t			 ca_body_size;	/* bytes available */
	size_t			 ca_head;	/* bytes of it seen */
	bool			 ca_huge;
	/* A connection is all that it is for, and this takes it. */
	void			(*ca_connected)(struct https_call *);
	char			 ca_why[CURL_ERROR_SIZE + HOST_LEN];
};

/* call.c */
struct https_call *call_begin(struct https_server *,
	    const struct https_request *, https_done *, void *,
	    void (*)(struct https_call *));
void	 calls_open(int);
void	 call_send(struct https_call *);
void	 call_end(struct https_call *, const struct https_answer *);
void	 call_fail(struct https_call *, const char *, ...)
	    __attribute__((__format__(__printf__, 2, 3)));

/* transport.c */
CURLcode transport_set(struct https_call *);

/* server.c */
void	 server_dial(struct https_server *, const char *, uint16_t);
int	 server_part(CURLU *, CURLUPart, char *, size_t);
int	 server_host(CURLU *, char [HOST_LEN + 1], bool *);
int	 server_urls(struct https_server *, CURLU *);
void	 server_find(struct https_call *);
void	 server_forget(struct https_call *);

/* trust.c */
CURLcode trust_set(struct https_trust *, CURL *, bool);

#endif /* HTTPS_PRIVATE_H */
