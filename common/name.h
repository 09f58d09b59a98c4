/* SPDX-License-Identifier: ISC */

/*
 * Names, for whoever takes one from a person, a file or a socket.  Each
 * function returns NULL, or a text that completes "name: " and lasts until
 * the next call.
 */

#ifndef NAME_H
#define NAME_H

/*
 * Names of objects, fixed sessions among them.  They become parts of paths,
 * arguments and lines of logs, so none is a directory's own or an option.
 */
const char	*name_error(const char *);

/*
 * Ids of sessions that clients start: printable ASCII, spaces inside, nothing
 * that looks like an option.  Quotes, slashes and the like are in it, so an id
 * is never made a part of a path, of a field value or of a shell's command;
 * whoever needs a name of that kind makes one from a number or a hash.
 */
const char	*name_session_error(const char *);

/* The same for a variable of the environment. */
const char	*name_variable_error(const char *);

/* The same for several of them; '*' stands for any number of characters. */
const char	*name_pattern_error(const char *);

#endif /* NAME_H */
