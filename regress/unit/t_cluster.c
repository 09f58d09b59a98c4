/* SPDX-License-Identifier: ISC */

/*
 * k8sd's credentials: the line that a call gets, and how one that does not last
 * is renewed.  The test is the parent, at the other end of the channel.
 */

#include <sys/socket.h>

#include <fcntl.h>
#include <unistd.h>

#include "k8sd/credential.h"
#include "k8sd/k8sd.h"
#include "test.h"

#define PASSES	2000	/* of the loop, until something has happened */

static struct ipc	*parent;	/* our end */
static struct msg_open_ask asked;
static char		 asked_name[NAME_LEN + 1];
static int		 nasked, ndone;
static int		 nready;
static char		 ready_why[256];
static struct cluster	*subject;

static int
on_ask(struct ipc *ip, const union msg *m)
{
	(void)ip;
	asked = m->open_ask;
	strlcpy(asked_name, m->open_ask.object, sizeof(asked_name));
	nasked++;
	return 0;
}

static int
on_done(struct ipc *ip, const union msg *m)
{
	(void)ip, (void)m;
	ndone++;
	return 0;
}

static void
on_gone(struct ipc *ip, const char *why)
{
	(void)ip;
	test_end(TEST_FAILED, "the channel ended: %s", why == NULL ? "" : why);
}

static const ipc_handler	 child_handlers[MSG_MAX] = { OPENING_HANDLERS };
static const ipc_handler	 our_handlers[MSG_MAX] = {
	[MSG_OPEN_ASK] = on_ask,
	[MSG_OPEN_DONE] = on_done,
};

static void
begin(void)
{
	int	 sv[2];

	if (child_base == NULL)
		CHECK((child_base = event_base_new()) != NULL);
	ipc_free(parent);
	ipc_free(child_parent);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	parent = ipc_new(child_base, sv[0], ROLE_PARENT, ROLE_K8SD, "k8sd",
	    our_handlers);
	child_parent = ipc_new(child_base, sv[1], ROLE_K8SD, ROLE_PARENT,
	    "parent", child_handlers);
	parent->ip_state = child_parent->ip_state = S_RUN;
	parent->ip_gone = child_parent->ip_gone = on_gone;
	nasked = ndone = nready = 0;
	ready_why[0] = '\0';
}

static void
turn_until(const int *count, int wanted)
{
	int	 i;

	for (i = 0; i < PASSES && *count < wanted; i++) {
		CHECK(event_base_loop(child_base, EVLOOP_NONBLOCK) != -1);
		if (*count < wanted)
			usleep(100);
	}
	CHECK_INT(*count, wanted);
}

static struct secret *
secret_of(const char *text)
{
	struct secret	*sc = secret_alloc(strlen(text));

	CHECK(sc != NULL);
	memcpy(sc->sc_data, text, strlen(text));
	sc->sc_len = strlen(text);
	return sc;
}

static struct cluster *
cluster_of(enum cluster_auth auth, enum file_kind what, const char *text,
    const char *server)
{
	struct msg_conf_cluster	 mc = {
		.name = "one", .server = server, .space = "", .tls_name = "",
		.proxy = "", .user = "me", .auth = auth
	};

	begin();
	subject = cluster_new(&mc);
	if (text != NULL)
		subject->kc_files[what] = secret_of(text);
	return subject;
}

static struct cluster *
prepared(enum cluster_auth auth, enum file_kind what, const char *text)
{
	struct cluster	*kc = cluster_of(auth, what, text, "https://192.0.2.1");
	char		 why[256] = "";

	if (cluster_prepare(kc, why, sizeof(why)) == -1)
		test_end(TEST_FAILED, "%s", why);
	return kc;
}

static void
on_ready(void *arg, const char *why)
{
	(void)arg;
	nready++;
	strlcpy(ready_why, why == NULL ? "" : why, sizeof(ready_why));
}

/* The parent's answer: a descriptor from which this can be read. */
static void
give(const char *text)
{
	int	 sv[2];

	turn_until(&nasked, 1);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	CHECK_INT(write(sv[0], text, strlen(text)), (ssize_t)strlen(text));
	close(sv[0]);
	ipc_send(parent, sv[1], OPENED, cookie, asked.cookie);
}

static void
plugin(const char *text, const char *ended)
{
	give(text);
	ipc_send(parent, -1, OPEN_ENDED, open_ended, .cookie = asked.cookie,
	    .why = ended);
	turn_until(&nready, 1);
}

#define CREDENTIAL(status)						\
	"{\"apiVersion\":\"client.authentication.k8s.io/v1\","		\
	"\"kind\":\"ExecCredential\",\"status\":{" status "}}"

TEST(token)
{
	struct cluster	*kc = prepared(AUTH_TOKEN, FILE_TOKEN, "t0ken");

	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer t0ken");
	/* There is nothing to renew. */
	cluster_refused(kc);
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer t0ken");
	cluster_wait(kc, on_ready, NULL);
	CHECK_INT(nready, 0);
	turn_until(&nready, 1);
	CHECK_STR(ready_why, "");
	CHECK_INT(nasked, 0);
	cluster_unref(kc);
}

