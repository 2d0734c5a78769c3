// What the checks of tests/shim need of a test program, in fuzz targets: the first check that fails ends the program.
#include "fuzz.h"

#include <stdarg.h>

#include "tests/shim/test.h"

void test_register(struct test_case *test)
{
    (void)test;
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

uint64_t test_trace_enter(const char *file, int line, const char *format, ...)
{
    (void)file, (void)line, (void)format;
    return 0;
}

void test_trace_leave(const uint64_t *trace)
{
    (void)trace;
}
