/* SPDX-License-Identifier: ISC */

/*
 * Names that are hidden for everybody.  APIs spell them in many ways and new
 * ones appear every week, so most are known by how they end: whatever ends
 * with `token' is hidden, and case, `-', `_', `.' and digits at the end do not
 * matter.  A header field that ends with `key' is a credential; in a query and
 * in a body it may be anything, and less is hidden.
 */

#include <string.h>
#include <strings.h>

#include "redact.h"

#define TAIL		32	/* bytes of a name that matter: its last */

#define H		0x01
#define Q		0x02
#define F		0x04
#define WHOLE		0x08	/* the name is no longer than this */
#define SHOWN		0x10	/* an exception, before what it excepts */

struct word {
	const char	*wo_text;
	uint8_t		 wo_len;
	uint8_t		 wo_flags;
};

#define W(text, flags)	{ text, sizeof(text) - 1, flags }
#define END		{ NULL, 0, 0 }

static const struct word	 words_a[] = {
	W("clientkeydata", F), W("xamznoidcdata", H), END
};
static const struct word	 words_c[] = {
	W("hmac", Q), END
};
static const struct word	 words_d[] = {
	W("password", H | Q | F), W("passwd", H | Q | F),
	W("pwd", Q | F | WHOLE), W("sessionid", H | Q | F),
	W("sessid", Q), W("sid", Q | WHOLE), END
};
static const struct word	 words_e[] = {
	W("cookie", H | Q | F), W("passphrase", H | Q | F),
	W("signature", H | Q), W("code", Q | WHOLE),
	W("authcode", Q | F), W("authorizationcode", Q | F),
	W("devicecode", Q | F), W("samlresponse", Q | F),
	W("xwpnonce", H), END
};
static const struct word	 words_g[] = {
	W("sig", Q | WHOLE), W("apisig", Q), W("connectionstring", Q | F), END
};
static const struct word	 words_h[] = {
	W("auth", Q | F | WHOLE), W("auth", H), END
};
static const struct word	 words_l[] = {
	W("credential", H | Q | F), END
};
static const struct word	 words_m[] = {
	W("xhoneycombteam", H), W("privatekeypem", F), END
};
static const struct word	 words_n[] = {
	W("token", H | Q | F), W("authorization", H | Q | F),
	W("clientassertion", F), W("assertion", H | Q),
	W("accesssign", H), W("sign", Q | WHOLE), W("session", Q | WHOLE), END
};
static const struct word	 words_o[] = {
	W("authenticationinfo", H), END
};
static const struct word	 words_p[] = {
	W("otp", Q | F | WHOLE), W("totp", Q | F | WHOLE), END
};
static const struct word	 words_r[] = {
	W("codeverifier", Q | F), END
};
static const struct word	 words_s[] = {
	W("credentials", H | Q | F), W("cookies", F),
	W("pass", Q | F | WHOLE), END
};
static const struct word	 words_t[] = {
	W("secret", H | Q | F), W("jwt", H | Q | F), W("ticket", Q | WHOLE),
	END
};
static const struct word	 words_y[] = {
	W("websocketkey", H | SHOWN), W("idempotencykey", H | SHOWN),
	W("surrogatekey", H | SHOWN), W("cachekey", H | SHOWN),
	W("partitionkey", H | SHOWN), W("publickey", H | SHOWN),
	W("routingkey", H | SHOWN), W("key", H), W("key", Q | WHOLE),
	W("apikey", Q | F), W("accesskey", Q | F), W("secretkey", Q | F),
	W("privatekey", Q | F), W("authkey", Q | F), W("signingkey", Q | F),
	W("encryptionkey", Q | F), W("sharedkey", Q | F),
	W("masterkey", Q | F), W("accountkey", Q | F), W("sessionkey", Q | F),
	W("subscriptionkey", Q | F), W("servicekey", Q | F),
	W("customerkey", Q | F), W("functionkey", Q | F),
	W("authorizationauxiliary", H), END
};

