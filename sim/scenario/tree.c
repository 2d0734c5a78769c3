#include "sim/scenario/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <yaml.h>

#include "sim/kernel/text.h"
#include "sim/scenario/names.h"
#include "sim/scenario/yaml_hint.h"

struct builder {
    struct scn_arena *arena;
    struct scn_mistakes *mistakes;
    const struct scn_file *file;
    const char *text;
    size_t length;
    struct scn_tree *open[SCN_TREE_DEPTH_MAX]; // mappings and lists that are not closed yet
    const char *key[SCN_TREE_DEPTH_MAX];       // a key of that mapping whose value was not read yet; NULL: none
    struct scn_location key_location[SCN_TREE_DEPTH_MAX];
    size_t depth;
    struct scn_tree *root;
    bool ended;
};

static struct scn_location location_at(const struct builder *builder, yaml_mark_t mark)
{
    struct scn_location location = {builder->file, (unsigned)mark.line + 1, (unsigned)mark.column + 1};
    return location;
}

// Of a byte that is no part of a character: the library counts characters.
static struct scn_location location_of_byte(const struct builder *builder, size_t offset)
{
    struct scn_location location = {builder->file, 1, 1};
    for (size_t i = 0; i < offset && i < builder->length; i++) {
        unsigned char byte = (unsigned char)builder->text[i];
        bool is_break = byte == '\n' || (byte == '\r' && (i + 1 == builder->length || builder->text[i + 1] != '\n'));
        bool continues = (byte & 0xc0) == 0x80;
        location.line += is_break;
        location.column = is_break ? 1 : location.column + !continues;
    }
    return location;
}

// Of the character of that line and column; the text's length if it ends before.
static size_t offset_of(const struct builder *builder, struct scn_location wanted)
{
    size_t offset = 0;
    for (unsigned line = 1; line < wanted.line && offset < builder->length; offset++) {
        line += builder->text[offset] == '\n';
    }
    for (unsigned column = 1; column < wanted.column && offset < builder->length; column++) {
        size_t bytes = sim_text_character(builder->text + offset);
        offset += bytes > 0 ? bytes : 1;
    }
    return offset < builder->length ? offset : builder->length;
}

static void complain_syntax(struct builder *builder, const yaml_parser_t *parser)
{
    const char *problem = parser->problem != NULL ? parser->problem : "cannot be parsed";
    if (parser->error == YAML_READER_ERROR && parser->encoding == YAML_UTF8_ENCODING) {
        scn_mistakes_add(builder->mistakes, location_of_byte(builder, parser->problem_offset), "not YAML: %s", problem);
        return;
    }
    if (parser->error == YAML_READER_ERROR) {
        struct scn_location location = {builder->file, 0, 0};
        scn_mistakes_add(builder->mistakes, location, "not YAML: %s at byte %zu", problem, parser->problem_offset);
        return;
    }
    struct scn_location location = location_at(builder, parser->problem_mark);
    size_t at = offset_of(builder, location);
    const char *hint = scn_yaml_hint(problem, parser->context, builder->text + at, builder->length - at);
    bool elsewhere = parser->context != NULL && !builder->file->is_argument &&
                     parser->context_mark.line != parser->problem_mark.line;
    char where[64] = "";
    if (elsewhere) {
        (void)snprintf(where, sizeof where, " that begins in line %zu", parser->context_mark.line + 1);
    }
    if (hint != NULL && elsewhere) {
        scn_mistakes_add(builder->mistakes, location, "not YAML: %s (%s%s)", hint, parser->context, where);
    } else if (hint != NULL) {
        scn_mistakes_add(builder->mistakes, location, "not YAML: %s", hint);
    } else if (parser->context != NULL) {
        scn_mistakes_add(builder->mistakes, location, "not YAML: %s %s%s", problem, parser->context, where);
    } else {
        scn_mistakes_add(builder->mistakes, location, "not YAML: %s", problem);
    }
}

static struct scn_tree *find_entry(const struct scn_tree *tree, const char *key)
{
    for (struct scn_tree *entry = tree->first; entry != NULL; entry = entry->next) {
        if (scn_name_is(entry->key, key)) {
            return entry;
        }
    }
    return NULL;
}

