/* SPDX-License-Identifier: ISC */

/*
 * The parent runs this: as whom a child runs and where its root is.  Started
 * as root, each role has a user of its own, by name or out of the range that
 * the configuration gives; each engine has a uid of its own in that range.
 * Started by anyone else, all run as that user.
 */

#include <sys/stat.h>

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "parent.h"

#define USER_PREFIX	"_egressd-"
#define UIDS_COUNT	256		/* of a daemon for one run */
#define UIDS_FIRST	0x70000000U	/* no package, no container has these */
#define UIDS_LAST	0x7ffffeffU
#define UID_NOBODY	65534

static struct {
	uid_t	 uid;
	gid_t	 gid;
	char	 root[PATH_LEN];
} roles[ROLE_MAX];

/* Engines take the uids behind those of the roles. */
static uid_t	 engine_first, engine_last;

static int
find_user(enum role role, struct why *why)
{
	struct passwd	*pw;
	char		 name[64];

	snprintf(name, sizeof(name), "%s%s", USER_PREFIX, role_name(role));
	errno = 0;
	if ((pw = getpwnam(name)) == NULL)
		return why_set(why, "user %s: %s (egressd(8) says how to "
		    "create it; \"uids\" in the configuration does without)",
		    name, errno != 0 ? strerror(errno) : "does not exist");
	if (pw->pw_uid == 0)
		return why_set(why, "user %s is root", name);
	roles[role].uid = pw->pw_uid;
	roles[role].gid = pw->pw_gid;
	return 0;
}

/* The last of the user ids that this user namespace has; 0: who knows. */
static uid_t
last_uid(void)
{
	unsigned int	 inside, outside, count, last = 0;
	FILE		*fp;

	if ((fp = fopen("/proc/self/uid_map", "re")) == NULL)
		return 0;
	while (fscanf(fp, "%u %u %u", &inside, &outside, &count) == 3)
		if (count > 0 && inside + (count - 1) > last)
			last = inside + (count - 1);
	fclose(fp);
	return last;
}

/*
 * User ids that nobody has, for a daemon of one run.  Two of these should not
 * share any: one engine could send signals to the other.
 */
static uid_t
free_uids(void)
{
	uid_t	 last = last_uid();

	if (last >= UIDS_LAST)
		return UIDS_FIRST + UIDS_COUNT * arc4random_uniform(
		    (UIDS_LAST - UIDS_FIRST) / UIDS_COUNT);
	/* A container has fewer: those that lie highest, below nobody. */
	if (last >= UID_NOBODY)
		last = UID_NOBODY - 1;
	return last > 2 * UIDS_COUNT ? last - UIDS_COUNT : 0;
}

/* An empty directory that belongs to root and that nobody can write to. */
static int
make_root(enum role role, struct why *why)
{
	char	*path = roles[role].root;

	snprintf(path, sizeof(roles[role].root), "%s/%s", path_run,
	    role_name(role));
	if (mkdir(path, 0555) == -1 && errno != EEXIST)
		return why_set(why, "%s: %s", path, strerror(errno));
	if (chmod(path, 0555) == -1 || lchown(path, 0, 0) == -1)
		return why_set(why, "%s: %s", path, strerror(errno));
	return 0;
}

int
identity_check(const struct config *conf, struct why *why)
{
	uid_t		 first = conf->cf_uid_first;
	uid_t		 last = conf->cf_uid_last;
	enum role	 role;

	if (!d.d_privileged)
		return 0;
	if (first == 0 && d.d_private && getpwnam(USER_PREFIX "policyd") ==
	    NULL && (first = free_uids()) != 0)
		last = first + UIDS_COUNT - 1;
	if (mkdir(path_run, 0755) == -1 && errno != EEXIST)
		return why_set(why, "%s: %s", path_run, strerror(errno));
	for (role = ROLE_PARENT + 1; role <= ROLE_ENGINE; role++) {
		if (make_root(role, why) == -1)
			return -1;
		if (first != 0)
			roles[role].uid = roles[role].gid = first + role;
		else if (find_user(role, why) == -1)
			return -1;
	}
	engine_first = first != 0 ? first + ROLE_ENGINE + 1 : 0;
	engine_last = last;
	return 0;
}

/* Why a sandbox of a daemon that is root must not run as this user, or NULL. */
static const char *
sandbox_user_error(const struct config *conf, const char *name)
{
	const struct passwd	*pw;

	if ((pw = getpwnam(name)) == NULL)
		return "does not exist";
	if (pw->pw_uid == 0)
		return "must not be root";
	if (strncmp(name, USER_PREFIX, strlen(USER_PREFIX)) == 0 ||
	    (pw->pw_uid >= conf->cf_uid_first &&
	    pw->pw_uid <= conf->cf_uid_last))
		return "must not be one of the daemon's own";
	return NULL;
}

/* As whom sandboxes run: root cannot lend them its own identity. */
void
identity_sandboxes(const struct config *conf, struct conf_errors *errs)
{
	const struct conf_sandbox	*sb;
	const char			*why;

	TAILQ_FOREACH(sb, &conf->cf_sandboxes, sb_entry) {
		if (sb->sb_kind == SANDBOX_KUBERNETES ||
		    sb->sb_user_caller)
			continue;
		if (sb->sb_user == NULL)
			conf_errors_add(errs, sb->sb_pos, "sandbox \"%s\": "
			    "user is required as the daemon runs as root: "
			    "user \"name\", or user caller", sb->sb_name);
		else if ((why = sandbox_user_error(conf, sb->sb_user)) != NULL)
			conf_errors_add(errs, sb->sb_pos, "sandbox \"%s\": "
			    "user \"%s\": %s", sb->sb_name, sb->sb_user, why);
	}
}

/* uid 0 tells the child to stay who it is. */
void
identity_get(enum role role, uid_t *uid, gid_t *gid)
{
	uid_t	 u;

	*uid = roles[role].uid;
	*gid = roles[role].gid;
	if (role != ROLE_ENGINE || engine_first == 0)
		return;
	for (u = engine_first; u <= engine_last; u++)
		if (!proc_owns_uid(u)) {
			*uid = *gid = u;
			return;
		}
	/* All are taken: share the last rather than a role's. */
	*uid = *gid = engine_last;
}

/* Whether a child has this uid, now or some day. */
bool
identity_owns(uid_t uid)
{
	enum role	 role;

	if (!d.d_privileged || uid == 0)
		return false;
	for (role = ROLE_PARENT + 1; role <= ROLE_ENGINE; role++)
		if (roles[role].uid == uid)
			return true;
	return uid >= engine_first && uid <= engine_last;
}

const char *
identity_root(enum role role)
{
	return roles[role].root;
}
