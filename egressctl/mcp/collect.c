/* SPDX-License-Identifier: ISC */

/*
 * egressctl mcp: output of any length, of which the beginning and the end are
 * kept.
 */

#include <stdlib.h>
#include <string.h>

#include "mcp.h"

/* Nothing is allocated before the first byte. */
void
collect_init(struct collect *co, size_t head, size_t tail)
{
	co->co_head = head;
	co->co_tail = tail;
}

void
collect_free(struct collect *co)
{
	free(co->co_buf);
}

void
collect_add(struct collect *co, const char *data, size_t len)
{
	size_t	n, at;

	if (co->co_buf == NULL)
		co->co_buf = must(malloc(co->co_head + co->co_tail + 1));
	for (; len > 0; data += n, len -= n, co->co_total += n) {
		if (co->co_total < co->co_head) {
			at = (size_t)co->co_total;
			n = co->co_head - at;
		} else if (co->co_tail == 0) {
			co->co_total += len;
			return;
		} else {
			at = (size_t)((co->co_total - co->co_head) %
			    co->co_tail);
			n = co->co_tail - at;
			at += co->co_head;
		}
		n = n < len ? n : len;
		memcpy(co->co_buf + at, data, n);
	}
}

/* The end that is kept, in order, to where there is room for it. */
static size_t
copy_tail(const struct collect *co, char *to)
{
	const char	*ring = co->co_buf + co->co_head;
	uint64_t	 n = co->co_total - co->co_head;
	size_t		 at;

	if (n <= co->co_tail) {
		memcpy(to, ring, (size_t)n);
		return (size_t)n;
	}
	if (co->co_tail == 0)
		return 0;
	at = (size_t)(n % co->co_tail);
	memcpy(to, ring + at, co->co_tail - at);
	memcpy(to + co->co_tail - at, ring, at);
	return co->co_tail;
}

/* All that is kept, for the caller to free. */
char *
collect_all(const struct collect *co, size_t *len)
{
	char	*all = must(malloc(co->co_head + co->co_tail + 1));

	*len = co->co_total < co->co_head ? (size_t)co->co_total : co->co_head;
	if (*len > 0)
		memcpy(all, co->co_buf, *len);
	if (co->co_total > co->co_head)
		*len += copy_tail(co, all + *len);
	all[*len] = '\0';
	return all;
}

/* The same as text, with a line of ours where something is missing. */
char *
collect_text(const struct collect *co, uint64_t *missing)
{
	char	*all, *head, *tail, *text;
	size_t	 len, from;

	all = collect_all(co, &len);
	*missing = co->co_total - len;
	if (*missing == 0) {
		text = text_of(all, len);
		free(all);
		return text;
	}
	/* The cuts may be in the middle of a character. */
	for (from = co->co_head; from < len && from < co->co_head + 3 &&
	    (all[from] & 0xc0) == 0x80; from++)
		continue;
	head = text_of(all, co->co_head);
	tail = text_of(all + from, len - from);
	if (asprintf(&text, "%s\n[egressd: %llu bytes are left out here]\n%s",
	    head, (unsigned long long)*missing, tail) == -1)
		must(NULL);
	free(head);
	free(tail);
	free(all);
	return text;
}
