// Texts in results: what the writers of CSV and YAML write reads back as it was.
#include <string.h>
#include <yaml.h>

#include "fuzz.h"
#include "sim/kernel/text.h"
#include "sim/report/csv.h"
#include "sim/report/files.h"

enum { FIELDS = 8 };

// The input as texts, which NUL bytes part.
static size_t texts_of(const uint8_t *data, size_t size, char *texts[FIELDS])
{
    size_t count = 0;
    while (count < FIELDS) {
        size_t length = strnlen((const char *)data, size);
        texts[count++] = strndup((const char *)data, length);
        if (length == size) {
            break;
        }
        data += length + 1;
        size -= length + 1;
    }
    return count;
}

static char *written(void (*write)(FILE *out, char **texts, size_t count), char **texts, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    FUZZ_HOLDS(out != NULL, "no memory");
    write(out, texts, count);
    FUZZ_HOLDS(fclose(out) == 0, "no memory");
    return text;
}

static void record_write(FILE *out, char **texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        (void)fputs(i > 0 ? "," : "", out);
        csv_text_write(out, texts[i]);
    }
    (void)fputc('\n', out);
}

static void csv_check(char **texts, size_t count)
{
    char *text = written(record_write, texts, count), *cursor = text, *fields[FIELDS];
    size_t found = csv_record_read(&cursor, fields, FIELDS);
    // A record of one empty field is an empty line, which is none.
    FUZZ_HOLDS(found == count || (count == 1 && texts[0][0] == '\0'), "%zu fields of %zu", found, count);
    for (size_t i = 0; i < found && i < count; i++) {
        FUZZ_HOLDS(strcmp(fields[i], texts[i]) == 0, "field %zu: '%s', was '%s'", i, fields[i], texts[i]);
    }
    FUZZ_HOLDS(*cursor == '\0', "left: %s", cursor);
    free(text);
}

static void string_write(FILE *out, char **texts, size_t count)
{
    (void)count;
    sim_text_quote(out, texts[0]);
}

// Anything is one string again, and text, which has only characters, is the same text.
static void yaml_check(char *original)
{
    char *text = written(string_write, &original, 1);
    yaml_parser_t parser;
    yaml_document_t document;
    FUZZ_HOLDS(yaml_parser_initialize(&parser), "no memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, strlen(text));
    FUZZ_HOLDS(yaml_parser_load(&parser, &document), "%s: %s", parser.problem, text);
    const yaml_node_t *node = yaml_document_get_root_node(&document);
    FUZZ_HOLDS(node != NULL && node->type == YAML_SCALAR_NODE, "%s", text);
    size_t good = 0;
    for (size_t bytes = 1; original[good] != '\0' && bytes != 0; good += bytes) {
        bytes = sim_text_character(original + good);
    }
    FUZZ_HOLDS(original[good] != '\0' || strcmp((const char *)node->data.scalar.value, original) == 0, "%s", text);
    yaml_document_delete(&document);
    yaml_parser_delete(&parser);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *texts[FIELDS];
    size_t count = texts_of(data, size, texts);
    csv_check(texts, count);
    yaml_check(texts[0]);
    for (size_t i = 0; i < count; i++) {
        free(texts[i]);
    }
    return 0;
}
