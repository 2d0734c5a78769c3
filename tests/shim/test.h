// Tests in C, run by GoogleTest.
//
//     TEST(Credits, BlocksPostedWritesWhenDataCreditsRunOut)
//     {
//         ASSERT_EQ(link_create(...), SIM_OK);
//         for (unsigned seed = 1; seed <= SEEDS; seed++) {
//             TEST_TRACE("seed %u", seed);
//             EXPECT_LE(credits_left(link), 3);
//         }
//     }
//
// A failure says what was seen: EXPECT_EQ, _NE, _LT, _LE, _GT, _GE, _BETWEEN, _NULL and _NOT_NULL print their
// operands, EXPECT_STREQ, _STRNE, _CONTAINS and _LACKS their texts, EXPECT_MEMEQ the first byte that differs. EXPECT_TRUE
// and EXPECT_FALSE are for what is no comparison; a test refuses them with one inside. Both sides of `a && b` are
// expected one by one. EXPECT_EQ and EXPECT_NE compare integers and pointers as 64-bit values; the others compare the
// mathematical values, so that -1 is less than any unsigned number. Floating point compares exactly. Numbers print in
// decimal and hexadecimal.
//
// What a test uses after it was checked must hold then: a pointer that is dereferenced, a count that bounds a loop, a
// call whose results are read. ASSERT_* returns from the test function (or a helper that returns void) if it does not
// hold. Each EXPECT_* is an expression that tells whether it held, for helpers that return a value:
//
//     if (!EXPECT_EQ(counter_find(sim, name, &counter), SIM_OK)) {
//         return 0;
//     }
//
// TEST_TRACE names where a test is, in the style of printf: the call of a helper, the case of a table, the seed and the
// step of a random walk. The line stands beneath each failure until the scope ends, beside those of enclosing scopes and
// of callers. In a simulated thread these are the thread's own and those of the code that runs the simulation.
//
// A test that uses the simulation creates and destroys its own. Failures are reported from the thread of the process
// that runs the tests and from simulated threads.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/shim/value.h"

