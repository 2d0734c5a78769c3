// What a failed expectation prints.
#include <string.h>

#include "tests/shim/test.h"

// Runs body and expects one failure with these parts in its message, in order.
static void expect_message(void (*body)(void *arg), const char *name, const char *const *parts, unsigned count)
{
    char text[1024];
    TEST_TRACE("%s", name);
    EXPECT_EQ(test_failures_of(body, NULL, text, sizeof text), 1);
    const char *at = text;
    for (unsigned i = 0; i < count; i++) {
        ASSERT_CONTAINS(at, parts[i]);
        at = strstr(at, parts[i]);
    }
}

#define EXPECT_MESSAGE(body, ...)                                                                                      \
    expect_message(body, #body, (const char *const[]){__VA_ARGS__},                                                    \
                   sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

static void nothing_fails(void *arg)
{
    const uint64_t large = UINT64_C(1) << 63;
    EXPECT_LT(-1, 1u);
    EXPECT_LT(-2, -1);
    EXPECT_GT(large, -1);
    EXPECT_GE(large, INT64_MAX);
    EXPECT_LE(5, 5u);
    EXPECT_NE(large, 0);
    EXPECT_EQ(-1, UINT64_MAX); // as 64-bit values
    EXPECT_LT(0.5, 1);
    EXPECT_EQ(0.5, 0.5f);
    EXPECT_NE(2.5, 2);
    EXPECT_NOT_NULL(arg);
    EXPECT_NULL(NULL);
    EXPECT_STRNE("a", "b");
    EXPECT_LACKS("abc", "ac");
}

TEST(Assertions, MessagesAreNotPrintedForWhatHolds)
{
    char text[1024];
    EXPECT_EQ(test_failures_of(nothing_fails, text, text, sizeof text), 0);
    EXPECT_STREQ(text, "");
}

static void unsigned_fails(void *arg)
{
    (void)arg;
    const unsigned seen = 12, bound = 10;
    EXPECT_LT(seen, bound);
}

static void signed_fails(void *arg)
{
    (void)arg;
    const int error = -22;
    EXPECT_EQ(error, 0);
}

static void large_fails(void *arg)
{
    (void)arg;
    const uint64_t large = UINT64_MAX;
    EXPECT_LE(large, -1);
}

static void bit_field_fails(void *arg)
{
    (void)arg;
    const struct {
        unsigned few : 3;
    } bits = {.few = 5};
    EXPECT_GE(bits.few, 6);
}

TEST(Assertions, MessagesHoldBothNumbersOfAComparison)
{
    EXPECT_MESSAGE(unsigned_fails, "seen < bound", "left     12 (0xc)", "right    10 (0xa)");
    EXPECT_MESSAGE(signed_fails, "error == 0", "actual   -22\n", "expected 0 (0x0)");
    EXPECT_MESSAGE(large_fails, "large <= -1", "left     18446744073709551615 (0xffffffffffffffff)", "right    -1");
    EXPECT_MESSAGE(bit_field_fails, "bits.few >= 6", "left     5 (0x5)", "right    6 (0x6)");
}

static void real_fails(void *arg)
{
    (void)arg;
    const double ratio = 0.75;
    EXPECT_GT(ratio, 1);
}

static void truncated_fails(void *arg)
{
    (void)arg;
    EXPECT_EQ(2.5, 2);
}

TEST(Assertions, MessagesHoldFloatingPointAsSuch)
{
    EXPECT_MESSAGE(real_fails, "ratio > 1", "left     0.75", "right    1 (0x1)");
    EXPECT_MESSAGE(truncated_fails, "actual   2.5", "expected 2 (0x2)");
}

static void pointers_fail(void *arg)
{
    (void)arg;
    const char *const one = (const char *)0x1000;
    EXPECT_EQ(one, NULL);
}

static void null_fails(void *arg)
{
    (void)arg;
    EXPECT_NULL((void *)0x2000);
}

static void not_null_fails(void *arg)
{
    EXPECT_NOT_NULL(arg);
}

TEST(Assertions, MessagesHoldPointers)
{
    EXPECT_MESSAGE(pointers_fail, "one == NULL", "actual   0x1000", "expected NULL");
    EXPECT_MESSAGE(null_fails, "is 0x2000, not NULL");
    EXPECT_MESSAGE(not_null_fails, "arg is NULL");
}

static void text_fails(void *arg)
{
    (void)arg;
    EXPECT_LACKS("one two", "two");
}

static void absent_text_fails(void *arg)
{
    EXPECT_STREQ(arg, "text");
}

static void absent_bytes_fail(void *arg)
{
    EXPECT_MEMEQ(arg, "text", 4);
}

TEST(Assertions, MessagesHoldTexts)
{
    EXPECT_MESSAGE(text_fails, "\"one two\"", "contains \"two\"");
    EXPECT_MESSAGE(absent_text_fails, "actual   NULL", "expected \"text\"");
    EXPECT_MESSAGE(absent_bytes_fail, "the actual bytes are at NULL");
}

static void operands_count(void *arg)
{
    unsigned *calls = arg;
    EXPECT_EQ(++*calls, 1);
    EXPECT_LT(++*calls, 3u);
    if (!EXPECT_EQ(*calls, 99)) {
        return;
    }
    *calls = 77;
}

TEST(Assertions, OperandsAreEvaluatedOnceAndExpectationsTellWhetherTheyHeld)
{
    char text[1024];
    unsigned calls = 0;
    EXPECT_EQ(test_failures_of(operands_count, &calls, text, sizeof text), 1);
    EXPECT_EQ(calls, 2);
}

static void assertion_returns(void *arg)
{
    ASSERT_GT(*(unsigned *)arg, 5);
    *(unsigned *)arg = 77;
}

TEST(Assertions, AnAssertEndsItsFunction)
{
    char text[1024];
    unsigned value = 3;
    EXPECT_EQ(test_failures_of(assertion_returns, &value, text, sizeof text), 1);
    EXPECT_EQ(value, 3);
}
