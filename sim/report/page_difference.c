#include "sim/report/page_difference.h"

#include <limits.h>
#include <string.h>

#include "sim/report/difference.h"

const char *page_directory_name(const char *directory, char *name, size_t size)
{
    size_t length = strlen(directory);
    while (length > 1 && directory[length - 1] == '/') {
        length--;
    }
    size_t begin = length;
    while (begin > 0 && directory[begin - 1] != '/') {
        begin--;
    }
    snprintf(name, size, "%.*s", (int)(length - begin), directory + begin);
    return name;
}

static bool have_one_name(const char *first, const char *second)
{
    char names[2][NAME_MAX + 1];
    return strcmp(page_directory_name(first, names[0], sizeof names[0]),
                  page_directory_name(second, names[1], sizeof names[1])) == 0;
}

void page_differences_write(const struct page_request *request, FILE *out)
{
    bool some = false;
    fputc('[', out);
    for (size_t i = 0; i < request->count; i++) {
        for (size_t k = i + 1; k < request->count; k++) {
            const char *first = request->directories[i], *second = request->directories[k];
            difference_t *difference = NULL;
            char error[PATH_MAX + 256];
            if (!have_one_name(first, second) ||
                difference_create(first, second, 0, &difference, error, sizeof error) != SIM_OK) {
                continue;
            }
            fputs(some ? ",\n" : "", out);
            some = true;
            fprintf(out, "{\"first\":%zu,\"second\":%zu,", i, k);
            difference_json_write(difference, out);
            fputc('}', out);
            difference_destroy(difference);
        }
    }
    fputc(']', out);
}
