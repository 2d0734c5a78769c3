#include "sim/report/page.h"

#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <nettle/base64.h>

#include "sim/report/compare.h"
#include "sim/report/files.h"
#include "sim/report/json.h"
#include "sim/report/lines.h"
#include "sim/report/notes.h"
#include "sim/report/page_difference.h"
#include "sim/report/page_links.h"
#include "sim/report/page_parts.h"
#include "sim/report/topology_folded.h"
#include "tcasim_revision.h"

// The files of a directory: under which key the page gets them.
static const struct {
    const char *file, *key;
} tables[] = {{"data.csv", "data"},           {"compare.csv", "compare"},         {"counters.csv", "counters"},
              {"breakdown.csv", "breakdown"}, {"sensitivity.csv", "sensitivity"}, {"trace.csv", "trace"}};
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

// "data:image/svg+xml;base64,..." between two texts; nothing if there is no such picture.
static void picture_write(struct page *page, const char *directory, const char *name, const char *before,
                          const char *after, FILE *out)
{
    char path[PATH_MAX], *bytes = NULL;
    size_t length = 0;
    if (!path_make(page, directory, name, path) || lines_file_read(path, &bytes, &length) != SIM_OK) {
        return;
    }
    char *encoded = malloc(BASE64_ENCODE_RAW_LENGTH(length) + 1);
    if (encoded != NULL) {
        base64_encode_raw(encoded, length, (const uint8_t *)bytes);
        fprintf(out, "%sdata:image/svg+xml;base64,", before);
        (void)fwrite(encoded, 1, BASE64_ENCODE_RAW_LENGTH(length), out);
        fputs(after, out);
    }
    free(encoded);
    free(bytes);
}

// What the scripts show as it is; all else they draw themselves.
static void pictures_write(struct page *page, const char *directory, FILE *out)
{
    char calibration[PATH_MAX];
    if (!page_links_write(page->request, directory, out)) {
        picture_write(page, directory, "topology.svg", ",\n\"topology\":\"", "\"", out);
    }
    if (path_make(page, directory, "sensitivity.csv", calibration) && access(calibration, R_OK) == 0) {
        picture_write(page, directory, "plot.svg", ",\n\"plot\":\"", "\"", out);
    }
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
    if (path_make(page, directory, name, path) && access(path, R_OK) == 0) {
        fprintf(out, ",\n\"%s\":", key);
        page->status = json_yaml_write(out, path, false, page->error, page->error_size);
    }
}

static void data_write(struct page *page, FILE *out)
{
    char name[NAME_MAX + 1];
    fputs("{\"generator\":", out);
    json_text_write(out, "tcasim " TCASIM_VERSION ", revision " TCASIM_REVISION);
    fprintf(out, ",\n\"ok_percent\":%g,\"near_percent\":%g,\"notes\":", REPORT_OK_PERCENT, REPORT_NEAR_PERCENT);
    notes_write(page->request->accuracy_path, out);
    fputs(",\n\"results\":[", out);
    for (size_t i = 0; i < page->request->count && page->status == SIM_OK; i++) {
        const char *directory = page->request->directories[i];
        fprintf(out, "%s{\"name\":", i > 0 ? ",\n" : "");
        const char *own = page->request->name;
        json_text_write(out, own != NULL ? own : page_directory_name(directory, name, sizeof name));
        fputs(",\"directory\":", out);
        json_text_write(out, own != NULL ? "." : directory);
        tables_write(page, directory, out);
        pictures_write(page, directory, out);
        yaml_write(page, directory, "figure.yaml", "figure", out);
        yaml_write(page, directory, "manifest.yaml", "manifest", out);
        fputc('}', out);
    }
    fputs("],\n\"differences\":", out);
    page_differences_write(page->request, out);
    if (page->request->watch.script != NULL) {
        fputs(",\n\"watch\":{\"script\":", out);
        json_text_write(out, page->request->watch.script);
        fprintf(out, ",\"version\":%" PRIu64 "}", page->request->watch.version);
    }
    fputc('}', out);
}

// For browsers without scripts.
static void figures_write(struct page *page, FILE *out)
{
    static const char *const pictures[] = {"plot.svg", "breakdown.svg", "topology.svg"};
    for (size_t i = 0; i < page->request->count; i++) {
        char name[NAME_MAX + 1];
        fputs("<h2>", out);
        topology_text_write(out, page->request->name != NULL
                                     ? page->request->name
                                     : page_directory_name(page->request->directories[i], name, sizeof name));
        fputs("</h2>\n", out);
        for (size_t k = 0; k < COUNT(pictures); k++) {
            picture_write(page, page->request->directories[i], pictures[k], "<p><img alt=\"a figure\" src=\"",
                          "\"></p>\n", out);
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

static void version_write(void *ctx, FILE *out)
{
    const struct page_request *request = ctx;
    fprintf(out, "tcasimNewest(%" PRIu64 ");\n", request->watch.version);
}

enum sim_status page_watch_write(const struct page_request *request, const char *path, char *error, size_t error_size)
{
    return files_one_write(path, version_write, (void *)(uintptr_t)request, error, error_size);
}
