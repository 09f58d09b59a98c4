/* SPDX-License-Identifier: ISC */

/*
 * Names, for whoever takes one from a person, a file or a socket.  Each
 * function returns NULL, or a constant text that completes "name: ".
 */

#ifndef NAME_H
#define NAME_H

/*
 * Names of objects and session ids.  They become parts of paths, arguments
 * and lines of logs, so none is a directory's own or an option.
 */
const char	*name_error(const char *);

/* The same for a variable of the environment. */
const char	*name_variable_error(const char *);

/* The same for several of them; '*' stands for any number of characters. */
const char	*name_pattern_error(const char *);

#endif /* NAME_H */
