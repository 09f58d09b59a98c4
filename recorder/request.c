/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: it keeps what engines say of requests until they
 * end.  Engines are hostile; whoever calls has checked that a number is free,
 * that the engine has credit and how long each piece is.
 */

#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "recorder.h"

_Static_assert((REQUEST_SLOTS & (REQUEST_SLOTS - 1)) == 0,
    "the number of a request is masked");

#define SPARE_MAX	256	/* requests whose storage is kept */
#define SPARE_LEN	2048	/* bytes of each of its pieces */

static struct requests	 spares = TAILQ_HEAD_INITIALIZER(spares);
static unsigned int	 nspares;

void
blob_add(struct blob *bl, const void *data, size_t len)
{
	size_t	 size = bl->bl_size > 0 ? bl->bl_size : 256;
	char	*p;

	if (len == 0)
		return;
	if (len > bl->bl_size - bl->bl_len) {
		while (size < bl->bl_len + len)
			size *= 2;
		if ((p = realloc(bl->bl_data, size)) == NULL)
			fatal("%s", __func__);
		bl->bl_data = p;
		bl->bl_size = size;
	}
	memcpy(bl->bl_data + bl->bl_len, data, len);
	bl->bl_len += len;
}

void
blob_set(struct blob *bl, const void *data, size_t len)
{
	bl->bl_len = 0;
	blob_add(bl, data, len);
}

/* Forget the content; with it the storage, unless it is of common size. */
static void
blob_clear(struct blob *bl, size_t keep)
{
	bl->bl_len = 0;
	if (bl->bl_size <= keep)
		return;
	free(bl->bl_data);
	bl->bl_data = NULL;
	bl->bl_size = 0;
}

static void
blobs_clear(struct request *rq, size_t keep)
{
	int	 i;

	blob_clear(&rq->rq_names, keep);
	blob_clear(&rq->rq_text, keep);
	for (i = 0; i < 2; i++) {
		blob_clear(&rq->rq_fields[i], keep);
		blob_clear(&rq->rq_body[i], keep);
	}
}

void
request_set_init(struct request_set *rs)
{
	size_t	 i;

	TAILQ_INIT(&rs->rs_all);
	for (i = 0; i < REQUEST_SLOTS; i++)
		LIST_INIT(&rs->rs_slots[i]);
	rs->rs_count = 0;
}

/*
 * Numbers of a sound engine follow each other.  One that picks them so that
 * they meet in a slot makes us walk as many as it has credit for, no more.
 */
struct request *
request_find(const struct request_set *rs, uint64_t id)
{
	struct request	*rq;

	LIST_FOREACH(rq, &rs->rs_slots[id & (REQUEST_SLOTS - 1)], rq_slot)
		if (rq->rq_id == id)
			return rq;
	return NULL;
}

struct request *
request_new(struct request_set *rs, uint64_t id)
{
	struct request	*rq;

	if ((rq = TAILQ_FIRST(&spares)) != NULL) {
		TAILQ_REMOVE(&spares, rq, rq_entry);
		nspares--;
		memset(rq, 0, offsetof(struct request, rq_text));
		rq->rq_decider[0] = rq->rq_said[0] = '\0';
	} else if ((rq = calloc(1, sizeof(*rq))) == NULL)
		fatal("%s", __func__);
	rq->rq_id = id;
	rq->rq_rule = RULE_NONE;
	TAILQ_INSERT_TAIL(&rs->rs_all, rq, rq_entry);
	LIST_INSERT_HEAD(&rs->rs_slots[id & (REQUEST_SLOTS - 1)], rq, rq_slot);
	rs->rs_count++;
	return rq;
}

void
request_free(struct request_set *rs, struct request *rq)
{
	if (rq == NULL)
		return;
	TAILQ_REMOVE(&rs->rs_all, rq, rq_entry);
	LIST_REMOVE(rq, rq_slot);
	rs->rs_count--;
	if (nspares < SPARE_MAX) {
		blobs_clear(rq, SPARE_LEN);
		TAILQ_INSERT_HEAD(&spares, rq, rq_entry);
		nspares++;
		return;
	}
	blobs_clear(rq, 0);
	free(rq);
}
