/* SPDX-License-Identifier: ISC */

/*
 * The exec of k8sd at the command line: standard input is a socket, whose
 * other end is the client's.  The cluster is a stand-in; its credentials are
 * what the options say.
 *
 *	drive exec URL arg=NAMESPACE arg=POD arg=CONTAINER arg=COMMAND ...
 */

#include <err.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/https/https.h"
#include "drive.h"
#include "k8sd/cluster.h"
#include "k8sd/exec.h"

struct cluster {
	struct https_server	*kc_server;
	unsigned int		 kc_asked;
};

/* ---- the stand-in ---- */

struct cluster *
cluster_ref(struct cluster *kc)
{
	return kc;
}

void
cluster_unref(struct cluster *kc)
{
	(void)kc;
}

struct https_server *
cluster_server(struct cluster *kc)
{
	return kc->kc_server;
}

const char *
cluster_path(const struct cluster *kc)
{
	(void)kc;
	return "";
}

/* Each time it is asked, the next of the headers; after the last, that. */
const char *
cluster_authorization(struct cluster *kc)
{
	size_t	 i = kc->kc_asked;

	while (i > 0 && headers[i] == NULL)
		i--;
	return headers[i] != NULL ? headers[i] : "";
}

void
cluster_wait(struct cluster *kc, cluster_ready *ready, void *arg)
{
	(void)kc, (void)ready, (void)arg;
	errx(1, "nobody waits for credentials here");
}

void
cluster_wait_cancel(struct cluster *kc, cluster_ready *ready, void *arg)
{
	(void)kc, (void)ready, (void)arg;
}

void
cluster_refused(struct cluster *kc)
{
	kc->kc_asked++;
}

/* ---- one exec ---- */

static void
on_end(void *arg, const struct exec_end *ee)
{
	static const char *const	 hows[] = {
		[EXEC_EXITED] = "exited",
		[EXEC_LOST] = "lost",
		[EXEC_REFUSED] = "refused"
	};

	(void)arg;
	say_begin();
	say_text("how", hows[ee->how], strlen(hows[ee->how]));
	say_int("code", ee->code);
	say_text("why", ee->why, strlen(ee->why));
	say_text("stderr", ee->stderr_tail, strlen(ee->stderr_tail));
	say_end();
	event_base_loopbreak(child_base);
}

void
drive_exec(struct https_server *server)
{
	static struct cluster	 kc;
	struct exec_request	 er;

	if (arguments < 4)
		errx(1, "namespace, pod, container and command are missing");
	kc.kc_server = server;
	er.namespace = argument[0];
	er.pod = argument[1];
	er.container = argument[2];
	er.command = argument + 3;
	er.fd = STDIN_FILENO;
	exec_begin(&kc, &er, on_end, NULL);
}
