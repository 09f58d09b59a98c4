/* SPDX-License-Identifier: ISC */

/*
 * The recorder runs this: records of gates in pods, as podd passes them on,
 * under numbers and in the chain of ours.  podd hears hostile gates and may
 * fall to one: what it sends is checked again, and a record says whose it is
 * by what controld knew.  The pod has redacted what it sent.
 *
 * A pod keeps a record until it hears that we have written it.  If that word
 * is lost it sends the record again: what we have of it already is not
 * written twice.
 */

#include <sys/tree.h>

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "jsonput.h"
#include "jsonr.h"
#include "log.h"
#include "recorder.h"

#define PODS_MAX	4096	/* that are known; those heard last */
#define HEAD_MAX	8192	/* of a line: all but its members */

_Static_assert(JSONW_ESCAPED(SESSION_LEN + NAME_LEN + 2 * HOST_LEN) +
    LINE_WORDS / 2 <= HEAD_MAX, "what is added to a pod's record has room");

struct told {
	RB_ENTRY(told)		 to_entry;	/* by uid */
	TAILQ_ENTRY(told)	 to_used;	/* the last used first */
	char			 to_uid[NAME_LEN + 1];
	uint32_t		 to_channel;	/* that spoke last */
	uint32_t		 to_spoilt;	/* not heard any more */
	uint64_t		 to_sent;	/* by the channel */
	uint64_t		 to_seq;	/* in our chain */
	uint64_t		 to_written;	/* of these, in the file */
	int			 to_due;	/* the channel hears of it */
};
RB_HEAD(tolds, told);

static struct tolds	 tolds = RB_INITIALIZER(&tolds);
TAILQ_HEAD(told_list, told);
static struct told_list	 used = TAILQ_HEAD_INITIALIZER(used);
static size_t		 ntolds;
static int		 any_due;
static struct ipc	*podd;

/* Members of the record that follows. */
static char		 members[LINE_LEN_MAX];
static size_t		 members_len;

static int
told_cmp(const struct told *a, const struct told *b)
{
	return strcmp(a->to_uid, b->to_uid);
}

RB_PROTOTYPE(tolds, told, to_entry, told_cmp);
RB_GENERATE(tolds, told, to_entry, told_cmp);

static struct told *
told_get(const char *uid)
{
	struct told	 key, *to;

	strlcpy(key.to_uid, uid, sizeof(key.to_uid));
	if ((to = RB_FIND(tolds, &tolds, &key)) != NULL) {
		TAILQ_REMOVE(&used, to, to_used);
		TAILQ_INSERT_HEAD(&used, to, to_used);
		return to;
	}
	if (ntolds == PODS_MAX) {
		to = TAILQ_LAST(&used, told_list);
		TAILQ_REMOVE(&used, to, to_used);
		RB_REMOVE(tolds, &tolds, to);
		memset(to, 0, sizeof(*to));
	} else if ((to = calloc(1, sizeof(*to))) == NULL)
		fatal("%s", __func__);
	else
		ntolds++;
	strlcpy(to->to_uid, uid, sizeof(to->to_uid));
	RB_INSERT(tolds, &tolds, to);
	TAILQ_INSERT_HEAD(&used, to, to_used);
	return to;
}

/* ---- what podd hears ----------------------------------------------------- */

static void
tell_recorded(struct told *to)
{
	uint64_t	 seq = to->to_seq < to->to_sent ? to->to_seq :
			    to->to_sent;

	to->to_due = 0;
	to->to_written = to->to_seq;
	if (podd != NULL)
		ipc_send(podd, -1, POD_RECORDED, pod_recorded,
		    .channel = to->to_channel, .origin_seq = seq);
}

/* Nothing more of that channel is taken: something before it is missing. */
static void
tell_unrecorded(struct told *to, uint32_t channel)
{
	to->to_due = 0;
	to->to_spoilt = channel;
	to->to_seq = to->to_written;
	if (podd != NULL)
		ipc_send(podd, -1, POD_UNRECORDED, pod_unrecorded,
		    .channel = channel);
}

/* Lines that were collected for the audit file are in it, or lost. */
void
pods_written(int written)
{
	struct told	*to;

	if (!any_due)
		return;
	any_due = 0;
	TAILQ_FOREACH(to, &used, to_used)
		if (to->to_due && written)
			tell_recorded(to);
		else if (to->to_due)
			tell_unrecorded(to, to->to_channel);
}

/* ---- a record ------------------------------------------------------------ */

static int
kind_is_pods(uint8_t kind)
{
	return kind <= RECORD_SESSION_ENDED || kind == RECORD_POD_GAP ||
	    kind == RECORD_CONNECTION_REFUSED || kind == RECORD_NAME_ASKED;
}

/* Refusals count as those of a session that an engine of ours holds. */
static void
count_refusal(const struct msg_pod_record *mr, const struct jsonr *jr)
{
	const struct jsonr	*request = jsonr_member(jr, "request"), *host;
	const struct jsonr	*reason = jsonr_member(jr, "reason");

	if ((mr->kind != RECORD_REQUEST_DENIED &&
	    mr->kind != RECORD_CONNECTION_REFUSED) || request == NULL ||
	    (host = jsonr_member(request, "host")) == NULL ||
	    host->jr_type != JSONR_STRING || host->jr_len > HOST_LEN ||
	    reason == NULL || reason->jr_type != JSONR_STRING)
		return;
	refusal_add(mr->session, host->jr_text, reason->jr_text);
}

