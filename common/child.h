/* SPDX-License-Identifier: ISC */

/*
 * What all children have in common: how they start, how they are configured
 * and how they end.  A role fills in struct child and calls child_main().
 */

#ifndef CHILD_H
#define CHILD_H

#include "ipc.h"
#include "log.h"
#include "sandbox.h"

#define CHILD_FD		3	/* the channel to the parent */
#define CHILD_OTHER_VERSION	3	/* its exit status, if it is of one */

struct child {
	enum role		 ch_role;
	const struct sandbox	*ch_sandbox;
	const ipc_handler	*ch_handlers;
	/* Before confinement: load what a library would look for later. */
	void			(*ch_warm)(void);
	/* A side channel: the peer is at the descriptor's other end. */
	int			(*ch_channel)(const struct msg_channel *, int);
	/*
	 * A generation: begin, the slice by way of ch_handlers, then weigh
	 * it (a refusal says why), then either commit or abort.
	 */
	void			(*ch_begin)(uint64_t);
	int			(*ch_weigh)(char *, size_t);
	void			(*ch_commit)(void);
	void			(*ch_abort)(void);
	/* The parent has closed its channel: clean up before exit. */
	void			(*ch_stop)(void);
};

extern struct event_base	*child_base;
extern struct ipc		*child_parent;
extern char		 child_session[SESSION_LEN + 1];	/* engines */

/*
 * A request is known by the life of the daemon, the instance of its engine and
 * a number, with hyphens between: no other has that name, also not after a
 * restart.  This is all of it but the number.
 */
#define REQUEST_PREFIX_LEN	(16 + 1 + 10 + 1)
void		 child_request_prefix(uint32_t,
		    char [REQUEST_PREFIX_LEN + 1]);

int		 child_main(const struct child *, int, char *[]);

/*
 * A channel to a process that the whole daemon shares: when it ends or talks
 * nonsense, so do we.
 */
struct ipc	*child_peer(enum role, int, const ipc_handler *);

/*
 * A channel to an engine.  One that talks nonsense is reported to the parent
 * with child_engine_bad(); what else its end means is the caller's affair.
 */
struct ipc	*child_engine(const struct msg_channel *, int,
		    const ipc_handler *);
void		 child_engine_bad(const struct ipc *, const char *);

/* Of a slice: memory for it, and why ch_weigh refuses it; -1. */
void		*child_alloc(size_t);
int		 child_refuse(char *, size_t, const char *, ...)
		    LOG_FORMAT(3, 4);

/*
 * CONF_FILE: read what the parent has opened into its place among the files
 * of an object.  What cannot be read is a refusal of the generation.
 */
struct secret;
int		 child_read_file(struct ipc *, const union msg *,
		    struct secret **, const char *, char *, size_t);

/* The same for a file that is text and no secret; a NUL is behind it. */
struct text {
	char	*tx_data;
	size_t	 tx_len;
};

int		 child_read_text(struct ipc *, const union msg *,
		    struct text *, size_t, const char *, char *, size_t);

/* Bytes with a NUL behind, of a descriptor that stays; NULL and errno. */
char		*child_read_fd(int, size_t, size_t *);

/* The entries of ch_handlers that are the same everywhere. */
#define CHILD_HANDLERS							\
	[MSG_BOOT] = child_parent_boot,					\
	[MSG_CHANNEL] = child_parent_channel,				\
	[MSG_LOG_LEVEL] = child_parent_log_level,			\
	[MSG_CONF_BEGIN] = child_parent_conf_begin,			\
	[MSG_CONF_END] = child_parent_conf_end,				\
	[MSG_CONF_COMMIT] = child_parent_conf_commit,			\
	[MSG_CONF_ABORT] = child_parent_conf_abort

int	 child_parent_boot(struct ipc *, const union msg *);
int	 child_parent_channel(struct ipc *, const union msg *);
int	 child_parent_log_level(struct ipc *, const union msg *);
int	 child_parent_conf_begin(struct ipc *, const union msg *);
int	 child_parent_conf_end(struct ipc *, const union msg *);
int	 child_parent_conf_commit(struct ipc *, const union msg *);
int	 child_parent_conf_abort(struct ipc *, const union msg *);

#endif /* CHILD_H */
