// The checks of tests/shim for fixtures in fuzz targets: the first one that fails ends the program.
#include "fuzz.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tests/shim/test.h"

void test_register(struct test_case *test)
{
    (void)test;
}

bool test_check_true(bool value, const char *text, const char *file, int line)
{
    FUZZ_HOLDS(value, "%s:%d: %s", file, line, text);
    return value;
}

bool test_check_eq(uint64_t actual, uint64_t expected, const char *text, const char *file, int line)
{
    FUZZ_HOLDS(actual == expected, "%s:%d: %s: %" PRIu64 ", %" PRIu64, file, line, text, actual, expected);
    return true;
}

bool test_check_between(int64_t actual, int64_t low, int64_t high, const char *text, const char *file, int line)
{
    FUZZ_HOLDS(actual >= low && actual <= high, "%s:%d: %s is %" PRId64, file, line, text, actual);
    return true;
}

bool test_check_str(const char *actual, const char *expected, const char *text, const char *file, int line)
{
    FUZZ_HOLDS(strcmp(actual, expected) == 0, "%s:%d: %s: %s", file, line, text, actual);
    return true;
}

bool test_check_contains(const char *actual, const char *part, const char *text, const char *file, int line)
{
    FUZZ_HOLDS(strstr(actual, part) != NULL, "%s:%d: %s: %s", file, line, text, actual);
    return true;
}

bool test_check_mem(const void *actual, const void *expected, size_t size, const char *text, const char *file, int line)
{
    FUZZ_HOLDS(memcmp(actual, expected, size) == 0, "%s:%d: %s", file, line, text);
    return true;
}

void test_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "%s:%d: ", file, line);
    (void)vfprintf(stderr, format, args);
    va_end(args);
    abort();
}
