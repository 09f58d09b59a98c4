/* SPDX-License-Identifier: ISC */

/*
 * What the configuration says of a decider, as the parent has read it and as
 * deciderd is told.  A text that was not given is NULL, a number that was not
 * given 0 or its preset.
 */

#ifndef DECIDER_H
#define DECIDER_H

#include "option.h"
#include "words.h"

/* Kinds of decider that permit or demand a row of decider_rows.h. */
#define D(kind)		(1U << DECIDER_##kind)
#define D_HTTP		(D(AGENT) | D(WEBHOOK))
#define D_ANY		UINT32_MAX

struct decider_options {
#define DECIDER_OPTION(type, member, ...) OPTION_MEMBER_##type(do_##member)
#include "decider_rows.h"
};

#endif /* DECIDER_H */
