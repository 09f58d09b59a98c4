/* SPDX-License-Identifier: ISC */

/*
 * k8sd runs this: what a pod has besides its workspace, if a gate holds it.
 *
 *	init	fence	puts the filter into the pod's network, makes the
 *			volumes fit and copies box; may run again
 *		gate	egressd with a fixed session, from a Secret.  A sidecar
 *			that the cluster knows as such, or the first container,
 *			before whose hook is over the next one does not start
 *
 * Both run as root with the capabilities that they need by name; the workspace
 * has neither of those that could mark a packet as the gate's.  What the
 * workspace shares with the gate is a volume that it can only read.
 *
 * All defaults of the API are written out, so that a pod which is adopted can
 * be compared.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log.h"
#include "manifest.h"
#include "trustenv.h"

/* In our image, where nobody looks for it by its name. */
#define FENCE_PROGRAM	"/usr/local/libexec/egressd-fence"

#define TRUST		"/egressd/trust"	/* in the workspace */
#define BUNDLE		TRUST "/pod/bundle.pem"
#define JAVA		TRUST_JAVA(TRUST "/pod/ca.jks")

/* Nobody has this address: what asks it for a name ends in the gate. */
#define NAMESERVER	"198.18.0.1"

#define HOLD_S		60	/* until the gate serves */

static const char *const	 probe[] = {
	"egressctl", "status", "-q", NULL
};

/* ---- fence ---- */

void
gate_fence(cJSON *containers, const struct pod_conf *pc)
{
	static const char *const	 command[] = { FENCE_PROGRAM, "-p",
	    "-t", "15001", "-d", "15053", "-g", "45", "-m", "0x45475244",
	    "-v", "/volume/run", "-v", "/volume/spool",
	    "-T", "/volume/trust", "-b", "/volume/bin", NULL };
	static const char *const	 add[] = { "NET_ADMIN", NULL };
	cJSON				*co = kj_item(containers), *mounts;

	kj_put(co, "name", FENCE);
	part_image(co, pc);
	part_command(co, "command", command);
	kj_put(co, "terminationMessagePolicy", "FallbackToLogsOnError");
	mounts = kj_array(co, "volumeMounts");
	part_mount(mounts, "egressd-run", "/volume/run", NULL, 0);
	part_mount(mounts, "egressd-spool", "/volume/spool", NULL, 0);
	part_mount(mounts, "egressd-trust", "/volume/trust", NULL, 0);
	part_mount(mounts, "egressd-bin", "/volume/bin", NULL, 0);
	part_context(co, add);
}

/* ---- gate ---- */

static void
put_probe(cJSON *co, const char *member, int period, int failures)
{
	cJSON	*of = kj_object(co, member);

	part_command(kj_object(of, "exec"), "command", probe);
	kj_put_number(of, "timeoutSeconds", 5);
	kj_put_number(of, "periodSeconds", period);
	kj_put_number(of, "successThreshold", 1);
	kj_put_number(of, "failureThreshold", failures);
}

/* Kubelets take a hook that fails for one that is over. */
static void
put_hold(cJSON *co)
{
	static const char *const	 hold[] = { "egressctl", "status",
	    "-q", "-t", "60s", NULL };

	part_command(kj_object(kj_object(kj_object(co, "lifecycle"),
	    "postStart"), "exec"), "command", hold);
}

void
gate_container(cJSON *containers, const struct pod_conf *pc, int native)
{
	static const char *const	 command[] = { "egressd", "-d", "-f",
	    "/etc/egressd/egressd.conf", NULL };
	static const char *const	 add[] = { "SETUID", "SETGID",
	    "SETPCAP", "SYS_CHROOT", "KILL", "NET_ADMIN", NULL };
	cJSON				*co = kj_item(containers), *mounts;

	kj_put(co, "name", GATE);
	part_image(co, pc);
	part_command(co, "command", command);
	kj_put(co, "terminationMessagePolicy", "FallbackToLogsOnError");
	if (native) {
		kj_put(co, "restartPolicy", "Always");
		put_probe(co, "startupProbe", 1, HOLD_S);
	} else
		put_hold(co);
	put_probe(co, "readinessProbe", 10, 3);
	put_probe(co, "livenessProbe", 10, 6);
	part_resources(co, &pc->pc_gate_requests, &pc->pc_gate_limits);
	mounts = kj_array(co, "volumeMounts");
	part_mount(mounts, "egressd-conf", "/etc/egressd", NULL, 1);
	part_mount(mounts, "egressd-run", "/run", NULL, 0);
	part_mount(mounts, "egressd-spool", "/var/spool/egressd", NULL, 0);
	part_mount(mounts, "egressd-trust", "/trust", NULL, 0);
	part_context(co, add);
}

/* ---- workspace ---- */

/* The user's words to Java stay, and ours, as the last ones, count. */
static void
put_java(cJSON *env)
{
	const char	*old = "";
	const cJSON	*v = kj_named(env, TRUST_JAVA_VARIABLE);
	char		*both;

	if (v != NULL)
		old = kj_string(v, "value");
	if (asprintf(&both, "%s%s" JAVA, old, old[0] != '\0' ? " " : "") == -1)
		fatal("%s", __func__);
	part_env(env, TRUST_JAVA_VARIABLE, strlen(TRUST_JAVA_VARIABLE), both);
	free(both);
}

void
gate_trust(cJSON *co, const struct pod_conf *pc)
{
	static const struct {
		const char	*name;
		const char	*value;
	}	 trust[] = {
#define TRUST_ROW(name, value)	{ name, value },
		TRUST_VARIABLES(TRUST_ROW, BUNDLE, TRUST "/pod/ca.pem")
	};
	static const char *const	 bundles[] = {
		"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/cert.pem"
	};
	cJSON	*env = cJSON_GetObjectItemCaseSensitive(co, "env");
	cJSON	*mounts = cJSON_GetObjectItemCaseSensitive(co, "volumeMounts");
	size_t	 i;

	if (env == NULL)
		env = kj_array(co, "env");
	for (i = 0; i < sizeof(trust) / sizeof(trust[0]); i++)
		part_env(env, trust[i].name, strlen(trust[i].name),
		    trust[i].value);
	put_java(env);
	part_mount(mounts, "egressd-trust", TRUST, NULL, 1);
	for (i = 0; pc->pc_overlay && i < 2; i++)
		part_mount(mounts, "egressd-trust", bundles[i],
		    "pod/bundle.pem", 1);
}

/* ---- the rest ---- */

/* The spool bounds itself: a pod whose volume is full would be evicted. */
void
gate_volumes(cJSON *volumes, const char *secret)
{
	cJSON	*of = part_volume(volumes, "egressd-conf", "secret");

	kj_put(of, "secretName", secret);
	kj_put_number(of, "defaultMode", 0400);
	kj_put(part_volume(volumes, "egressd-run", "emptyDir"), "medium",
	    "Memory");
	part_volume(volumes, "egressd-spool", "emptyDir");
	part_volume(volumes, "egressd-trust", "emptyDir");
}

/* No search list: each name that is asked for is one that was meant. */
void
gate_dns(cJSON *spec)
{
	cJSON	*config, *option;

	kj_put(spec, "dnsPolicy", "None");
	config = kj_object(spec, "dnsConfig");
	kj_put_item(kj_array(config, "nameservers"), NAMESERVER);
	option = kj_item(kj_array(config, "options"));
	kj_put(option, "name", "ndots");
	kj_put(option, "value", "1");
}
