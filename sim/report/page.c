#include "sim/report/page.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nettle/base64.h>

#include "sim/report/files.h"
#include "sim/report/json.h"
#include "sim/report/notes.h"
#include "sim/report/page_parts.h"
#include "tcasim_revision.h"

// The files of a directory: under which key the page gets them.
static const struct {
    const char *file, *key;
} tables[] = {{"data.csv", "data"},           {"compare.csv", "compare"},         {"counters.csv", "counters"},
              {"breakdown.csv", "breakdown"}, {"sensitivity.csv", "sensitivity"}, {"trace.csv", "trace"}},
  pictures[] = {{"plot.svg", "plot"}, {"breakdown.svg", "breakdown"}, {"topology.svg", "topology"}};
#define COUNT(array) (sizeof(array) / sizeof *(array))

struct page {
    const struct page_request *request;
    char *error;
    size_t error_size;
    enum sim_status status;
};

static bool path_make(struct page *page, const char *directory, const char *name, char path[PATH_MAX])
{
    if (files_path(directory, name, path, PATH_MAX) == SIM_OK) {
        return true;
    }
    snprintf(page->error, page->error_size, "%s: the name is too long", directory);
    page->status = SIM_ERR_RANGE;
    return false;
}

bool page_has_results(const char *directory)
{
    char path[PATH_MAX];
    bool has = false;
    for (size_t i = 0; i < COUNT(tables) && !has; i++) {
        has = files_path(directory, tables[i].file, path, sizeof path) == SIM_OK && access(path, R_OK) == 0;
    }
    return has;
}

// --- pictures -------------------------------------------------------------------------------------------------------

// A whole file; NULL: it cannot be read, or it is larger than a picture.
static char *bytes_read(const char *path, size_t *length_out)
{
    enum { PICTURE_BYTES_MAX = 1 << 26 };
    FILE *file = fopen(path, "r");
    char *bytes = NULL;
    if (file == NULL) {
        return NULL;
    }
    if (fseek(file, 0, SEEK_END) == 0) {
        long length = ftell(file);
        rewind(file);
        bytes = length > 0 && length < PICTURE_BYTES_MAX ? malloc((size_t)length) : NULL;
        if (bytes != NULL && fread(bytes, 1, (size_t)length, file) != (size_t)length) {
            free(bytes);
            bytes = NULL;
        }
        *length_out = bytes != NULL ? (size_t)length : 0;
    }
    (void)fclose(file);
    return bytes;
}

// "data:image/svg+xml;base64,...", without quotes. false: there is no such picture.
static bool picture_write(struct page *page, const char *directory, const char *name, FILE *out)
{
    char path[PATH_MAX];
    size_t length = 0;
    char *bytes = path_make(page, directory, name, path) ? bytes_read(path, &length) : NULL;
    char *encoded = bytes != NULL ? malloc(BASE64_ENCODE_RAW_LENGTH(length)) : NULL;
    if (encoded != NULL) {
        base64_encode_raw(encoded, length, (const uint8_t *)bytes);
        fputs("data:image/svg+xml;base64,", out);
        (void)fwrite(encoded, 1, BASE64_ENCODE_RAW_LENGTH(length), out);
    }
    bool written = encoded != NULL;
    free(encoded);
    free(bytes);
    return written;
}

static bool picture_exists(struct page *page, const char *directory, const char *name)
{
    char path[PATH_MAX];
    return path_make(page, directory, name, path) && access(path, R_OK) == 0;
}

static void pictures_write(struct page *page, const char *directory, FILE *out)
{
    fputs(",\n\"images\":{", out);
    bool first = true;
    for (size_t i = 0; i < COUNT(pictures); i++) {
        if (picture_exists(page, directory, pictures[i].file)) {
            fprintf(out, "%s\"%s\":\"", first ? "" : ",", pictures[i].key);
            (void)picture_write(page, directory, pictures[i].file, out);
            fputc('"', out);
            first = false;
        }
    }
    fputc('}', out);
}

// --- data -----------------------------------------------------------------------------------------------------------

static bool is_not_zero(const struct table *table, size_t row)
{
    size_t column = table_column(table, "value");
    return column == table->columns || strcmp(table_field(table, row, column), "0") != 0;
}

static void tables_write(struct page *page, const char *directory, FILE *out)
{
    for (size_t i = 0; i < COUNT(tables) && page->status == SIM_OK; i++) {
        char path[PATH_MAX];
        struct table table;
        if (!path_make(page, directory, tables[i].file, path)) {
            return;
        }
        enum sim_status status = table_read(path, &table, page->error, page->error_size);
        if (status == SIM_ERR_NOT_FOUND) {
            continue;
        }
        page->status = status;
        if (status == SIM_OK) {
            bool counters = strcmp(tables[i].key, "counters") == 0;
            fprintf(out, ",\n\"%s\":", tables[i].key);
            json_table_write(out, &table, counters ? is_not_zero : NULL);
            table_free(&table);
        }
    }
}