// Adds tree to the innermost open mapping or list. False: reading the file stops.
static bool attach(struct builder *builder, struct scn_tree *tree)
{
    if (builder->depth == 0) {
        builder->root = tree;
        return true;
    }
    size_t level = builder->depth - 1;
    struct scn_tree *parent = builder->open[level];
    if (parent->kind == SCN_TREE_MAPPING) {
        tree->key = builder->key[level];
        tree->key_location = builder->key_location[level];
        builder->key[level] = NULL;
        const struct scn_tree *earlier = find_entry(parent, tree->key);
        if (earlier != NULL) {
            scn_mistakes_add(builder->mistakes, tree->key_location, "duplicate key '%s' (first in line %u)", tree->key,
                             earlier->key_location.line);
            return true;
        }
    }
    if (parent->count == SCN_TREE_ENTRIES_MAX) {
        scn_mistakes_add(builder->mistakes, tree->location, "more than %d entries in %s", SCN_TREE_ENTRIES_MAX,
                         scn_tree_kind_text(parent));
        return false;
    }
    scn_tree_append(parent, tree);
    return true;
}

static bool awaits_key(const struct builder *builder)
{
    return builder->depth > 0 && builder->open[builder->depth - 1]->kind == SCN_TREE_MAPPING &&
           builder->key[builder->depth - 1] == NULL;
}

static void refuse_decoration(struct builder *builder, const yaml_char_t *anchor, const yaml_char_t *tag,
                              yaml_mark_t mark)
{
    if (anchor != NULL) {
        scn_mistakes_add(builder->mistakes, location_at(builder, mark),
                         "anchor '&%s': anchors and aliases are not supported, write the value out", anchor);
    }
    if (tag != NULL) {
        scn_mistakes_add(builder->mistakes, location_at(builder, mark), "tag '%s': tags are not supported", tag);
    }
}

static bool take_scalar(struct builder *builder, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;
    refuse_decoration(builder, event->data.scalar.anchor, event->data.scalar.tag, event->start_mark);
    if (strlen(text) != event->data.scalar.length) {
        scn_mistakes_add(builder->mistakes, location_at(builder, event->start_mark), "a text with a NUL character");
        return false;
    }
    char *copy = scn_arena_copy(builder->arena, text, event->data.scalar.length);
    if (awaits_key(builder)) {
        builder->key[builder->depth - 1] = copy;
        builder->key_location[builder->depth - 1] = location_at(builder, event->start_mark);
        return true;
    }
    struct scn_tree *tree = scn_arena_alloc(builder->arena, sizeof *tree);
    tree->kind = SCN_TREE_SCALAR;
    tree->location = location_at(builder, event->start_mark);
    tree->text = copy;
    tree->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    return attach(builder, tree);
}

static bool take_start(struct builder *builder, enum scn_tree_kind kind, yaml_mark_t mark)
{
    struct scn_location location = location_at(builder, mark);
    if (awaits_key(builder)) {
        scn_mistakes_add(builder->mistakes, location, "a key must be a single word");
        return false;
    }
    if (builder->depth == SCN_TREE_DEPTH_MAX) {
        scn_mistakes_add(builder->mistakes, location, "nested deeper than %d levels", SCN_TREE_DEPTH_MAX);
        return false;
    }
    struct scn_tree *tree = scn_arena_alloc(builder->arena, sizeof *tree);
    tree->kind = kind;
    tree->location = location;
    if (!attach(builder, tree)) {
        return false;
    }
    builder->open[builder->depth] = tree;
    builder->key[builder->depth] = NULL;
    builder->depth++;
    return true;
}

static bool refuse(struct builder *builder, const yaml_event_t *event, const char *text)
{
    scn_mistakes_add(builder->mistakes, location_at(builder, event->start_mark), "%s", text);
    return false;
}

// False: reading the file stops.
static bool take_event(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return true;
    case YAML_STREAM_END_EVENT:
        builder->ended = true;
        return true;
    case YAML_DOCUMENT_START_EVENT:
        return builder->root == NULL || refuse(builder, event, "a second document; one scenario is one file");
    case YAML_ALIAS_EVENT:
        return refuse(builder, event, "anchors and aliases are not supported, write the value out");
    case YAML_SCALAR_EVENT:
        return take_scalar(builder, event);
    case YAML_SEQUENCE_START_EVENT:
        refuse_decoration(builder, event->data.sequence_start.anchor, event->data.sequence_start.tag,
                          event->start_mark);
        return take_start(builder, SCN_TREE_SEQUENCE, event->start_mark);
    case YAML_MAPPING_START_EVENT:
        refuse_decoration(builder, event->data.mapping_start.anchor, event->data.mapping_start.tag, event->start_mark);
        return take_start(builder, SCN_TREE_MAPPING, event->start_mark);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->depth--;
        return true;
    }
    return false;
}

