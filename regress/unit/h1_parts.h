/* SPDX-License-Identifier: ISC */

/* Parts of heads out of strings, for tests. */

#ifndef H1_PARTS_H
#define H1_PARTS_H

#include <string.h>

#include "../../tlsengine/http/h1.h"

static inline struct h1_str
str(const char *s)
{
	return (struct h1_str){ s, strlen(s) };
}

static inline struct h1_field
field(const char *name, const char *value)
{
	return (struct h1_field){ .hf_name = name, .hf_nlen = strlen(name),
	    .hf_value = value, .hf_vlen = strlen(value) };
}

#endif /* H1_PARTS_H */