static void yaml_write(struct page *page, const char *directory, const char *name, const char *key, FILE *out)
{
    char path[PATH_MAX];
    if (!path_make(page, directory, name, path) || access(path, R_OK) != 0) {
        return;
    }
    struct scn_arena arena = {0};
    struct scn_mistakes mistakes = {.arena = &arena};
    const struct scn_file file = {.name = path};
    bool readable = false;
    const struct scn_tree *root = scn_tree_read(&arena, &mistakes, &file, &readable);
    if (root == NULL || mistakes.count != 0) {
        snprintf(page->error, page->error_size, "%s: this is no YAML that tcasim has written", path);
        page->status = SIM_ERR_INVALID;
    } else {
        fprintf(out, ",\n\"%s\":", key);
        json_tree_write(out, root);
    }
    scn_arena_fini(&arena);
}

static const char *name_of(const char *directory, char name[NAME_MAX + 1])
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') {
        length--;
    }
    size_t begin = length;
    while (begin > 0 && directory[begin - 1] != '/') {
        begin--;
    }
    snprintf(name, NAME_MAX + 1, "%.*s", (int)(length - begin), directory + begin);
    return name;
}

static void data_write(struct page *page, FILE *out)
{
    char name[NAME_MAX + 1];
    fputs("{\"generator\":", out);
    json_text_write(out, "tcasim " TCASIM_VERSION ", revision " TCASIM_REVISION);
    fputs(",\n\"notes\":", out);
    notes_write(page->request->accuracy_path, out);
    fputs(",\n\"results\":[", out);
    for (size_t i = 0; i < page->request->count && page->status == SIM_OK; i++) {
        const char *directory = page->request->directories[i];
        fprintf(out, "%s{\"name\":", i > 0 ? ",\n" : "");
        json_text_write(out, name_of(directory, name));
        fputs(",\"directory\":", out);
        json_text_write(out, directory);
        tables_write(page, directory, out);
        pictures_write(page, directory, out);
        yaml_write(page, directory, "figure.yaml", "figure", out);
        yaml_write(page, directory, "manifest.yaml", "manifest", out);
        fputc('}', out);
    }
    fputs("]}", out);
}

static void figures_write(struct page *page, FILE *out)
{
    for (size_t i = 0; i < page->request->count; i++) {
        for (size_t k = 0; k < COUNT(pictures); k++) {
            const char *directory = page->request->directories[i];
            if (picture_exists(page, directory, pictures[k].file)) {
                char name[NAME_MAX + 1];
                fputs("<p><img alt=\"a figure\" src=\"", out);
                (void)picture_write(page, directory, pictures[k].file, out);
                fputs("\"><br>", out);
                for (const char *at = name_of(directory, name); *at != '\0'; at++) {
                    fputc(strchr("<>&\"", *at) != NULL ? '_' : *at, out);
                }
                fputs("</p>\n", out);
            }
        }
    }
}

// --- the page -------------------------------------------------------------------------------------------------------

// The frame has the places of the parts between two '@'.
static void part_write(struct page *page, const char *name, size_t length, FILE *out)
{
    if (length == 4 && memcmp(name, "DATA", length) == 0) {
        data_write(page, out);
    } else if (length == 7 && memcmp(name, "FIGURES", length) == 0) {
        figures_write(page, out);
    } else {
        page_part_write(name, length, out);
    }
}

static void frame_write(struct page *page, FILE *out)
{
    const char *at = page_frame;
    for (const char *mark = strchr(at, '@'); mark != NULL; mark = strchr(at, '@')) {
        const char *end = strchr(mark + 1, '@');
        (void)fwrite(at, 1, (size_t)(mark - at), out);
        part_write(page, mark + 1, (size_t)(end - mark - 1), out);
        at = end + 1;
    }
    fputs(at, out);
}

struct composed {
    char *bytes;
    size_t length;
};

static void composed_write(void *ctx, FILE *out)
{
    const struct composed *composed = ctx;
    (void)fwrite(composed->bytes, 1, composed->length, out);
}

enum sim_status page_write(const struct page_request *request, const char *path, char *error, size_t error_size)
{
    struct page page = {.request = request, .error = error, .error_size = error_size};
    // Composed in memory first: a mistake in the results leaves an earlier page as it is.
    struct composed composed = {0};
    FILE *memory = open_memstream(&composed.bytes, &composed.length);
    if (memory != NULL) {
        frame_write(&page, memory);
    }
    if (memory == NULL || fclose(memory) != 0) {
        snprintf(error, error_size, "no memory for the page");
        page.status = SIM_ERR_NO_MEMORY;
    }
    if (page.status == SIM_OK) {
        page.status = files_one_write(path, composed_write, &composed, error, error_size);
    }
    free(composed.bytes);
    return page.status;
}