TEST(basic)
{
	struct cluster	*kc = prepared(AUTH_BASIC, FILE_PASSWORD, "pw");

	CHECK_STR(cluster_authorization(kc),
	    "Authorization: Basic bWU6cHc=");
	cluster_unref(kc);
}

TEST(none)
{
	struct cluster	*kc = prepared(AUTH_NONE, FILE_TOKEN, NULL);

	CHECK_STR(cluster_authorization(kc), "");
	CHECK_STR(cluster_namespace(kc), "default");
	CHECK_STR(cluster_path(kc), "");
	CHECK(cluster_server(kc) != NULL);
	cluster_unref(kc);
}

TEST(path_of_server)
{
	struct cluster	*kc = cluster_of(AUTH_NONE, FILE_TOKEN, NULL,
	    "https://k.test/k8s/clusters/c-1/");

	CHECK_STR(cluster_path(kc), "/k8s/clusters/c-1");
	cluster_unref(kc);
}

TEST(refused)
{
	static const struct {
		enum cluster_auth	 auth;
		enum file_kind		 what;
		const char		*text, *server, *why;
	} rows[] = {
		{ AUTH_TOKEN, FILE_TOKEN, "a\nX-Evil: b", "https://192.0.2.1",
		    "the token is not one line" },
		{ AUTH_TOKEN, FILE_TOKEN, NULL, "https://192.0.2.1",
		    "the token is not one line" },
		{ AUTH_NONE, FILE_TOKEN, NULL, "https://",
		    "the server's URL cannot be used" },
		{ AUTH_NONE, FILE_KEY, "x", "https://192.0.2.1",
		    "certificate and key go together" },
	};
	struct cluster	*kc;
	char		 why[256];
	size_t		 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		kc = cluster_of(rows[i].auth, rows[i].what, rows[i].text,
		    rows[i].server);
		CHECK_INT(cluster_prepare(kc, why, sizeof(why)), -1);
		if (strstr(why, rows[i].why) == NULL)
			test_end(TEST_FAILED, "%s", why);
		CHECK(strstr(why, "Evil") == NULL);
		cluster_unref(kc);
	}
}

TEST(file_after_401)
{
	struct cluster	*kc = prepared(AUTH_TOKEN_FILE, FILE_TOKEN, "old");

	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer old");
	CHECK_INT(nasked, 0);
	cluster_refused(kc);
	CHECK(cluster_authorization(kc) == NULL);
	cluster_wait(kc, on_ready, NULL);
	give("new\n");
	CHECK_INT(asked.kind, OPEN_CLUSTER_TOKEN);
	CHECK_STR(asked_name, "one");
	turn_until(&nready, 1);
	CHECK_STR(ready_why, "");
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer new");
	turn_until(&ndone, 1);
	CHECK_INT(nasked, 1);
	cluster_unref(kc);
}

TEST(file_of_old_age)
{
	struct cluster	*kc = prepared(AUTH_TOKEN_FILE, FILE_TOKEN, "old");

	/* It is used while it is looked at. */
	kc->kc_since_ms -= 61 * 1000;
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer old");
	give("new");
	turn_until(&ndone, 1);
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer new");
	kc->kc_since_ms -= 61 * 1000;
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer new");
	turn_until(&nasked, 2);
	ipc_send(parent, -1, OPEN_FAILED, open_ended, .cookie = asked.cookie,
	    .why = "gone");
	turn_until(&ndone, 2);
	/* What cannot be read now may still be good. */
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer new");
	cluster_unref(kc);
}

TEST(failure_is_not_repeated_at_once)
{
	struct cluster	*kc = prepared(AUTH_PLUGIN, FILE_TOKEN, NULL);

	CHECK(cluster_authorization(kc) == NULL);
	cluster_wait(kc, on_ready, NULL);
	turn_until(&nasked, 1);
	CHECK_INT(asked.kind, OPEN_CLUSTER_PLUGIN);
	ipc_send(parent, -1, OPEN_FAILED, open_ended, .cookie = asked.cookie,
	    .why = "no such file");
	turn_until(&nready, 1);
	CHECK_STR(ready_why, "credential plugin: no such file");
	CHECK(cluster_authorization(kc) == NULL);
	cluster_wait(kc, on_ready, NULL);
	turn_until(&nready, 2);
	CHECK_STR(ready_why, "credential plugin: no such file");
	CHECK_INT(nasked, 1);
	cluster_unref(kc);
}