/* By the last letter: most names are done with a look at theirs. */
static const struct word *const	 words[26] = {
	['a' - 'a'] = words_a, ['c' - 'a'] = words_c, ['d' - 'a'] = words_d,
	['e' - 'a'] = words_e, ['g' - 'a'] = words_g, ['h' - 'a'] = words_h,
	['l' - 'a'] = words_l, ['m' - 'a'] = words_m, ['n' - 'a'] = words_n,
	['o' - 'a'] = words_o, ['p' - 'a'] = words_p, ['r' - 'a'] = words_r,
	['s' - 'a'] = words_s, ['t' - 'a'] = words_t, ['y' - 'a'] = words_y,
};

/* The last letters of a name to the end of tail; returns their number. */
static size_t
name_tail(const char *name, size_t len, char tail[TAIL])
{
	size_t	 n = 0;
	char	 c;

	while (len > 0 && n < TAIL) {
		c = name[--len];
		if (c >= 'A' && c <= 'Z')
			c += 'a' - 'A';
		else if (c == '-' || c == '_' || c == '.')
			continue;
		tail[TAIL - ++n] = c;
	}
	return n;
}

/* The words that end as the name does, or NULL. */
static const struct word *
candidates(const char *name, size_t *len)
{
	unsigned int	 last;

	while (*len > 0 && strchr("0123456789-_.", name[*len - 1]) != NULL)
		--*len;
	if (*len == 0)
		return NULL;
	last = (unsigned char)(name[*len - 1] | 0x20) - 'a';
	return last < 26 ? words[last] : NULL;
}

/*
 * Whether anything known may end with these three bytes.  Nearly all names
 * are done with this; digits, marks and escapes have to be looked at.
 */
bool
redact_known_end(const char *three)
{
	static uint32_t		 ends[26][26];	/* the letters before two */
	static bool		 ready;
	const struct word	*wo;
	const char		*p;
	unsigned int		 i, a, b, c;

	for (i = 0; !ready && i < 26; i++)
		for (wo = words[i]; wo != NULL && wo->wo_text != NULL; wo++) {
			p = wo->wo_text + wo->wo_len - 3;
			ends[p[2] - 'a'][p[1] - 'a'] |=
			    UINT32_C(1) << (p[0] - 'a');
		}
	ready = true;
	a = ((unsigned char)three[0] | 0x20) - 'a';
	b = ((unsigned char)three[1] | 0x20) - 'a';
	c = ((unsigned char)three[2] | 0x20) - 'a';
	if (b >= 26 || c >= 26)
		return true;
	return a < 26 ? (ends[c][b] >> a & 1) != 0 : ends[c][b] != 0 &&
	    three[0] != '"';
}

bool
redact_known(enum redact_kind kind, const char *name, size_t len)
{
	static const uint8_t	 flags[REDACT_KIND_MAX] = {
		[REDACT_HEADER] = H, [REDACT_QUERY] = Q, [REDACT_FIELD] = F
	};
	const struct word	*wo;
	char			 tail[TAIL];
	size_t			 n;

	if (len < 3 || !redact_known_end(name + len - 3) ||
	    (wo = candidates(name, &len)) == NULL)
		return false;
	n = name_tail(name, len, tail);
	for (; wo->wo_text != NULL; wo++)
		if ((wo->wo_flags & flags[kind]) != 0 && wo->wo_len <= n &&
		    ((wo->wo_flags & WHOLE) == 0 || wo->wo_len == n) &&
		    memcmp(tail + TAIL - wo->wo_len, wo->wo_text,
		    wo->wo_len) == 0)
			return (wo->wo_flags & SHOWN) == 0;
	return false;
}

/* Header fields that are nothing but credentials. */
bool
redact_always(const char *name)
{
	static const char *const	 always[] = {
		"authorization", "proxy-authorization", "cookie", "set-cookie"
	};
	size_t				 i;

	for (i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (strcasecmp(name, always[i]) == 0)
			return true;
	return false;
}
