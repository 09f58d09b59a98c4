/* SPDX-License-Identifier: ISC */

/*
 * The Status object of the API, which says how a command in a pod has ended
 * and why the API refuses something.  It is a stranger's: read strictly, with
 * texts that are short and printable afterwards.
 */

#ifndef STATUS_H
#define STATUS_H

#include <stddef.h>

#define STATUS_LEN	(64 * 1024)	/* bytes of one, at most */
#define STATUS_TEXT_LEN	511

enum status_kind {
	STATUS_SUCCESS,
	STATUS_EXIT,		/* with st_code, which is not 0 */
	STATUS_FAILURE		/* of the API, not of the command */
};

struct status {
	enum status_kind	 st_kind;
	int			 st_code;
	char			 st_reason[64];
	char			 st_message[STATUS_TEXT_LEN + 1];
};

/* -1 for what is no Status, or one that does not make sense. */
int	 status_parse(const char *, size_t, struct status *);

/* Any text as printable ASCII, cut to size - 1 bytes. */
void	 status_text(const char *, size_t, char *, size_t);

#endif /* STATUS_H */
