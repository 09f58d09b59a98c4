/* SPDX-License-Identifier: ISC */

/*
 * Writer of NSS databases; see nssdb.h.  Runs in the engine, on what the mint
 * made.
 *
 * A database is an SQLite file with one table.  A row is an object of PKCS #11,
 * a column one of its attributes, named a and the attribute's number in hex; a
 * value is a blob, a number is four bytes of it, big-endian, and an attribute
 * that the object lacks is NULL.  The objects here are the certificate, and
 * what it is trusted for, found by issuer and serial number.
 *
 * NSS signs what it says of trust with a key made of the database's password,
 * and believes it unsigned as long as there is no password.  Chromium sets an
 * empty one at its first start, and signs then what it finds.
 *
 * The file has two pages of one size, the smallest power of two that will do:
 *
 *	page 1	header of the file (100 bytes); tree of the schema, one row
 *	page 2	tree of the table
 *
 * Both trees are a leaf: its header (8 bytes), where each cell begins (2 bytes
 * each), a gap, and the cells, from the end of the page backwards.  A cell is
 * the length of its row, the row's number and the row: length of the row's
 * head, one code per column for type and length, then the values.  Where no
 * width is given numbers are varints, seven bits a byte.  A row may have fewer
 * columns than its table: the rest is NULL.  As the column id is the number of
 * the row, no index is needed.
 */

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include "nssdb.h"

#define PAGE_MIN	4096
#define PAGE_MAX	32768
#define CELL_SPARE	35	/* bytes of a page that no row may use */
#define FILE_HEAD	100
#define LEAF_HEAD	8
#define LEAF_TABLE	0x0d
#define SQLITE_VERSION	3040001		/* said to have written it */
#define NICKNAME	"egressd"

/* From pkcs11t.h and pkcs11n.h. */
#define CERTIFICATE	"\x00\x00\x00\x01"	/* CKO_CERTIFICATE */
#define X_509		"\x00\x00\x00\x00"	/* CKC_X_509 */
#define TRUST		"\xce\x53\x43\x53"	/* CKO_NSS_TRUST */
#define TRUSTED		"\xce\x53\x43\x52"	/* CKT_NSS_TRUSTED_DELEGATOR */
#define VALID		"\xce\x53\x43\x5b"	/* CKT_NSS_VALID_DELEGATOR */
#define VERIFY		"\xce\x53\x43\x53"	/* CKT_NSS_MUST_VERIFY_TRUST */
#define YES		"\x01"
#define NO		"\x00"
#define EMPTY		"\xa5\x00\x5a"		/* apart from NULL */

/* The columns that our rows have, in the order of the table. */
enum column {
	ID, CLASS, TOKEN, PRIVATE, LABEL, VALUE, CERTIFICATE_TYPE, ISSUER,
	SERIAL_NUMBER, SUBJECT, KEY_ID, MODIFIABLE, SERVER_AUTH, CLIENT_AUTH,
	CODE_SIGNING, EMAIL_PROTECTION, STEP_UP_APPROVED, SHA1_HASH, NCOLUMNS
};

/* Columns of the table: the above, and all that NSS may want to write. */
static const char	columns[] =
	" (id INTEGER PRIMARY KEY ON CONFLICT ABORT, a0, a1, a2, a3, a11, a80,"
	" a81, a82, a101, a102, a170, ace536358, ace536359, ace53635a,"
	" ace53635b, ace536360, ace5363b4,"
	" a10, a12, a83, a84, a85, a86, a87, a88, a89, a8a, a8b, a90, a100,"
	" a103, a104, a105, a106, a107, a108, a109, a10a, a10b, a10c, a110,"
	" a111, a120, a121, a122, a123, a124, a125, a126, a127, a128, a129,"
	" a130, a131, a132, a133, a134, a160, a161, a162, a163, a164, a165,"
	" a166, a180, a181, a200, a201, a202, a210, a300, a301, a302, a400,"
	" a401, a402, a403, a404, a405, a406, a480, a481, a482, a500, a501,"
	" a502, a503, a40000211, a40000212, a80000001, ace534351, ace534352,"
	" ace534353, ace534354, ace534355, ace534356, ace534357, ace534358,"
	" ace534364, ace534365, ace534366, ace534367, ace534368, ace534369,"
	" ace534373, ace534374, ace536351, ace536352, ace536353, ace536354,"
	" ace536355, ace536356, ace536357, ace53635c, ace53635d, ace53635e,"
	" ace53635f, ace5363b5, ad5a0db00)";

struct value {
	const void	*v_data;	/* NULL: there is none */
	size_t		 v_len;
	enum { BYTE = 1, IS_BLOB = 12, IS_TEXT } v_code;
};

#define BLOB(data, len)	{ data, len, IS_BLOB }
#define CONST(string)	BLOB(string, sizeof(string) - 1)
#define TEXT(text)	{ text, strlen(text), IS_TEXT }

