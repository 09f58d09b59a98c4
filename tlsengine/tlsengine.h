/* SPDX-License-Identifier: ISC */

/*
 * tlsengine: one per session.  It holds that session's keys and reads what
 * the agent and the origins send.  It trusts the parent; policyd's verdicts
 * and the dialer's sockets it takes, everything else it checks.
 *
 *	http/	HTTP/1, HTTP/2 and WebSocket as bytes: no verdicts, no records
 *	tls/	bytes in and out of sockets, the CA and its leaves
 *	dns/	names and the addresses that stand for them
 *	flow/	clients, requests and origins; verdicts and records (flow.h)
 *
 * This header is the process: its settings, channels, CA and listeners.  The
 * first three folders know neither this one nor flow/, but for the files that
 * the process starts them by (ca.c, dns_socket.c, sslmem.c).
 */

#ifndef TLSENGINE_H
#define TLSENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "child.h"
#include "policy.h"
#include "secret.h"
#include "tls/mint.h"

struct settings {
	char		 st_policy[NAME_LEN + 1];
	struct policy_options st_options;
	uint8_t		 st_asks;	/* about connections */
	uint8_t		 st_waits;	/* for TRUST_WRITTEN, at first */
	uint32_t	 st_connections;
	uint64_t	 st_handshake_ms;
	uint64_t	 st_head_ms;
	uint64_t	 st_response_ms;
	uint64_t	 st_idle_ms;
	uint64_t	 st_tunnel_ms;
	uint64_t	 st_total_ms;	/* 0: no end */
};

/* tlsengine.c */
extern struct settings		 settings;
extern uint64_t			 generation;
extern struct ipc		*policyd;
extern struct ipc		*recorder;
extern char			 request_prefix[REQUEST_PREFIX_LEN + 1];
extern const struct sandbox	 tlsengine_sandbox;
void		 set_timer(struct event *, uint64_t);

const struct secret	*trust_bundle(void);

/* ca.c */
extern struct mint		*mint;		/* NULL before a commit */
extern SSL_CTX			*server_ctx;
void		 ca_commit(const struct secret *, const struct secret *);
struct trust_file {
	unsigned char	*tf_data;
	size_t		 tf_len;
};
unsigned char	*trust_java(size_t *);
void		 trust_nss(struct trust_file *, struct trust_file *);

/* sslmem.c */
void		 sslmem_init(void);

/* box.c */
void		 box_attach(int);
void		 box_hear(void);

/* listen.c */
void		 listen_add(enum listen_kind, int);
int		 tlsengine_parent_conf_listen(struct ipc *,
		    const union msg *);
void		 listen_begin(void);
void		 listen_commit(void);
void		 listen_serve(void);
bool		 listen_serves(void);

/* dns_socket.c */
void		 dns_prepare(int);				/* UDP */
void		 dns_read(evutil_socket_t, short, void *);
void		 dns_accept(int);				/* TCP */

/* nflog_socket.c */
void		 nflog_read(evutil_socket_t, short, void *);

#endif /* TLSENGINE_H */
