/* SPDX-License-Identifier: ISC */

/*
 * The tables of options, unfolded from policy_rows.h and decider_rows.h, for
 * whoever reads, prints, sends or is told them.
 */

#define OPTION_ROWS

#include "decider.h"
#include "policy.h"
#include "role.h"

const struct option policy_table[] = {
#define POLICY_OPTION(type, member, word, told, ...)			\
	{ .op_word = word, .op_type = OPTION_##type,			\
	    .op_slot = offsetof(struct policy_options, po_##member),	\
	    .op_where = OPTION_ANY, .op_told = told, __VA_ARGS__ },
#define POLICY_HAND(word)						\
	{ .op_word = word, .op_type = OPTION_HAND, .op_where = OPTION_ANY },
#include "policy_rows.h"
	{ .op_type = OPTION_END }
};

const struct option rule_table[] = {
#define RULE_OPTION(type, member, word, where, ...)			\
	{ .op_word = word, .op_type = OPTION_##type,			\
	    .op_slot = offsetof(struct rule, ru_##member),		\
	    .op_where = where, .op_told = R_POLICYD, __VA_ARGS__ },
#define RULE_CONDITION(kind, word, where, values)			\
	{ .op_word = word, .op_type = OPTION_CONDITION,			\
	    .op_where = where, .op_condition = COND_##kind },
#include "policy_rows.h"
	{ .op_type = OPTION_END }
};

const struct option decider_table[] = {
#define DECIDER_OPTION(type, member, word, where, needed, told, ...)	\
	{ .op_word = word, .op_type = OPTION_##type,			\
	    .op_slot = offsetof(struct decider_options, do_##member),	\
	    .op_where = where, .op_needed = needed, .op_told = told,	\
	    __VA_ARGS__ },
#define DECIDER_HAND(word, where, needed)				\
	{ .op_word = word, .op_type = OPTION_HAND, .op_where = where,	\
	    .op_needed = needed },
#include "decider_rows.h"
	{ .op_type = OPTION_END }
};
