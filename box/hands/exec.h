/* SPDX-License-Identifier: ISC */

/*
 * What the files of the operation exec share, see op_exec.c.
 */

#ifndef EXEC_H
#define EXEC_H

#include "op.h"

/* Output of the command: a pipe, or the terminal. */
struct stream {
	struct request	*sm_request;
	enum frame_kind	 sm_kind;
	int		 sm_fd;
	struct watch	*sm_watch;
	size_t		 sm_left;	/* bytes that are still wanted */
	int		 sm_done;	/* none are */
	int		 sm_closed;	/* nobody can write any more */
};

struct op_exec {
	const char	*ex_command;
	const struct jsonr *ex_argv;
	const char	*ex_cwd;
	const struct jsonr *ex_env;
	int64_t		 ex_timeout;
	int		 ex_stdin;
	const struct jsonr *ex_tty;
	int		 ex_merge;
	int64_t		 ex_rows;
	int64_t		 ex_columns;
	char		**ex_words;	/* of the command */
	char		**ex_environ;
	int		 ex_channel;	/* to the supervisor */
	struct watch	*ex_watch;
	struct stream	 ex_out;
	struct stream	 ex_err;
	struct feed	 ex_feed;
	int		 ex_input;	/* what is fed, or -1 */
	int		 ex_master;	/* it is a terminal, as is the output */
	int		 ex_ended;
	int		 ex_status;
	const char	*ex_why;	/* it was killed, or NULL */
};

/* op_exec.c */
void	 stream_open(struct stream *, struct request *, enum frame_kind, int);

/* exec_spawn.c */
int	 exec_check_tty(struct request *);
int	 exec_spawn(struct request *, int);
void	 exec_note(struct request *, const struct jsonr *);

#endif /* EXEC_H */
