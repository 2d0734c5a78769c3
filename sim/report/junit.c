#include "sim/report/junit.h"

#include <stdlib.h>
#include <string.h>

#include "sim/report/lines.h"

struct test {
    char *name, *message, *detail; // message and detail may be NULL
    unsigned line;
    enum junit_state state;
};

struct suite {
    char *name, *file;
    struct test *tests;
    size_t count;
};

struct junit {
    struct suite *suites;
    size_t count;
};

static void *grow(void *array, size_t count, size_t size)
{
    void *grown = realloc(array, (count + 1) * size);
    if (grown == NULL) {
        sim_panic("report", "out of memory for JUnit's XML");
    }
    return grown;
}

static char *copy(const char *text)
{
    char *copied = text != NULL ? strdup(text) : NULL;
    if (text != NULL && copied == NULL) {
        sim_panic("report", "out of memory for JUnit's XML");
    }
    return copied;
}

junit_t *junit_create(void)
{
    junit_t *junit = grow(NULL, 0, sizeof *junit);
    *junit = (junit_t){0};
    return junit;
}

void junit_destroy(junit_t *junit)
{
    for (size_t i = 0; junit != NULL && i < junit->count; i++) {
        struct suite *suite = &junit->suites[i];
        for (size_t k = 0; k < suite->count; k++) {
            free(suite->tests[k].name);
            free(suite->tests[k].message);
            free(suite->tests[k].detail);
        }
        free(suite->tests);
        free(suite->name);
        free(suite->file);
    }
    free(junit != NULL ? junit->suites : NULL);
    free(junit);
}

void junit_suite_begin(junit_t *junit, const char *name, const char *file)
{
    junit->suites = grow(junit->suites, junit->count, sizeof *junit->suites);
    junit->suites[junit->count++] = (struct suite){.name = copy(name), .file = copy(file)};
}

void junit_case_add(junit_t *junit, const char *name, unsigned line, enum junit_state state, const char *message,
                    const char *detail)
{
    struct suite *suite = &junit->suites[junit->count - 1];
    suite->tests = grow(suite->tests, suite->count, sizeof *suite->tests);
    suite->tests[suite->count++] = (struct test){copy(name), copy(message), copy(detail), line, state};
}

// --- XML ------------------------------------------------------------------------------------------------------------

// In an attribute a parser would read a newline or a tab as a blank.
static const char *entity_of(char c, bool attribute)
{
    switch (c) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\n':
        return attribute ? "&#10;" : NULL;
    case '\t':
        return attribute ? "&#9;" : NULL;
    }
    return NULL;
}

static void text_write(FILE *out, const char *text, bool attribute)
{
    struct lines_text rest = {text, strlen(text)};
    while (rest.length > 0) {
        unsigned length = lines_utf8_length(rest);
        const char *entity = entity_of(*rest.bytes, attribute);
        if (entity != NULL) {
            fputs(entity, out);
        } else if (length == 0) {
            fprintf(out, "\\x%02x", (unsigned)(unsigned char)*rest.bytes);
        } else {
            (void)fwrite(rest.bytes, 1, length, out);
        }
        rest.bytes += length > 0 ? length : 1;
        rest.length -= length > 0 ? length : 1;
    }
}

static void attribute_write(FILE *out, const char *name, const char *value)
{
    fprintf(out, " %s=\"", name);
    text_write(out, value, true);
    fputc('"', out);
}

static void test_write(FILE *out, const struct suite *suite, const struct test *test)
{
    static const char *const elements[] = {
        [JUNIT_FAILED] = "failure", [JUNIT_ERROR] = "error", [JUNIT_SKIPPED] = "skipped"};
    fputs("    <testcase", out);
    attribute_write(out, "classname", suite->name);
    attribute_write(out, "name", test->name);
    attribute_write(out, "file", suite->file);
    if (test->line > 0) {
        fprintf(out, " line=\"%u\"", test->line);
    }
    fputs(" time=\"0\"", out);
    if (test->state == JUNIT_PASSED) {
        fputs("/>\n", out);
        return;
    }
    fprintf(out, ">\n      <%s", elements[test->state]);
    attribute_write(out, "message", test->message != NULL ? test->message : "");
    if (test->state != JUNIT_SKIPPED) {
        attribute_write(out, "type", test->state == JUNIT_FAILED ? "expectation" : "simulation");
        fputc('>', out);
        text_write(out, test->message != NULL ? test->message : "", false);
        fputs(test->detail != NULL ? "\n" : "", out);
        text_write(out, test->detail != NULL ? test->detail : "", false);
        fprintf(out, "</%s>\n    </testcase>\n", elements[test->state]);
    } else {
        fputs("/>\n    </testcase>\n", out);
    }
}

static size_t count_of(const struct suite *suite, enum junit_state state)
{
    size_t count = 0;
    for (size_t i = 0; i < suite->count; i++) {
        count += suite->tests[i].state == state;
    }
    return count;
}

void junit_suites_write(const junit_t *junit, FILE *out)
{
    for (size_t i = 0; i < junit->count; i++) {
        const struct suite *suite = &junit->suites[i];
        fputs("  <testsuite", out);
        attribute_write(out, "name", suite->name);
        fprintf(out, " tests=\"%zu\" failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"0\">\n", suite->count,
                count_of(suite, JUNIT_FAILED), count_of(suite, JUNIT_ERROR), count_of(suite, JUNIT_SKIPPED));
        for (size_t k = 0; k < suite->count; k++) {
            test_write(out, suite, &suite->tests[k]);
        }
        fputs("  </testsuite>\n", out);
    }
}

void junit_head_write(FILE *out)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"tcasim\">\n", out);
}

void junit_foot_write(FILE *out)
{
    fputs("</testsuites>\n", out);
}
