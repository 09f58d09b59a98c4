/*
 * Copyright (c) 2026 The egressd authors
 *
 * Permission to use, copy, modify, and distribute this software for any
 * purpose with or without fee is hereby granted, provided that the above
 * copyright notice and this permission notice appear in all copies.
 *
 * THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES
 * WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF
 * MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR
 * ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES
 * WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN
 * ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF
 * OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.
 */

/* Parts of heads out of strings, for tests. */

#ifndef H1_PARTS_H
#define H1_PARTS_H

#include <string.h>

#include "../../tlsengine/h1.h"

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
