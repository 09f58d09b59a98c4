/* SPDX-License-Identifier: ISC */

/* Tests of tlsengine/tls/nssdb.c, by how it looks and with NSS's own tool. */

#include "test.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
#include <spawn.h>
#include <unistd.h>

#include <openssl/asn1.h>
#include <openssl/x509v3.h>

#include "tlsengine/tls/mint.h"
#include "tlsengine/tls/nssdb.h"

/* A CA's certificate that is made longer by a comment; the caller frees. */
static unsigned char *
long_ca(size_t comment, size_t *len)
{
	struct mint		*mt;
	const unsigned char	*der;
	unsigned char		*out = NULL;
	char			*text;
	const char		*why;
	X509			*cert;
	ASN1_IA5STRING		*string;

	CHECK((mt = mint_new("nss", &why)) != NULL);
	der = mint_ca_der(mt, len);
	CHECK((cert = d2i_X509(NULL, &der, (long)*len)) != NULL);
	CHECK((text = calloc(1, comment + 1)) != NULL);
	memset(text, 'c', comment);
	CHECK((string = ASN1_IA5STRING_new()) != NULL &&
	    ASN1_STRING_set(string, text, (int)comment));
	CHECK(X509_add1_ext_i2d(cert, NID_netscape_comment, string, 0, 0));
	/* Signed by nobody: whoever is trusted by name is not asked. */
	CHECK(i2d_re_X509_tbs(cert, NULL) > 0);
	*len = (size_t)i2d_X509(cert, &out);
	CHECK(*len > comment);
	ASN1_STRING_free(string);
	X509_free(cert);
	mint_free(mt);
	free(text);
	return out;
}

static size_t
number(const unsigned char *p)
{
	return (size_t)p[0] << 8 | p[1];
}

/* Two leaves, each with so many cells, in pages of the size that is said. */
static void
check_file(const unsigned char *file, size_t len, size_t rows)
{
	size_t	 size;

	CHECK(len >= 2 * 4096);
	CHECK_MEM(file, 16, "SQLite format 3", 16);
	size = number(file + 16);
	CHECK_INT(2 * size, len);
	CHECK_INT(file[100], 0x0d);
	CHECK_INT(number(file + 100 + 3), 1);
	CHECK_INT(file[size], 0x0d);
	CHECK_INT(number(file + size + 3), rows);
	CHECK(number(file + size + 5) <= size);
}

TEST(pages_grow)
{
	static const struct {
		size_t	 comment, size;
	} cases[] = {
		{ 0, 4096 }, { 1024, 4096 }, { 4096, 8192 }, { 7000, 8192 },
	};
	unsigned char	*der, *file, *again;
	size_t		 i, derlen, len, n;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		der = long_ca(cases[i].comment, &derlen);
		CHECK_INT(nssdb_certs(der, derlen, &file, &len), 0);
		CHECK_INT(len, 2 * cases[i].size);
		check_file(file, len, 2);
		CHECK(memmem(file, len, der, derlen) != NULL);
		CHECK_INT(nssdb_certs(der, derlen, &again, &n), 0);
		CHECK_MEM(file, len, again, n);
		free(again);
		free(file);
		OPENSSL_free(der);
	}
	CHECK_INT(nssdb_keys(&file, &len), 0);
	CHECK_INT(len, 2 * 4096);
	check_file(file, len, 0);
	free(file);
}

static void
check_refused(const unsigned char *der, size_t len)
{
	unsigned char	*file = NULL;
	size_t		 n;

	errno = 0;
	CHECK_INT(nssdb_certs(der, len, &file, &n), -1);
	CHECK_INT(errno, EINVAL);
	CHECK(file == NULL);
}

TEST(refuses_what_is_no_certificate)
{
	unsigned char	*der;
	size_t		 len;

	der = long_ca(10, &len);
	check_refused(der, 0);
	check_refused(der, len - 1);
	check_refused(der + 1, len - 1);
	der[0] = 0x31;
	check_refused(der, len);
	OPENSSL_free(der);
	der = long_ca(NSSDB_DER_MAX, &len);
	check_refused(der, len);
	OPENSSL_free(der);
}

static void
save(const char *dir, const char *name, unsigned char *data, size_t len)
{
	char	 path[128];
	FILE	*f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	CHECK((f = fopen(path, "w")) != NULL);
	CHECK(fwrite(data, 1, len, f) == len && fclose(f) == 0);
	free(data);
}

extern char	**environ;

/* certutil -L with its output in a pipe; NULL if there is no such program. */
static FILE *
list_begin(const char *dir, pid_t *pid)
{
	char				 name[128];
	char *const			 argv[] = { (char []){ "certutil" },
	    (char []){ "-L" }, (char []){ "-d" }, name, NULL };
	posix_spawn_file_actions_t	 fa;
	FILE				*f;
	int				 fds[2], error;

	snprintf(name, sizeof(name), "sql:%s", dir);
	CHECK(pipe(fds) == 0 && (f = fdopen(fds[0], "r")) != NULL);
	CHECK(posix_spawn_file_actions_init(&fa) == 0);
	CHECK(posix_spawn_file_actions_adddup2(&fa, fds[1], 1) == 0 &&
	    posix_spawn_file_actions_adddup2(&fa, fds[1], 2) == 0);
	error = posix_spawnp(pid, "certutil", &fa, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&fa);
	close(fds[1]);
	if (error == 0)
		return f;
	CHECK_INT(error, ENOENT);
	fclose(f);
	return NULL;
}

/* How NSS trusts our certificate, "" if it has none; -1 without certutil. */
static int
listed(const char *dir, char *trust, size_t size)
{
	static const char	 nickname[] = "egressd ";
	char			 line[256];
	FILE			*f;
	pid_t			 pid;
	int			 status;

	if ((f = list_begin(dir, &pid)) == NULL)
		return -1;
	trust[0] = '\0';
	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, nickname, sizeof(nickname) - 1) == 0)
			snprintf(trust, size, "%s", line +
			    strcspn(line, " ") +
			    strspn(line + strcspn(line, " "), " "));
	fclose(f);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK_INT(status, 0);
	return 0;
}

static void
remove_all(const char *dir)
{
	static const char *const	 names[] = { "cert9.db", "key4.db",
	    "pkcs11.txt" };
	char				 path[128];
	size_t				 i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
		CHECK(unlink(path) == 0 || errno == ENOENT);
	}
	CHECK(rmdir(dir) == 0);
}

TEST(nss_reads_it)
{
	static const size_t	 comments[] = { 0, 3000, 7000 };
	char			 dir[] = "/tmp/t_nssdb.XXXXXX", line[128];
	unsigned char		*der, *file;
	size_t			 i, derlen, len;
	int			 found = 0;

	CHECK(mkdtemp(dir) != NULL);
	for (i = 0; i < sizeof(comments) / sizeof(comments[0]) && found == 0;
	    i++) {
		der = long_ca(comments[i], &derlen);
		CHECK_INT(nssdb_certs(der, derlen, &file, &len), 0);
		save(dir, "cert9.db", file, len);
		CHECK_INT(nssdb_keys(&file, &len), 0);
		save(dir, "key4.db", file, len);
		if ((found = listed(dir, line, sizeof(line))) == 0)
			CHECK_STR(line, "C,,  \n");
		OPENSSL_free(der);
	}
	remove_all(dir);
	if (found == -1)
		SKIP("no certutil");
}

TEST_MAIN("nssdb")
