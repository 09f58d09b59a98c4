/* SPDX-License-Identifier: ISC */

/*
 * egressctl: the connection to the daemon, a question over it, and what is
 * said when something goes wrong with either.
 */

#ifndef CLIENT_H
#define CLIENT_H

#include <stddef.h>

#include <cjson/cJSON.h>

#define REQUEST_MAX		65536		/* bytes before the newline */
#define ANSWER_MAX		1048576		/* bytes, newline included */
#define ANSWER_TIMEOUT_MS	10000
#define FOREVER			(-1)

struct command;

struct client {
	int		 cl_fd;
	int		 cl_own;	/* of a daemon that we have started */
	int		 cl_answered;	/* at least once */
	const char	*cl_path;
	char		*cl_buf;
	size_t		 cl_size;	/* allocated */
	size_t		 cl_len;	/* received */
	size_t		 cl_used;	/* given out as lines */
};

enum client_result {
	CLIENT_LINE,
	CLIENT_HUNG_UP,		/* the daemon closed between two lines */
	CLIENT_NO_READER,	/* nobody reads our output any more */
	CLIENT_FAILED		/* already explained on stderr */
};

/* client.c */
int	 client_open(struct client *, const char *);
int	 client_try(struct client *, const char *);
void	 client_adopt(struct client *, int, const char *);
int	 client_send(struct client *, const cJSON *, int);
int	 client_has_line(const struct client *);
enum client_result
	 client_line(struct client *, char **, size_t *, int);
void	 client_close(struct client *);

/* exchange.c */
cJSON	*exchange_request(const char *);
cJSON	*exchange_ask(struct client *, cJSON *, int, char **);
cJSON	*exchange_await(struct client *, cJSON *, char **);
cJSON	*exchange_answer(struct client *, char **);
cJSON	*exchange_line(struct client *, char **);

/* explain.c */
void	 explain_connect(const char *, int);
void	 explain_hung_up(const struct client *);
void	 explain_stopped(void);
void	 explain_refusal(const struct command *, const cJSON *);

#endif /* CLIENT_H */
