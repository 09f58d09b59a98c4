/* SPDX-License-Identifier: ISC */

/*
 * egressd-kubeconfig runs this: YAML as a tree of text, lists and maps, each
 * with its line.  The file is a stranger's.  Anchors and aliases, by which a
 * few lines can mean more than a machine holds, are refused; depth and number
 * of nodes are bounded.
 */

#include <stdlib.h>
#include <string.h>

#include <yaml.h>

#include "kubeconfig.h"

#define DEPTH_MAX	32
#define NODES_MAX	(64 * 1024)
#define KEYS_MAX	512	/* of a map, each compared with each */

struct reader {
	yaml_parser_t	 rd_parser;
	unsigned int	 rd_file;
	unsigned int	 rd_depth;
	unsigned int	 rd_nodes;
};

static unsigned int
line_of(const yaml_event_t *ev)
{
	return (unsigned int)ev->start_mark.line + 1;
}

static void
next(struct reader *rd, yaml_event_t *ev)
{
	yaml_parser_t	*ps = &rd->rd_parser;
	unsigned int	 line;

	if (yaml_parser_parse(ps, ev))
		return;
	line = (unsigned int)ps->problem_mark.line + 1;
	fail(rd->rd_file, line, "not YAML: %s", ps->problem == NULL ?
	    "it cannot be read" : ps->problem);
}

static void
no_anchor(const struct reader *rd, const yaml_event_t *ev,
    const yaml_char_t *anchor)
{
	if (anchor != NULL)
		fail(rd->rd_file, line_of(ev), "anchors and aliases are not "
		    "taken");
}

static struct node *
node_new(struct reader *rd, const yaml_event_t *ev, enum node_kind kind)
{
	struct node	*nd = must(calloc(1, sizeof(*nd)));

	if (++rd->rd_nodes > NODES_MAX)
		fail(rd->rd_file, line_of(ev), "more than %d values",
		    NODES_MAX);
	nd->nd_kind = kind;
	nd->nd_file = rd->rd_file;
	nd->nd_line = line_of(ev);
	TAILQ_INIT(&nd->nd_children);
	return nd;
}

static struct node	*node_read(struct reader *, const yaml_event_t *);

static struct node *
text_read(struct reader *rd, const yaml_event_t *ev)
{
	struct node	*nd = node_new(rd, ev, NODE_TEXT);

	no_anchor(rd, ev, ev->data.scalar.anchor);
	if (memchr(ev->data.scalar.value, '\0', ev->data.scalar.length) !=
	    NULL)
		fail(rd->rd_file, nd->nd_line, "a NUL in a text");
	nd->nd_text = must(strndup((const char *)ev->data.scalar.value,
	    ev->data.scalar.length));
	nd->nd_len = ev->data.scalar.length;
	nd->nd_quoted = ev->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
	return nd;
}

static struct node *
list_read(struct reader *rd, const yaml_event_t *start)
{
	struct node	*nd = node_new(rd, start, NODE_LIST), *item;
	yaml_event_t	 ev;

	no_anchor(rd, start, start->data.sequence_start.anchor);
	for (;;) {
		next(rd, &ev);
		if (ev.type == YAML_SEQUENCE_END_EVENT)
			return nd;
		item = node_read(rd, &ev);
		TAILQ_INSERT_TAIL(&nd->nd_children, item, nd_entry);
	}
}

static void
map_add(struct node *map, const struct node *key, struct node *value)
{
	const struct node	*other;
	unsigned int		 n = 0;

	if (key->nd_kind != NODE_TEXT)
		fail(map->nd_file, key->nd_line, "a key that is no text");
	TAILQ_FOREACH(other, &map->nd_children, nd_entry) {
		if (strcmp(other->nd_key, key->nd_text) == 0)
			fail(map->nd_file, key->nd_line, "%.64s is given "
			    "twice", key->nd_text);
		if (++n == KEYS_MAX)
			fail(map->nd_file, key->nd_line, "more than %d keys "
			    "in a map", KEYS_MAX);
	}
	value->nd_key = key->nd_text;
	value->nd_line = key->nd_line;
	TAILQ_INSERT_TAIL(&map->nd_children, value, nd_entry);
}

static struct node *
map_read(struct reader *rd, const yaml_event_t *start)
{
	struct node	*nd = node_new(rd, start, NODE_MAP), *key;
	yaml_event_t	 ev;

	no_anchor(rd, start, start->data.mapping_start.anchor);
	for (;;) {
		next(rd, &ev);
		if (ev.type == YAML_MAPPING_END_EVENT)
			return nd;
		key = node_read(rd, &ev);
		next(rd, &ev);
		map_add(nd, key, node_read(rd, &ev));
	}
}

static struct node *
node_read(struct reader *rd, const yaml_event_t *ev)
{
	struct node	*nd;

	if (++rd->rd_depth > DEPTH_MAX)
		fail(rd->rd_file, line_of(ev), "more than %d deep", DEPTH_MAX);
	switch (ev->type) {
	case YAML_SCALAR_EVENT:
		nd = text_read(rd, ev);
		break;
	case YAML_SEQUENCE_START_EVENT:
		nd = list_read(rd, ev);
		break;
	case YAML_MAPPING_START_EVENT:
		nd = map_read(rd, ev);
		break;
	default:
		fail(rd->rd_file, line_of(ev), "anchors and aliases are not "
		    "taken");
	}
	rd->rd_depth--;
	return nd;
}

struct node *
tree_read(unsigned int file, const unsigned char *data, size_t len)
{
	struct reader	 rd = { .rd_file = file };
	struct node	*root = NULL;
	yaml_event_t	 ev;

	if (!yaml_parser_initialize(&rd.rd_parser))
		fail(file, 0, "no memory");
	yaml_parser_set_input_string(&rd.rd_parser, data, len);
	for (;;) {
		next(&rd, &ev);
		if (ev.type == YAML_STREAM_END_EVENT)
			return root;
		if (ev.type == YAML_STREAM_START_EVENT ||
		    ev.type == YAML_DOCUMENT_END_EVENT)
			continue;
		if (ev.type == YAML_DOCUMENT_START_EVENT && root == NULL)
			continue;
		if (root != NULL)
			fail(file, line_of(&ev), "more than one document");
		root = node_read(&rd, &ev);
	}
}