/* One JSON object on one line, without names that are ours to give. */
static const char *
check_members(const struct msg_pod_record *mr)
{
	static const char *const	 ours[] = { "seq", "kind", "at",
	    "session_id", "prev", "pod", "pod_uid", "node", "origin_seq" };
	struct jsonr			*jr;
	const char			*why = NULL;
	size_t				 i;

	for (i = 0; i < members_len; i++)
		if ((unsigned char)members[i] < ' ')
			return "a control";
	if (members_len > LINE_LEN_MAX - HEAD_MAX)
		return "it is too long";
	if ((jr = jsonr_parse(members, members_len, &why)) == NULL)
		return "no JSON";
	why = jr->jr_type != JSONR_OBJECT || members[0] != '{' ||
	    members[members_len - 1] != '}' ? "no object" : NULL;
	for (i = 0; why == NULL && i < sizeof(ours) / sizeof(ours[0]); i++)
		if (jsonr_member(jr, ours[i]) != NULL)
			why = ours[i];
	if (why == NULL)
		count_refusal(mr, jr);
	jsonr_free(jr);
	return why;
}

static struct jsonw *
begin(const struct msg_pod_record *mr, enum record_kind kind, uint64_t seq)
{
	struct jsonw	*w;

	if ((w = chain_begin(kind, mr->at, mr->session, 0)) == NULL)
		return NULL;
	put_str(w, "pod", mr->pod);
	put_str(w, "pod_uid", mr->uid);
	put_str(w, "node", *mr->node != '\0' ? mr->node : NULL);
	put_uint(w, "origin_seq", seq);
	return w;
}

/* Numbers that went elsewhere: to another control host, perhaps. */
static void
write_gap(const struct msg_pod_record *mr, uint64_t first)
{
	struct jsonw	*w;

	w = begin(mr, RECORD_POD_GAP, mr->origin_seq - 1);
	if (w == NULL)
		return;
	put_str(w, "reason", REASON_NUMBERS_MISSING);
	put_uint(w, "lost", mr->origin_seq - first);
	put_uint(w, "first_seq", first);
	put_uint(w, "last_seq", mr->origin_seq - 1);
	chain_end();
}

static void
write_record(struct told *to, const struct msg_pod_record *mr)
{
	struct jsonw	*w;

	if (to->to_channel != mr->channel && to->to_seq != 0 &&
	    mr->origin_seq > to->to_seq + 1 && mr->kind != RECORD_POD_GAP &&
	    !audit_full())
		write_gap(mr, to->to_seq + 1);
	w = audit_full() ? NULL : begin(mr, mr->kind, mr->origin_seq);
	if (w != NULL)
		jsonw_members(w, members + 1, members_len - 2);
	if (*audit_path() != '\0' && (w == NULL || !chain_fits())) {
		tell_unrecorded(to, mr->channel);
		return;
	}
	to->to_channel = mr->channel;
	to->to_sent = to->to_seq = mr->origin_seq;
	to->to_due = any_due = 1;
	if (w != NULL)
		chain_end();
	if (*audit_path() == '\0')
		tell_recorded(to);
}

static int
recorder_podd_pod_members(struct ipc *ip, const union msg *m)
{
	const struct msg_bytes	*mb = &m->pod_members.text;

	if (mb->len > sizeof(members) - members_len)
		return ipc_bad(ip, "a record of a pod that is too long");
	memcpy(members + members_len, mb->data, mb->len);
	members_len += mb->len;
	return 0;
}

static int
recorder_podd_pod_record(struct ipc *ip, const union msg *m)
{
	const struct msg_pod_record	*mr = &m->pod_record;
	struct told			*to;
	const char			*why;

	if (!kind_is_pods(mr->kind) || mr->channel == 0 ||
	    mr->origin_seq == 0 || mr->origin_seq >= SEQ_MAX ||
	    *mr->session == '\0' || *mr->pod == '\0' || *mr->uid == '\0')
		return ipc_bad(ip, "record of a pod: kind %u", mr->kind);
	if ((why = check_members(mr)) != NULL)
		return ipc_bad(ip, "members of a pod's record: %s", why);
	to = told_get(mr->uid);
	if (to->to_spoilt != mr->channel && mr->origin_seq <= to->to_seq) {
		/* The record is ours already, and acknowledged again. */
		to->to_channel = mr->channel;
		to->to_sent = mr->origin_seq;
		if (!to->to_due)
			tell_recorded(to);
	} else if (to->to_spoilt != mr->channel)
		write_record(to, mr);
	members_len = 0;
	return 0;
}

/* The end of the channel to a pod, which controld knows. */
int
recorder_controld_record_pod(struct ipc *ip, const union msg *m)
{
	const struct msg_record_pod	*mr = &m->record_pod;
	struct jsonw			*w;

	if ((mr->kind != RECORD_POD_LOST && mr->kind != RECORD_POD_HOSTILE) ||
	    *mr->session == '\0')
		return ipc_bad(ip, "record of kind %u about a pod", mr->kind);
	w = chain_begin(mr->kind, mr->at, mr->session, 0);
	if (w == NULL)
		return 0;
	put_str(w, "pod", mr->pod);
	put_str(w, "pod_uid", *mr->uid != '\0' ? mr->uid : NULL);
	put_str(w, "node", *mr->node != '\0' ? mr->node : NULL);
	put_str(w, "reason", mr->reason);
	chain_end();
	return 0;
}

const ipc_handler pods_handlers[MSG_MAX] = {
	[MSG_POD_MEMBERS] = recorder_podd_pod_members,
	[MSG_POD_RECORD] = recorder_podd_pod_record,
};

/* The channel to podd, or NULL: it has ended. */
void
pods_channel(struct ipc *ip)
{
	podd = ip;
}
