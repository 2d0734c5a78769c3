// Tests in C, run by GoogleTest.
//
//     TEST(Credits, BlocksPostedWritesWhenDataCreditsRunOut)
//     {
//         ASSERT_EQ(link_create(...), SIM_OK);
//         EXPECT_EQ(credits_left(link), 3);
//     }
//
// Integers compare as 64-bit values and print in decimal and hexadecimal. ASSERT_* returns from the test function (or a
// helper that returns void). A test that uses the simulation creates and destroys its own.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

bool test_check_true(bool value, const char *text, const char *file, int line);
bool test_check_eq(uint64_t actual, uint64_t expected, const char *text, const char *file, int line);
bool test_check_between(int64_t actual, int64_t low, int64_t high, const char *text, const char *file, int line);
bool test_check_str(const char *actual, const char *expected, const char *text, const char *file, int line);
bool test_check_contains(const char *actual, const char *part, const char *text, const char *file, int line);
bool test_check_mem(const void *actual, const void *expected, size_t size, const char *text, const char *file,
                    int line);
void test_fail(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif

#define TEST(suite_, name_)                                                                                        \
    static void suite_##_##name_(void);                                                                            \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                                     \
    {                                                                                                              \
        static struct test_case test = {#suite_, #name_, __FILE__, __LINE__, suite_##_##name_, NULL};              \
        test_register(&test);                                                                                      \
    }                                                                                                              \
    static void suite_##_##name_(void)

#define EXPECT_TRUE(value)            (void)test_check_true((value), #value, __FILE__, __LINE__)
#define EXPECT_FALSE(value)           (void)test_check_true(!(value), "!(" #value ")", __FILE__, __LINE__)
#define EXPECT_EQ(actual, expected)                                                                                \
    (void)test_check_eq((uint64_t)(actual), (uint64_t)(expected), #actual " == " #expected, __FILE__, __LINE__)
#define EXPECT_BETWEEN(actual, low, high)                                                                          \
    (void)test_check_between((int64_t)(actual), (int64_t)(low), (int64_t)(high), #actual, __FILE__, __LINE__)
#define EXPECT_STREQ(actual, expected) (void)test_check_str((actual), (expected), #actual, __FILE__, __LINE__)
#define EXPECT_CONTAINS(actual, part)  (void)test_check_contains((actual), (part), #actual, __FILE__, __LINE__)
#define EXPECT_MEMEQ(actual, expected, size)                                                                       \
    (void)test_check_mem((actual), (expected), (size), #actual, __FILE__, __LINE__)
#define FAIL(...) test_fail(__FILE__, __LINE__, __VA_ARGS__)

#define ASSERT_TRUE(value)                                                                                         \
    do {                                                                                                           \
        if (!test_check_true((value), #value, __FILE__, __LINE__)) {                                               \
            return;                                                                                                \
        }                                                                                                          \
    } while (0)
#define ASSERT_EQ(actual, expected)                                                                                \
    do {                                                                                                           \
        if (!test_check_eq((uint64_t)(actual), (uint64_t)(expected), #actual " == " #expected, __FILE__,           \
                           __LINE__)) {                                                                            \
            return;                                                                                                \
        }                                                                                                          \
    } while (0)