TEST(plugin_with_expiry)
{
	struct cluster	*kc = prepared(AUTH_PLUGIN, FILE_TOKEN, NULL);

	CHECK(cluster_authorization(kc) == NULL);
	cluster_wait(kc, on_ready, NULL);
	plugin(CREDENTIAL("\"token\":\"t1\",\"expirationTimestamp\":"
	    "\"2999-01-01T00:00:00Z\""), "");
	CHECK_STR(ready_why, "");
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer t1");
	CHECK(kc->kc_until_s == INT64_C(32472144000) - 10);
	/* Its time has come. */
	kc->kc_until_s = 1;
	nasked = nready = 0;
	CHECK(cluster_authorization(kc) == NULL);
	cluster_wait(kc, on_ready, NULL);
	plugin(CREDENTIAL("\"token\":\"t2\""), "");
	CHECK_STR(cluster_authorization(kc), "Authorization: Bearer t2");
	CHECK(kc->kc_until_s == 0);
	cluster_unref(kc);
}

TEST(plugins_that_fail)
{
	static const struct {
		const char	*text, *ended, *why;
	} rows[] = {
		{ "", "", "its output is no JSON object" },
		{ "[]", "", "its output is no JSON object" },
		{ "{}", "", "its output is no ExecCredential" },
		{ "{\"kind\":\"ExecCredential\",\"apiVersion\":\"v9\"}", "",
		    "its output is neither of" },
		{ CREDENTIAL(""), "", "neither a token nor a certificate" },
		{ CREDENTIAL("\"token\":7"), "", "is no string" },
		{ CREDENTIAL("\"token\":\"a b\""), "", "not one line of" },
		{ CREDENTIAL("\"clientKeyData\":\"a\""), "",
		    "without the other" },
		{ CREDENTIAL("\"clientKeyData\":\"a\","
		    "\"clientCertificateData\":\"b\""), "", "are no pair" },
		{ CREDENTIAL("\"token\":\"s3cret\",\"expirationTimestamp\":"
		    "\"2001-01-01T00:00:00Z\""), "", "has expired already" },
		{ CREDENTIAL("\"token\":\"s3cret\",\"expirationTimestamp\":"
		    "\"tomorrow\""), "", "is no time" },
		{ CREDENTIAL("\"token\":\"s3cret\""), "it exited with 1",
		    "it exited with 1" },
	};
	struct cluster	*kc;
	size_t		 i;

	for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		kc = prepared(AUTH_PLUGIN, FILE_TOKEN, NULL);
		CHECK(cluster_authorization(kc) == NULL);
		cluster_wait(kc, on_ready, NULL);
		plugin(rows[i].text, rows[i].ended);
		if (strstr(ready_why, rows[i].why) == NULL)
			test_end(TEST_FAILED, "row %zu: %s", i, ready_why);
		CHECK(strstr(ready_why, "s3cret") == NULL);
		CHECK(cluster_authorization(kc) == NULL);
		cluster_unref(kc);
	}
}

TEST(plugin_without_end)
{
	struct cluster	*kc = prepared(AUTH_PLUGIN, FILE_TOKEN, NULL);
	static char	 much[32 * 1024];
	int		 sv[2], i;

	memset(much, ' ', sizeof(much));
	CHECK(cluster_authorization(kc) == NULL);
	cluster_wait(kc, on_ready, NULL);
	turn_until(&nasked, 1);
	CHECK_INT(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	ipc_send(parent, sv[1], OPENED, cookie, asked.cookie);
	for (i = 0; i < PASSES && nready == 0; i++) {
		(void)send(sv[0], much, sizeof(much), MSG_DONTWAIT |
		    MSG_NOSIGNAL);
		CHECK(event_base_loop(child_base, EVLOOP_NONBLOCK) != -1);
	}
	close(sv[0]);
	CHECK_STR(ready_why, "credential plugin: it wrote more than 64 KiB");
	turn_until(&ndone, 1);
	cluster_unref(kc);
}

static void
on_ready_cancels(void *arg, const char *why)
{
	on_ready(arg, why);
	cluster_wait_cancel(subject, on_ready, NULL);
	cluster_wait(subject, on_ready, &nready);
}

TEST(waiters_and_their_doings)
{
	struct cluster	*kc = prepared(AUTH_TOKEN_FILE, FILE_TOKEN, "old");

	cluster_refused(kc);
	cluster_wait(kc, on_ready_cancels, NULL);
	cluster_wait(kc, on_ready, NULL);
	give("new");
	/* The second was cancelled; the new one is told in its turn. */
	turn_until(&nready, 2);
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	CHECK_INT(nready, 2);
	cluster_unref(kc);
}

/* A call that was out when the cluster went keeps it, and loses nothing. */
TEST(gone_while_renewed)
{
	struct cluster	*kc = prepared(AUTH_PLUGIN, FILE_TOKEN, NULL);

	CHECK(cluster_authorization(kc) == NULL);
	turn_until(&nasked, 1);
	cluster_unref(kc);
	turn_until(&ndone, 1);
	ipc_send(parent, -1, OPEN_ENDED, open_ended, .cookie = asked.cookie,
	    .why = "killed");
	nready = 0;
	event_base_loop(child_base, EVLOOP_NONBLOCK);
	CHECK_INT(nready, 0);
}

TEST_MAIN("cluster")
