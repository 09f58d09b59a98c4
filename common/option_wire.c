/* SPDX-License-Identifier: ISC */

/*
 * CONF_OPTION, there and back.  The parent sends what differs from the preset
 * to those who are told of it; the receiver trusts the parent, but a value
 * that no configuration could have is a bad message.
 */

#include <stdlib.h>
#include <string.h>

#include "ipc.h"
#include "log.h"
#include "option.h"

static const struct {
	const char		*name;
	const struct option	*table;
} objects[OPTION_OBJECT_MAX] = {
	[OPTION_OF_POLICY] = { "policy", policy_table },
	[OPTION_OF_RULE] = { "rule", rule_table },
	[OPTION_OF_DECIDER] = { "decider", decider_table },
};

void
option_send(struct ipc *ip, enum option_object of, void *object)
{
	const struct option	*table = objects[of].table, *op;
	const char		*text;
	uint64_t		 n;

	for (op = table; op->op_type != OPTION_END; op++) {
		if (!(op->op_told & 1U << ip->ip_peer))
			continue;
		text = NULL;
		n = op->op_preset;
		if (option_is_text(op))
			text = *option_text(op, object);
		else
			n = option_number(op, object);
		if (text != NULL || n != op->op_preset)
			ipc_send(ip, -1, CONF_OPTION, conf_option, .of = of,
			    .row = op - table, .number = n, .text = text);
	}
}

/* The row of a message that is for this process, or NULL. */
static const struct option *
option_row(const struct ipc *ip, const struct msg_conf_option *mo)
{
	const struct option	*op = objects[mo->of].table;
	unsigned int		 row;

	for (row = 0; op->op_type != OPTION_END; op++, row++)
		if (row == mo->row)
			return op->op_told & 1U << ip->ip_me ? op : NULL;
	return NULL;
}

int
option_recv(struct ipc *ip, const struct msg_conf_option *mo, void *object)
{
	const struct option	*op;
	const char		**text;

	if ((op = option_row(ip, mo)) == NULL)
		return ipc_bad(ip, "option %u of a %s", mo->row,
		    objects[mo->of].name);
	if (option_is_text(op)) {
		text = option_text(op, object);
		if (*text != NULL || (op->op_type == OPTION_MILLI &&
		    option_milli(mo->text) == -1))
			return ipc_bad(ip, "%s of a %s: \"%s\"", op->op_word,
			    objects[mo->of].name, mo->text);
		if ((*text = strdup(mo->text)) == NULL)
			fatal("%s", __func__);
		return 0;
	}
	if (!option_in_range(op, mo->number))
		return ipc_bad(ip, "option %u of a %s: %llu", mo->row,
		    objects[mo->of].name, (unsigned long long)mo->number);
	option_set_number(op, object, mo->number);
	return 0;
}
