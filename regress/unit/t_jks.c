/* SPDX-License-Identifier: ISC */

/* Tests of tlsengine/tls/jks.c, with a reader of its own and with Java's. */

#include "test.h"

#include <sys/wait.h>

#include <errno.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "tlsengine/tls/jks.h"
#include "tlsengine/tls/mint.h"

#define PASSWORD	"changeit"
#define CREATED		1767323045	/* 2026-01-02T03:04:05Z */

struct reader {
	const unsigned char	*data;
	size_t			 len;
};

static const unsigned char *
take(struct reader *rd, size_t len)
{
	const unsigned char	*at = rd->data;

	CHECK(len <= rd->len);
	rd->data += len;
	rd->len -= len;
	return at;
}

static uint64_t
number(struct reader *rd, size_t width)
{
	const unsigned char	*digits = take(rd, width);
	uint64_t		 n = 0;

	while (width-- > 0)
		n = n << 8 | *digits++;
	return n;
}

static void
check_string(struct reader *rd, const char *want)
{
	size_t	 len = (size_t)number(rd, 2);

	CHECK_MEM(take(rd, len), len, want, strlen(want));
}

static void
check_digest(const unsigned char *store, size_t len, const char *password)
{
	unsigned char	*all, hash[EVP_MAX_MD_SIZE];
	size_t		 i, n = 0;
	unsigned int	 hashlen;

	CHECK(len > 20);
	CHECK((all = malloc(2 * strlen(password) + 16 + len)) != NULL);
	for (i = 0; password[i] != '\0'; i++) {
		all[n++] = 0;
		all[n++] = (unsigned char)password[i];
	}
	memcpy(all + n, "Mighty Aphrodite", 16);
	memcpy(all + n + 16, store, len - 20);
	CHECK(EVP_Digest(all, n + 16 + len - 20, hash, &hashlen, EVP_sha1(),
	    NULL));
	CHECK_MEM(store + len - 20, 20, hash, hashlen);
	free(all);
}

static void
check_store(const unsigned char *store, size_t len, const char *password,
    const struct jks_entry *je, size_t n)
{
	struct reader	 rd = { store, len };
	size_t		 i, derlen;

	check_digest(store, len, password);
	CHECK_INT(number(&rd, 4), 0xfeedfeed);
	CHECK_INT(number(&rd, 4), 2);
	CHECK_INT(number(&rd, 4), n);
	for (i = 0; i < n; i++) {
		CHECK_INT(number(&rd, 4), 2);
		check_string(&rd, je[i].je_alias);
		CHECK_INT(number(&rd, 8), CREATED * 1000LL);
		check_string(&rd, "X.509");
		derlen = (size_t)number(&rd, 4);
		CHECK_MEM(take(&rd, derlen), derlen, je[i].je_der,
		    je[i].je_derlen);
	}
	CHECK_INT(rd.len, 20);
}

static const unsigned char	 blob[] = { 0x30, 0x03, 0x02, 0x01, 0x2a };

TEST(writes_what_it_is_given)
{
	const struct jks_entry	 je[] = {
		{ "egressd", blob, sizeof(blob) },
		{ "public 1", blob, 2 },
		{ "public 2", blob, 1 },
	};
	unsigned char		*store, *again;
	size_t			 len, n;

	for (n = 0; n <= 3; n++) {
		CHECK_INT(jks_write(je, n, PASSWORD, CREATED, &store, &len),
		    0);
		check_store(store, len, PASSWORD, je, n);
		free(store);
	}
	CHECK_INT(jks_write(je, 3, "", CREATED, &store, &len), 0);
	check_store(store, len, "", je, 3);
	CHECK_INT(jks_write(je, 3, "", CREATED, &again, &n), 0);
	CHECK_MEM(store, len, again, n);
	free(again);
	free(store);
}

