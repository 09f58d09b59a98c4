/* SPDX-License-Identifier: ISC */

/*
 * tlsengine runs this: a WebSocket whose two sides speak different versions of
 * HTTP.  HTTP/1 proves by a key and its digest that the origin has understood
 * (RFC 6455, 4.2.2), HTTP/2 needs no proof and has neither (RFC 8441, 5): the
 * one that is missing is made here, and the one that came is checked.
 */

#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "h1_field.h"
#include "websocket.h"

#define GUID	"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

#define NONCE_LEN	16
#define SHA1_LEN	20
#define BASE64(n)	(((n) + 2) / 3 * 4)

_Static_assert(BASE64(NONCE_LEN) == WEBSOCKET_KEY &&
    BASE64(SHA1_LEN) == WEBSOCKET_ACCEPT, "lengths of key and proof");

/* Names of fields are in lower case, for h1_equal() and for HTTP/2. */
static const char	 key_name[] = "sec-websocket-key";
static const char	 accept_name[] = "sec-websocket-accept";

bool
websocket_wanted(const struct h1_str *upgrade)
{
	return upgrade->s != NULL &&
	    h1_equal(upgrade->s, upgrade->len, "websocket");
}

void
websocket_key(char key[WEBSOCKET_KEY + 1])
{
	unsigned char	 nonce[NONCE_LEN];

	arc4random_buf(nonce, sizeof(nonce));
	EVP_EncodeBlock((unsigned char *)key, nonce, sizeof(nonce));
}

int
websocket_accept(const char *key, size_t len,
    char out[WEBSOCKET_ACCEPT + 1])
{
	unsigned char	 text[WEBSOCKET_KEY + sizeof(GUID)], digest[SHA1_LEN];

	if (len != WEBSOCKET_KEY)
		return -1;
	memcpy(text, key, len);
	memcpy(text + len, GUID, sizeof(GUID) - 1);
	if (!EVP_Digest(text, len + sizeof(GUID) - 1, digest, NULL,
	    EVP_sha1(), NULL))
		return -1;
	EVP_EncodeBlock((unsigned char *)out, digest, sizeof(digest));
	return 0;
}

static size_t
without(struct h1_field *to, const struct h1_field *from, size_t n,
    const char *name)
{
	size_t	 i, kept = 0;

	for (i = 0; i < n; i++)
		if (!h1_equal(from[i].hf_name, from[i].hf_nlen, name))
			to[kept++] = from[i];
	return kept;
}

size_t
websocket_without_key(struct h1_field *to, const struct h1_field *from,
    size_t n)
{
	return without(to, from, n, key_name);
}

struct h1_field
websocket_key_field(const char *key)
{
	return (struct h1_field){ key_name, sizeof(key_name) - 1, key,
	    strlen(key), 0, 0 };
}

int
websocket_proven(struct h1_head *answer, const char *key)
{
	const struct h1_field	*hf = h1_find(answer, accept_name);
	char			 want[WEBSOCKET_ACCEPT + 1];

	if (!websocket_wanted(&answer->hd_upgrade) || hf == NULL ||
	    websocket_accept(key, strlen(key), want) == -1 ||
	    hf->hf_vlen != WEBSOCKET_ACCEPT ||
	    memcmp(hf->hf_value, want, WEBSOCKET_ACCEPT) != 0)
		return -1;
	answer->hd_nfields = without(answer->hd_fields, answer->hd_fields,
	    answer->hd_nfields, accept_name);
	return 0;
}

int
websocket_prove(struct h1_head *answer, const struct h1_head *request,
    char proof[WEBSOCKET_ACCEPT + 1])
{
	const struct h1_field	*key = h1_find(request, key_name);

	answer->hd_nfields = without(answer->hd_fields, answer->hd_fields,
	    answer->hd_nfields, accept_name);
	if (key == NULL || answer->hd_nfields == H1_FIELDS_MAX ||
	    websocket_accept(key->hf_value, key->hf_vlen, proof) == -1)
		return -1;
	answer->hd_fields[answer->hd_nfields++] = (struct h1_field){
	    accept_name, sizeof(accept_name) - 1, proof, WEBSOCKET_ACCEPT,
	    0, 0 };
	return 0;
}