struct page {
	unsigned char	*pg_data;
	size_t		 pg_size;
	size_t		 pg_leaf;	/* where the tree's header is */
	size_t		 pg_head;	/* after the last cell's place */
	size_t		 pg_cells;	/* where the first cell begins */
	size_t		 pg_count;
};

static unsigned char *
put_number(unsigned char *p, uint64_t n, size_t width)
{
	while (width-- > 0)
		*p++ = (unsigned char)(n >> 8 * width);
	return p;
}

static size_t
varint_len(size_t n)
{
	size_t	 len = 1;

	while (n >>= 7)
		len++;
	return len;
}

static unsigned char *
put_varint(unsigned char *p, size_t n)
{
	size_t	 left = varint_len(n);

	while (left-- > 0)
		*p++ = (n >> 7 * left & 0x7f) | (left > 0 ? 0x80 : 0);
	return p;
}

/* ---- pages and rows ------------------------------------------------------ */

/* The type of a value, and with it the length. */
static size_t
value_code(const struct value *v)
{
	if (v->v_data == NULL)
		return 0;
	return v->v_code == BYTE ? BYTE : 2 * v->v_len + v->v_code;
}

/* Page 1 has the header of the file before its tree. */
static void
page_begin(struct page *pg, unsigned char *data, size_t size, size_t leaf)
{
	pg->pg_data = data;
	pg->pg_size = pg->pg_cells = size;
	pg->pg_leaf = leaf;
	pg->pg_head = leaf + LEAF_HEAD;
	pg->pg_count = 0;
}

static void
put_row(unsigned char *p, size_t head, const struct value *row, size_t n)
{
	size_t	 i;

	p = put_varint(p, head);
	for (i = 0; i < n; i++)
		p = put_varint(p, value_code(&row[i]));
	for (i = 0; i < n; i++)
		if (row[i].v_data != NULL) {
			memcpy(p, row[i].v_data, row[i].v_len);
			p += row[i].v_len;
		}
}

/* -1 if the page has no room for it. */
static int
page_add(struct page *pg, const struct value *row, size_t n)
{
	size_t		 i, head = 1, len, rowid = pg->pg_count + 1, cell;
	unsigned char	*p;

	for (i = 0; i < n; i++)
		head += varint_len(value_code(&row[i]));
	for (i = 0, len = head; i < n; i++)
		len += row[i].v_len;
	cell = varint_len(len) + varint_len(rowid) + len;
	if (len > pg->pg_size - CELL_SPARE ||
	    cell + 2 > pg->pg_cells - pg->pg_head)
		return -1;
	pg->pg_cells -= cell;
	put_number(pg->pg_data + pg->pg_head, pg->pg_cells, 2);
	pg->pg_head += 2;
	pg->pg_count++;
	p = put_varint(pg->pg_data + pg->pg_cells, len);
	p = put_varint(p, rowid);
	put_row(p, head, row, n);
	return 0;
}

static void
page_end(const struct page *pg)
{
	unsigned char	*p = pg->pg_data + pg->pg_leaf;

	p = put_number(p, LEAF_TABLE, 1);
	p = put_number(p, 0, 2);		/* no gap between cells */
	p = put_number(p, pg->pg_count, 2);
	p = put_number(p, pg->pg_cells, 2);
	put_number(p, 0, 1);
}

/* ---- files --------------------------------------------------------------- */

