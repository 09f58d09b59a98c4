/* SPDX-License-Identifier: ISC */

/* Tests of tlsengine/tls/nssdb.c, by how it looks and with NSS's own tool. */

#include "test.h"

#include <sys/stat.h>
#include <sys/wait.h>

#include <errno.h>
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

/* The line that NSS has of our certificate; "" if there is none. */
static void
listed(const char *dir, char *line, size_t size)
{
	char	 command[256];
	FILE	*f;

	snprintf(command, sizeof(command), "certutil -L -d sql:%s 2>&1 |"
	    " sed -n 's/^egressd  *//p'", dir);
	CHECK((f = popen(command, "r")) != NULL);
	if (fgets(line, (int)size, f) == NULL)
		line[0] = '\0';
	CHECK(pclose(f) == 0);
}

TEST(nss_reads_it)
{
	static const size_t	 comments[] = { 0, 3000, 7000 };
	char			 dir[] = "/tmp/t_nssdb.XXXXXX", line[128];
	char			 command[64];
	unsigned char		*der, *file;
	size_t			 i, derlen, len;

	if (system("command -v certutil >/dev/null") != 0)
		SKIP("no certutil");
	CHECK(mkdtemp(dir) != NULL);
	for (i = 0; i < sizeof(comments) / sizeof(comments[0]); i++) {
		der = long_ca(comments[i], &derlen);
		CHECK_INT(nssdb_certs(der, derlen, &file, &len), 0);
		save(dir, "cert9.db", file, len);
		CHECK_INT(nssdb_keys(&file, &len), 0);
		save(dir, "key4.db", file, len);
		listed(dir, line, sizeof(line));
		CHECK_STR(line, "C,,  \n");
		OPENSSL_free(der);
	}
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(system(command) == 0);
}

TEST_MAIN("nssdb")