#ifdef __cplusplus
extern "C" {
#endif

struct test_case {
    const char *suite, *name, *file;
    int line;
    void (*body)(void);
    struct test_case *next;
};

void test_register(struct test_case *test);

// The memory that the first argument points to is not read: it may be uninitialised.
#if __has_attribute(access)
#define TEST_POINTER_ONLY __attribute__((access(none, 1)))
#else
#define TEST_POINTER_ONLY
#endif

enum test_relation { TEST_EQ, TEST_NE, TEST_LT, TEST_LE, TEST_GT, TEST_GE };

bool test_check_true(bool value, const char *text, const char *file, int line);
bool test_check(enum test_relation relation, struct test_value left, struct test_value right, const char *text,
                const char *file, int line);
bool test_check_between(int64_t actual, int64_t low, int64_t high, const char *text, const char *file, int line);
bool test_check_null(const volatile void *actual, const char *text, const char *file, int line) TEST_POINTER_ONLY;
bool test_check_not_null(const volatile void *actual, const char *text, const char *file, int line) TEST_POINTER_ONLY;
bool test_check_str(const char *actual, const char *expected, const char *text, const char *file, int line);
bool test_check_other_str(const char *actual, const char *other, const char *text, const char *file, int line);
bool test_check_contains(const char *actual, const char *part, const char *text, const char *file, int line);
bool test_check_lacks(const char *actual, const char *part, const char *text, const char *file, int line);
bool test_check_mem(const void *actual, const void *expected, size_t size, const char *text, const char *file,
                    int line);
void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

// A trace from entry until it is left. test_trace_enter returns its number; test_trace_leave takes the address of it, as
// the attribute `cleanup` requires.
uint64_t test_trace_enter(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
void test_trace_leave(const uint64_t *trace);

// For tests of this shim: runs body, whose failures do not count, and stores their messages in text, cut off at its end.
// Returns the number of failures.
unsigned test_failures_of(void (*body)(void *arg), void *arg, char *text, size_t text_bytes);

#ifdef __cplusplus
}
#else // the macros are for C: in C++ they are GoogleTest's own

#define TEST(suite_, name_)                                                                                            \
    static void suite_##_##name_(void);                                                                                \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                                         \
    {                                                                                                                  \
        static struct test_case test = {#suite_, #name_, __FILE__, __LINE__, suite_##_##name_, NULL};                  \
        test_register(&test);                                                                                          \
    }                                                                                                                  \
    static void suite_##_##name_(void)

#define TEST_JOIN_(a, b) a##b
#define TEST_JOIN(a, b)  TEST_JOIN_(a, b)
#define TEST_TRACE(...)                                                                                                \
    __attribute__((cleanup(test_trace_leave))) const uint64_t TEST_JOIN(test_trace_, __COUNTER__) =                    \
        test_trace_enter(__FILE__, __LINE__, __VA_ARGS__)

#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define EXPECT_TRUE(value)  test_check_true((value), #value, __FILE__, __LINE__)
#define EXPECT_FALSE(value) test_check_true(!(value), "!(" #value ")", __FILE__, __LINE__)
#define EXPECT_EQ(actual, expected)                                                                                    \
    test_check(TEST_EQ, TEST_VALUE(actual), TEST_VALUE(expected), #actual " == " #expected, __FILE__, __LINE__)
#define EXPECT_NE(left, right)                                                                                         \
    test_check(TEST_NE, TEST_VALUE(left), TEST_VALUE(right), #left " != " #right, __FILE__, __LINE__)
#define EXPECT_LT(left, right)                                                                                         \
    test_check(TEST_LT, TEST_VALUE(left), TEST_VALUE(right), #left " < " #right, __FILE__, __LINE__)
#define EXPECT_LE(left, right)                                                                                         \
    test_check(TEST_LE, TEST_VALUE(left), TEST_VALUE(right), #left " <= " #right, __FILE__, __LINE__)
#define EXPECT_GT(left, right)                                                                                         \
    test_check(TEST_GT, TEST_VALUE(left), TEST_VALUE(right), #left " > " #right, __FILE__, __LINE__)
#define EXPECT_GE(left, right)                                                                                         \
    test_check(TEST_GE, TEST_VALUE(left), TEST_VALUE(right), #left " >= " #right, __FILE__, __LINE__)
#define EXPECT_BETWEEN(actual, low, high)                                                                              \
    test_check_between((int64_t)(actual), (int64_t)(low), (int64_t)(high), #actual, __FILE__, __LINE__)
#define EXPECT_NULL(actual)                  test_check_null((actual), #actual, __FILE__, __LINE__)
#define EXPECT_NOT_NULL(actual)              test_check_not_null((actual), #actual, __FILE__, __LINE__)
#define EXPECT_STREQ(actual, expected)       test_check_str((actual), (expected), #actual, __FILE__, __LINE__)
#define EXPECT_STRNE(actual, other)          test_check_other_str((actual), (other), #actual, __FILE__, __LINE__)
#define EXPECT_CONTAINS(actual, part)        test_check_contains((actual), (part), #actual, __FILE__, __LINE__)
#define EXPECT_LACKS(actual, part)           test_check_lacks((actual), (part), #actual, __FILE__, __LINE__)
#define EXPECT_MEMEQ(actual, expected, size) test_check_mem((actual), (expected), (size), #actual, __FILE__, __LINE__)

#define TEST_ASSERT(check)                                                                                             \
    do {                                                                                                               \
        if (!(check)) {                                                                                                \
            return;                                                                                                    \
        }                                                                                                              \
    } while (0)
#define ASSERT_TRUE(value)  TEST_ASSERT(test_check_true((value), #value, __FILE__, __LINE__))
#define ASSERT_FALSE(value) TEST_ASSERT(test_check_true(!(value), "!(" #value ")", __FILE__, __LINE__))
#define ASSERT_EQ(actual, expected)                                                                                    \
    TEST_ASSERT(                                                                                                       \
        test_check(TEST_EQ, TEST_VALUE(actual), TEST_VALUE(expected), #actual " == " #expected, __FILE__, __LINE__))
#define ASSERT_NE(left, right)                                                                                         \
    TEST_ASSERT(test_check(TEST_NE, TEST_VALUE(left), TEST_VALUE(right), #left " != " #right, __FILE__, __LINE__))
#define ASSERT_LT(left, right)                                                                                         \
    TEST_ASSERT(test_check(TEST_LT, TEST_VALUE(left), TEST_VALUE(right), #left " < " #right, __FILE__, __LINE__))
#define ASSERT_LE(left, right)                                                                                         \
    TEST_ASSERT(test_check(TEST_LE, TEST_VALUE(left), TEST_VALUE(right), #left " <= " #right, __FILE__, __LINE__))
#define ASSERT_GT(left, right)                                                                                         \
    TEST_ASSERT(test_check(TEST_GT, TEST_VALUE(left), TEST_VALUE(right), #left " > " #right, __FILE__, __LINE__))
#define ASSERT_GE(left, right)                                                                                         \
    TEST_ASSERT(test_check(TEST_GE, TEST_VALUE(left), TEST_VALUE(right), #left " >= " #right, __FILE__, __LINE__))
#define ASSERT_NOT_NULL(actual)        TEST_ASSERT(test_check_not_null((actual), #actual, __FILE__, __LINE__))
#define ASSERT_STREQ(actual, expected) TEST_ASSERT(test_check_str((actual), (expected), #actual, __FILE__, __LINE__))
#define ASSERT_CONTAINS(actual, part)  TEST_ASSERT(test_check_contains((actual), (part), #actual, __FILE__, __LINE__))

#endif