static void
put_file_head(unsigned char *p, size_t size)
{
	static const char	 magic[16] = "SQLite format 3";
	static const uint32_t	 rest[] = {
		1, 2,		/* changes of the file, pages */
		0, 0,		/* pages that are free: the first, how many */
		1, 4,		/* changes of the schema, its format */
		0, 0,		/* cache and vacuum: as the library likes */
		1,		/* UTF-8 */
		0, 0, 0, 0, 0, 0, 0, 0,
		1,		/* the change after which this version wrote */
		SQLITE_VERSION
	};
	size_t			 i;

	memcpy(p, magic, sizeof(magic));
	p = put_number(p + sizeof(magic), size, 2);
	p = put_number(p, 0x010100, 3);		/* with a journal */
	p = put_number(p, 0x402020, 3);		/* prescribed */
	for (i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		p = put_number(p, rest[i], 4);
}

/* -1 if rows of this length want larger pages. */
static int
fill(unsigned char *file, size_t size, const char *table,
    const struct value (*rows)[NCOLUMNS], size_t n)
{
	char			 sql[sizeof(columns) + 64];
	const int		 len = snprintf(sql, sizeof(sql),
	    "CREATE TABLE %s%s", table, columns);
	const unsigned char	 root[] = { 2 };
	const struct value	 schema[] = {
		TEXT("table"), TEXT(table), TEXT(table), { root, 1, BYTE },
		{ sql, len, IS_TEXT }
	};
	struct page		 pg;
	size_t			 i;

	put_file_head(file, size);
	page_begin(&pg, file, size, FILE_HEAD);
	if (page_add(&pg, schema, sizeof(schema) / sizeof(schema[0])) == -1)
		return -1;
	page_end(&pg);
	page_begin(&pg, file + size, size, 0);
	for (i = 0; i < n; i++)
		if (page_add(&pg, rows[i], NCOLUMNS) == -1)
			return -1;
	page_end(&pg);
	return 0;
}

static int
write_file(const char *table, const struct value (*rows)[NCOLUMNS], size_t n,
    unsigned char **out, size_t *outlen)
{
	unsigned char	*file;
	size_t		 size;

	for (size = PAGE_MIN; size <= PAGE_MAX; size *= 2) {
		if ((file = calloc(2, size)) == NULL)
			return -1;
		if (fill(file, size, table, rows, n) == 0) {
			*out = file;
			*outlen = 2 * size;
			return 0;
		}
		free(file);
	}
	errno = EINVAL;
	return -1;
}

int
nssdb_keys(unsigned char **out, size_t *outlen)
{
	return write_file("nssPrivate", NULL, 0, out, outlen);
}

/* ---- the certificate ----------------------------------------------------- */

/* Parts of a certificate, each in its own encoding. */
struct parts {
	unsigned char	*pa_issuer;
	int		 pa_issuerlen;
	unsigned char	*pa_subject;
	int		 pa_subjectlen;
	unsigned char	*pa_serial;
	int		 pa_seriallen;
	unsigned char	 pa_sha1[EVP_MAX_MD_SIZE];
	unsigned int	 pa_sha1len;
};

static int
parts_take(struct parts *pa, const unsigned char *der, size_t len)
{
	const unsigned char	*p = der;
	X509			*cert;

	memset(pa, 0, sizeof(*pa));
	if ((cert = d2i_X509(NULL, &p, (long)len)) == NULL || p != der + len) {
		X509_free(cert);
		return -1;
	}
	pa->pa_issuerlen = i2d_X509_NAME(X509_get_issuer_name(cert),
	    &pa->pa_issuer);
	pa->pa_subjectlen = i2d_X509_NAME(X509_get_subject_name(cert),
	    &pa->pa_subject);
	pa->pa_seriallen = i2d_ASN1_INTEGER(X509_get_serialNumber(cert),
	    &pa->pa_serial);
	X509_free(cert);
	if (pa->pa_issuerlen <= 0 || pa->pa_subjectlen <= 0 ||
	    pa->pa_seriallen <= 0 || !EVP_Digest(der, len, pa->pa_sha1,
	    &pa->pa_sha1len, EVP_sha1(), NULL))
		return -1;
	return 0;
}

static void
parts_free(struct parts *pa)
{
	OPENSSL_free(pa->pa_issuer);
	OPENSSL_free(pa->pa_subject);
	OPENSSL_free(pa->pa_serial);
	ERR_clear_error();
}

static int
write_certs(const struct parts *pa, const unsigned char *der, size_t derlen,
    unsigned char **out, size_t *outlen)
{
	const struct value	 issuer = BLOB(pa->pa_issuer, pa->pa_issuerlen);
	const struct value	 serial = BLOB(pa->pa_serial, pa->pa_seriallen);
	const struct value	 sha1 = BLOB(pa->pa_sha1, pa->pa_sha1len);
	const struct value	 rows[][NCOLUMNS] = { {
		[CLASS] = CONST(CERTIFICATE),
		[TOKEN] = CONST(YES),
		[PRIVATE] = CONST(NO),
		[LABEL] = CONST(NICKNAME),
		[VALUE] = BLOB(der, derlen),
		[CERTIFICATE_TYPE] = CONST(X_509),
		[ISSUER] = issuer,
		[SERIAL_NUMBER] = serial,
		[SUBJECT] = BLOB(pa->pa_subject, pa->pa_subjectlen),
		[KEY_ID] = sha1,	/* any that no other has */
		[MODIFIABLE] = CONST(YES),
	}, {
		[CLASS] = CONST(TRUST),
		[TOKEN] = CONST(YES),
		[PRIVATE] = CONST(NO),
		[LABEL] = CONST(EMPTY),
		[ISSUER] = issuer,
		[SERIAL_NUMBER] = serial,
		[MODIFIABLE] = CONST(YES),
		[SERVER_AUTH] = CONST(TRUSTED),
		[CLIENT_AUTH] = CONST(VALID),
		[CODE_SIGNING] = CONST(VERIFY),
		[EMAIL_PROTECTION] = CONST(VERIFY),
		[STEP_UP_APPROVED] = CONST(NO),
		[SHA1_HASH] = sha1,
	} };

	return write_file("nssPublic", rows, sizeof(rows) / sizeof(rows[0]),
	    out, outlen);
}

int
nssdb_certs(const unsigned char *der, size_t derlen, unsigned char **out,
    size_t *outlen)
{
	struct parts	 pa;
	int		 rv = -1;

	*out = NULL;
	*outlen = 0;
	errno = EINVAL;
	if (derlen > NSSDB_DER_MAX)
		return -1;
	if (parts_take(&pa, der, derlen) == 0)
		rv = write_certs(&pa, der, derlen, out, outlen);
	parts_free(&pa);
	return rv;
}