// False: mistakes were reported.
static bool build(struct builder *builder, yaml_parser_t *parser)
{
    while (!builder->ended) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            complain_syntax(builder, parser);
            return false;
        }
        bool go_on = take_event(builder, &event);
        yaml_event_delete(&event);
        if (!go_on) {
            return false;
        }
    }
    if (builder->root == NULL) {
        struct scn_location location = {builder->file, 1, 1};
        scn_mistakes_add(builder->mistakes, location, "the file is empty");
    }
    return builder->root != NULL;
}

struct scn_tree *scn_tree_parse(struct scn_arena *arena, struct scn_mistakes *mistakes, const struct scn_file *file,
                                const char *text, size_t length)
{
    struct builder builder = {.arena = arena, .mistakes = mistakes, .file = file, .text = text, .length = length};
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        sim_panic("scenario", "no memory for a YAML parser");
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    bool built = build(&builder, &parser);
    yaml_parser_delete(&parser);
    return built ? builder.root : NULL;
}

struct text {
    char *bytes;
    size_t length, room;
};

static void text_grow(struct text *text)
{
    text->room = text->room == 0 ? 1u << 14 : 2 * text->room;
    text->bytes = realloc(text->bytes, text->room);
    if (text->bytes == NULL) {
        sim_panic("scenario", "no memory for a file of %zu bytes", text->room);
    }
}

// Reads at most `most` bytes. A pipe that nobody writes to is empty and not waited for. false: see errno.
static bool file_read(const char *name, struct text *text, size_t most)
{
    int fd = open(name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    ssize_t got = fd >= 0 ? 1 : -1;
    while (got > 0 && text->length < most) {
        if (text->length == text->room) {
            text_grow(text);
        }
        size_t room = (text->room < most ? text->room : most) - text->length;
        got = read(fd, text->bytes + text->length, room);
        text->length += got > 0 ? (size_t)got : 0;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
            struct pollfd more = {.fd = fd, .events = POLLIN};
            (void)poll(&more, 1, -1);
            got = 1;
        }
    }
    int problem = errno;
    if (fd >= 0) {
        (void)close(fd);
    }
    errno = problem;
    return got >= 0;
}

struct scn_tree *scn_tree_read(struct scn_arena *arena, struct scn_mistakes *mistakes, const struct scn_file *file,
                               bool *readable_out)
{
    struct scn_location location = {file, 0, 0};
    struct text text = {0};
    struct scn_tree *tree = NULL;
    *readable_out = file_read(file->name, &text, SCN_FILE_BYTES_MAX + 1);
    if (!*readable_out) {
        bool folder = errno == EISDIR;
        scn_mistakes_add(mistakes, location, "cannot be read: %s%s", strerror(errno),
                         folder ? "; name the files in it, such as FOLDER/*.yaml" : "");
    } else if (text.length > SCN_FILE_BYTES_MAX) {
        scn_mistakes_add(mistakes, location, "larger than %u KiB", SCN_FILE_BYTES_MAX / 1024);
    } else {
        const char *copy = scn_arena_copy(arena, text.length > 0 ? text.bytes : "", text.length); // as long as the tree
        tree = scn_tree_parse(arena, mistakes, file, copy, text.length);
    }
    free(text.bytes);
    return tree;
}

void scn_tree_append(struct scn_tree *tree, struct scn_tree *entry)
{
    entry->next = NULL;
    *(tree->first == NULL ? &tree->first : &tree->last->next) = entry;
    tree->last = entry;
    tree->count++;
}

struct scn_tree *scn_tree_find(const struct scn_tree *tree, const char *key)
{
    return tree->kind == SCN_TREE_MAPPING ? find_entry(tree, key) : NULL;
}

const char *scn_tree_kind_text(const struct scn_tree *tree)
{
    switch (tree->kind) {
    case SCN_TREE_SCALAR:
        return "a single value";
    case SCN_TREE_SEQUENCE:
        return "a list";
    case SCN_TREE_MAPPING:
        return "a mapping";
    }
    return "";
}
