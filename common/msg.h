/* SPDX-License-Identifier: ISC */

/*
 * What msgtab.h unfolds to: a struct for each list of fields, a pair of
 * functions for each struct, a description for each row.
 */

#ifndef MSG_H
#define MSG_H

#include <stddef.h>
#include <stdint.h>

#include "imsg.h"
#include "msgtab.h"

struct msg_bytes {
	const void	*data;
	size_t		 len;
};

#define U8(n)		uint8_t n;
#define U16(n)		uint16_t n;
#define U32(n)		uint32_t n;
#define U64(n)		uint64_t n;
#define STR(n, max)	const char *n;
#define BYTES(n, max)	struct msg_bytes n;
#define FIELDS(x, ...)							\
struct msg_##x {							\
	__VA_ARGS__							\
};									\
int	 msg_##x##_put(struct ibuf *, const struct msg_##x *);		\
int	 msg_##x##_get(struct ibuf *, struct msg_##x *);
#include "msg_rows.h"

/* A received message.  Text and bytes lie in the channel's read buffer. */
union msg {
#define FIELDS(x, ...) struct msg_##x x;
#include "msg_rows.h"
};

struct msg_desc {
	const char	*md_name;
	uint32_t	 md_type;
	uint32_t	 md_from;
	uint32_t	 md_to;
	uint32_t	 md_states;
	enum msg_fd	 md_fd;
	size_t		 md_min;
	size_t		 md_max;
	int		(*md_get)(struct ibuf *, union msg *);
	int		(*md_put)(struct ibuf *, const union msg *);
};

/* Between whom a message goes, and where it is told what is wrong with it. */
struct msg_way {
	enum role	 mw_from;
	enum role	 mw_to;
	uint32_t	 mw_state;	/* one of S_* */
	char		*mw_why;
	size_t		 mw_size;
};

/* A program of another version may have another table. */
extern const char	 msg_version[];

/* NULL for a number that is no message. */
const struct msg_desc	*msg_find(uint32_t);
/*
 * Check and decode; NULL and why if the sender is at fault.  Also with
 * FD_MUST imsg_get_fd() may have none, see enum msg_fd.
 */
const struct msg_desc	*msg_take(const struct msg_way *, struct imsg *,
			    union msg *);

#endif /* MSG_H */