static void
check_refused(const char *alias, size_t derlen, const char *password)
{
	struct jks_entry	 je = { alias, blob, derlen };
	unsigned char		*store = NULL;
	size_t			 len;

	errno = 0;
	CHECK_FOR(alias, jks_write(&je, 1, password, CREATED, &store,
	    &len) == -1);
	CHECK_FOR(alias, errno == EINVAL && store == NULL);
}

TEST(refuses_what_java_would_not_find)
{
	const struct jks_entry	 twice[] = {
		{ "b", blob, 1 }, { "a", blob, 1 }, { "b", blob, 1 },
	};
	unsigned char		*store;
	char			 alias[JKS_ALIAS_MAX + 2];
	size_t			 len;

	memset(alias, 'a', sizeof(alias) - 1);
	alias[sizeof(alias) - 1] = '\0';
	check_refused("Upper", 1, PASSWORD);
	check_refused("", 1, PASSWORD);
	check_refused("b\303\274cher", 1, PASSWORD);
	check_refused("new\nline", 1, PASSWORD);
	check_refused(alias, 1, PASSWORD);
	check_refused("a", 0, PASSWORD);
	check_refused("a", JKS_DER_MAX + 1, PASSWORD);
	check_refused("a", 1, "p\303\244ssword");
	CHECK_INT(jks_write(twice, 3, PASSWORD, CREATED, &store, &len), -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(jks_write(twice, JKS_ENTRIES_MAX + 1, PASSWORD, CREATED,
	    &store, &len), -1);
	CHECK_INT(errno, EINVAL);
}

/* What keytool prints of the store; -1 if there is no keytool. */
static int
list(const char *path, const char *password, char *out, size_t outsz)
{
	size_t	 len = 0;
	ssize_t	 n;
	pid_t	 pid;
	int	 fds[2], status;

	CHECK(pipe(fds) == 0 && (pid = fork()) != -1);
	if (pid == 0) {
		dup2(fds[1], STDOUT_FILENO);
		dup2(fds[1], STDERR_FILENO);
		execlp("keytool", "keytool", "-J-Xshare:auto", "-list", "-v",
		    "-storetype", "JKS", "-keystore", path, "-storepass",
		    password, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	while (len < outsz - 1 &&
	    (n = read(fds[0], out + len, outsz - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	close(fds[0]);
	CHECK(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? -1 : 0;
}

/* Java prints a fingerprint in upper case with colons. */
static void
java_fingerprint(const char *hex, char *out)
{
	for (; *hex != '\0'; hex++) {
		*out++ = *hex >= 'a' ? (char)(*hex - 'a' + 'A') : *hex;
		if ((strlen(hex) & 1) && hex[1] != '\0')
			*out++ = ':';
	}
	*out = '\0';
}

TEST(java_reads_it)
{
	struct mint		*mt;
	struct jks_entry	 je = { "egressd", NULL, 0 };
	unsigned char		*store;
	char			 path[] = "/tmp/t_jks.XXXXXX", out[16384];
	char			 want[128];
	const char		*why;
	size_t			 len;
	int			 fd;

	CHECK((mt = mint_new("jks", &why)) != NULL);
	je.je_der = mint_ca_der(mt, &je.je_derlen);
	CHECK_INT(jks_write(&je, 1, PASSWORD, CREATED, &store, &len), 0);
	CHECK((fd = mkstemp(path)) != -1);
	CHECK(write(fd, store, len) == (ssize_t)len);
	close(fd);
	if (list(path, PASSWORD, out, sizeof(out)) == -1) {
		unlink(path);
		SKIP("no keytool");
	}
	java_fingerprint(mint_ca_fingerprint(mt), want);
	CHECK(strstr(out, "trustedCertEntry") != NULL);
	CHECK(strstr(out, "CN=egressd session jks, O=egressd") != NULL);
	CHECK(strstr(out, want) != NULL);
	CHECK_INT(list(path, "wrong-password", out, sizeof(out)), 0);
	CHECK(strstr(out, "trustedCertEntry") == NULL);
	unlink(path);
	free(store);
	mint_free(mt);
}

TEST_MAIN("jks")
