/* SPDX-License-Identifier: ISC */

/*
 * k8sd: what the gate of a pod is told.  The parent has rendered it, and here
 * nobody reads it: it goes into a Secret as it is.
 */

#ifndef GATE_H
#define GATE_H

#include <sys/queue.h>

#include <stddef.h>
#include <stdint.h>

#define GATE_HASH_LEN	64

/* Counted, and the same one for all who are told the same. */
struct gate {
	LIST_ENTRY(gate)	 ga_entry;
	unsigned int		 ga_refs;
	char			 ga_sha256[GATE_HASH_LEN + 1];	/* of conf */
	char			*ga_conf;
	size_t			 ga_conf_len;
	char			*ga_trust;
	size_t			 ga_trust_len;
	int			 ga_private;	/* not only the Internet */
	char			*ga_resolvers;	/* a space between them */
};

/* Takes the texts, also if there is one like it already. */
struct gate	*gate_new(const char *, char *, size_t, char *, size_t, int,
		    const char *);
struct gate	*gate_ref(struct gate *);
void	 gate_unref(struct gate *);		/* NULL is fine */

/* Of the session with this number, counted; NULL: it is not there yet. */
struct gate	*gate_take(uint32_t);
void	 gate_drop(uint32_t);

/* control.c: what the parent has sent for a session is complete, or lost. */
void	 control_gate(uint32_t);

#endif /* GATE_H */
