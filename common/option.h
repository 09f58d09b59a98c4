/* SPDX-License-Identifier: ISC */

/*
 * Options: what a block of egressd.conf(5) may say of a policy, a rule, a
 * decider and other objects.  A row of a table has all there is to know of an
 * option: its word, for which kinds of object it is legal, its values, and
 * which processes are told.  The parser, the printer, the sender and the
 * receiver of a slice go by the row; policy_rows.h and decider_rows.h have
 * the rows of what travels, and the structs unfold from the same rows.
 */

#ifndef OPTION_H
#define OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_type {
	OPTION_END,		/* of a table */
	OPTION_HAND,		/* read and printed by code of its own */
	OPTION_TEXT,
	OPTION_PATH,		/* absolute file name */
	OPTION_URL,
	OPTION_URL_CLEAR,	/* http is checked when the block is whole */
	OPTION_HEADER,		/* name of a header */
	OPTION_LABEL,		/* of RFC 1123 */
	OPTION_LOWER,		/* a word in lower case */
	OPTION_MILLI,		/* decimal from 0 to 2, kept as text */
	OPTION_MS,
	OPTION_BYTES,
	OPTION_COUNT,
	OPTION_ENUM,		/* one of op_words, kept as its place */
	OPTION_YESNO,
	OPTION_FLAG,
	OPTION_WORDS,		/* program and arguments: conf/ only */
	OPTION_VARIABLES,	/* names and values: conf/ only */
	OPTION_PAIRS,		/* keys and values: conf/ only */
	OPTION_NAMES,		/* a list: conf/ only */
	OPTION_CONDITION,	/* of a rule, kept in a list */
};

/* What an option is kept as; those that are missing have code of their own. */
#define OPTION_MEMBER_TEXT(m)		const char *m;
#define OPTION_MEMBER_PATH(m)		const char *m;
#define OPTION_MEMBER_URL_CLEAR(m)	const char *m;
#define OPTION_MEMBER_HEADER(m)		const char *m;
#define OPTION_MEMBER_LOWER(m)		const char *m;
#define OPTION_MEMBER_MILLI(m)		const char *m;
#define OPTION_MEMBER_MS(m)		uint64_t m;
#define OPTION_MEMBER_BYTES(m)		uint64_t m;
#define OPTION_MEMBER_COUNT(m)		uint32_t m;
#define OPTION_MEMBER_ENUM(m)		uint32_t m;
#define OPTION_MEMBER_FLAG(m)		bool m;

struct option {
	const char		*op_word;	/* NULL: not in the file */
	enum option_type	 op_type;
	size_t			 op_slot;	/* offset in the object */
	uint32_t		 op_where;	/* kinds that permit it */
	uint32_t		 op_needed;	/* kinds that demand it */
	uint32_t		 op_told;	/* R_..., who is told */
	uint64_t		 op_min;
	uint64_t		 op_max;
	uint64_t		 op_preset;	/* if it is not given */
	const char *const	*op_words;	/* of an enumeration; of 0 */
	unsigned int		 op_condition;	/* enum cond_kind */
};

#define OPTION_ANY	UINT32_MAX	/* every kind of object */

/* For whoever writes rows: what may stand at the end of one, and units. */
#ifdef OPTION_ROWS
#define RANGE(min, max)	.op_min = (min), .op_max = (max)
#define PRESET(n)	.op_preset = (n)
#define WORDS(list)	.op_words = (list)
#define SEC		UINT64_C(1000)
#define MIN		(60 * SEC)
#define HOUR		(60 * MIN)
#define DAY		(24 * HOUR)
#define KB		UINT64_C(1024)
#define MB		(1024 * KB)
#define GB		(1024 * MB)
#endif

/* option_tab.c: tables end with OPTION_END. */
extern const struct option	 policy_table[];
extern const struct option	 rule_table[];
extern const struct option	 decider_table[];

/* option.c: numbers are all that is neither text nor list. */
bool	 option_is_text(const struct option *);
bool	 option_is_number(const struct option *);
uint64_t option_number(const struct option *, const void *object);
void	 option_set_number(const struct option *, void *object, uint64_t);
const char **option_text(const struct option *, void *object);
bool	 option_in_range(const struct option *, uint64_t);
void	 option_presets(const struct option *, void *object);
/* Texts that were received. */
void	 option_free(const struct option *, void *object);
/* Thousandths of OPTION_MILLI, from 0 to 2000; -1 if it is none. */
int	 option_milli(const char *);

/* option_wire.c: CONF_OPTION, there and back. */
enum option_object {
	OPTION_OF_POLICY,
	OPTION_OF_RULE,
	OPTION_OF_DECIDER,
	OPTION_OBJECT_MAX
};

struct ipc;
struct msg_conf_option;

void	 option_send(struct ipc *, enum option_object, void *object);
/* The receiver has checked for which object it is. */
int	 option_recv(struct ipc *, const struct msg_conf_option *,
	    void *object);

#endif /* OPTION_H */
