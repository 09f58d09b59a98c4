/* SPDX-License-Identifier: ISC */

/*
 * Writer of Java trust stores; see jks.h.  Runs in the engine, on input of the
 * parent and the mint.
 *
 * A store is: magic, version, number of entries; for each entry its tag, alias,
 * date in milliseconds, "X.509" and the certificate; then the SHA-1 of the
 * password, a phrase and all that.  Numbers are big-endian, strings have two
 * bytes of length.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "jks.h"

#define JKS_MAGIC	0xfeedfeed
#define JKS_VERSION	2
#define JKS_TRUSTED	2
#define JKS_TYPE	"X.509"
#define JKS_PHRASE	"Mighty Aphrodite"
#define JKS_DIGEST_LEN	20
#define JKS_HEAD	(4 + 4 + 4)
/* Bytes of an entry besides alias and certificate. */
#define JKS_ENTRY	(4 + 2 + 8 + 2 + sizeof(JKS_TYPE) - 1 + 4)

static unsigned char *
put_number(unsigned char *p, uint64_t n, size_t width)
{
	while (width-- > 0)
		*p++ = (unsigned char)(n >> 8 * width);
	return p;
}

static unsigned char *
put_bytes(unsigned char *p, const void *bytes, size_t len)
{
	memcpy(p, bytes, len);
	return p + len;
}

static unsigned char *
put_string(unsigned char *p, const char *text)
{
	p = put_number(p, strlen(text), 2);
	return put_bytes(p, text, strlen(text));
}

static unsigned char *
put_entry(unsigned char *p, const struct jks_entry *je, time_t created)
{
	p = put_number(p, JKS_TRUSTED, 4);
	p = put_string(p, je->je_alias);
	p = put_number(p, (uint64_t)created * 1000, 8);
	p = put_string(p, JKS_TYPE);
	p = put_number(p, je->je_derlen, 4);
	return put_bytes(p, je->je_der, je->je_derlen);
}

static int
alias_ok(const char *alias)
{
	const char	*p;

	for (p = alias; *p != '\0'; p++)
		if (*p < ' ' || *p > '~' || (*p >= 'A' && *p <= 'Z'))
			return 0;
	return p > alias && p - alias <= JKS_ALIAS_MAX;
}

static int
alias_cmp(const void *a, const void *b)
{
	const char *const	*x = a, *const *y = b;

	return strcmp(*x, *y);
}

/* Of two entries with one alias Java would keep the last. */
static int
aliases_distinct(const struct jks_entry *je, size_t n)
{
	const char	**sorted;
	size_t		  i;

	if (n < 2)
		return 1;
	if ((sorted = reallocarray(NULL, n, sizeof(*sorted))) == NULL)
		return -1;
	for (i = 0; i < n; i++)
		sorted[i] = je[i].je_alias;
	qsort(sorted, n, sizeof(*sorted), alias_cmp);
	for (i = 1; i < n; i++)
		if (strcmp(sorted[i - 1], sorted[i]) == 0)
			break;
	free(sorted);
	return i == n;
}

/* 1 with the size of what the digest covers, 0 if not, -1 without memory. */
static int
entries_ok(const struct jks_entry *je, size_t n, size_t *size)
{
	size_t	 i;

	if (n > JKS_ENTRIES_MAX)
		return 0;
	*size = JKS_HEAD;
	for (i = 0; i < n; i++) {
		if (!alias_ok(je[i].je_alias) || je[i].je_derlen == 0 ||
		    je[i].je_derlen > JKS_DER_MAX)
			return 0;
		*size += JKS_ENTRY + strlen(je[i].je_alias) + je[i].je_derlen;
	}
	return aliases_distinct(je, n);
}

static int
password_ok(const char *password)
{
	for (; *password != '\0'; password++)
		if (*password < ' ' || *password > '~')
			return 0;
	return 1;
}

/* The password counts in UTF-16, as Java has it. */
static int
digest_password(EVP_MD_CTX *md, const char *password)
{
	unsigned char	 wide[2] = { 0, 0 };

	for (; *password != '\0'; password++) {
		wide[1] = (unsigned char)*password;
		if (!EVP_DigestUpdate(md, wide, sizeof(wide)))
			return 0;
	}
	return 1;
}

static int
put_digest(unsigned char *p, const char *password, const unsigned char *body,
    size_t len)
{
	EVP_MD_CTX	*md;
	int		 ok;

	if ((md = EVP_MD_CTX_new()) == NULL)
		return -1;
	ok = EVP_DigestInit_ex(md, EVP_sha1(), NULL) &&
	    digest_password(md, password) &&
	    EVP_DigestUpdate(md, JKS_PHRASE, strlen(JKS_PHRASE)) &&
	    EVP_DigestUpdate(md, body, len) &&
	    EVP_DigestFinal_ex(md, p, NULL);
	EVP_MD_CTX_free(md);
	return ok ? 0 : -1;
}

int
jks_write(const struct jks_entry *je, size_t n, const char *password,
    time_t created, unsigned char **out, size_t *outlen)
{
	unsigned char	*store, *p;
	size_t		 i, size;
	int		 ok;

	*out = NULL;
	*outlen = 0;
	if ((ok = entries_ok(je, n, &size)) == -1)
		return -1;
	if (!ok || !password_ok(password)) {
		errno = EINVAL;
		return -1;
	}
	if ((store = malloc(size + JKS_DIGEST_LEN)) == NULL)
		return -1;
	p = put_number(store, JKS_MAGIC, 4);
	p = put_number(p, JKS_VERSION, 4);
	p = put_number(p, n, 4);
	for (i = 0; i < n; i++)
		p = put_entry(p, &je[i], created);
	if (put_digest(p, password, store, size) == -1) {
		free(store);
		errno = ENOMEM;
		return -1;
	}
	*out = store;
	*outlen = size + JKS_DIGEST_LEN;
	return 0;
}
