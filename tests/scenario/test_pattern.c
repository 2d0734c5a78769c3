// Regular expressions of scenarios: what is refused before the library writes out their repetitions.
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "sim/scenario/pattern.h"
#include "tests/shim/test.h"

static void expect_taken(const char *text)
{
    regex_t pattern;
    char why[SCN_WHY_MAX];
    TEST_TRACE("pattern '%s'", text);
    bool taken = scn_pattern_compile(text, &pattern, why);
    EXPECT_TRUE(taken);
    if (taken) {
        regfree(&pattern);
    }
}

static void expect_refused(const char *text, const char *reason)
{
    regex_t pattern;
    char why[SCN_WHY_MAX] = "";
    TEST_TRACE("pattern '%s'", text);
    EXPECT_FALSE(scn_pattern_compile(text, &pattern, why));
    EXPECT_STREQ(why, reason);
}

#define TOO_LARGE "repeats its parts more than 500 times"

TEST(Pattern, TakesWhatOneWrites)
{
    expect_taken("took ([0-9.]+) us");
    expect_taken("^[^]]+[]a][[:digit:][.-.]+]\\((a|b)?{2}\\)$");
    expect_taken("((a+)+)+");
    expect_taken("([0-9]{1,3}\\.){3}[0-9]{1,3}");
    expect_taken("a{200}b{200}");
    expect_taken("a{,5}");
    expect_taken("");
}

TEST(Pattern, RefusesRepetitionsThatMultiply)
{
    expect_refused("u-20+) us+++++++++++++++++++++++++++++++++++++++++++++", TOO_LARGE);
    expect_refused("((a{255}){255}){255}", TOO_LARGE);
    expect_refused("(((((((((((((((a+)+)+)+)+)+)+)+)+)+)+)+)+)+)+)+", TOO_LARGE);
    expect_refused("(a{20}b{20}){20}", TOO_LARGE);
    expect_refused("(a?){4990}", TOO_LARGE);
    expect_refused("a{100}{100}{2}", TOO_LARGE);
}

TEST(Pattern, RefusesReferencesAndDeepGroups)
{
    char deep[160];
    memset(deep, '(', 70);
    memset(deep + 70, ')', 70);
    deep[140] = '\0';
    expect_refused(deep, "more than 63 groups, one in another");
    expect_refused("(a)\\1", "\\1 refers to a group, which no extended regular expression does");
}

TEST(Pattern, TellsTheLibrarysReason)
{
    regex_t pattern;
    char why[SCN_WHY_MAX] = "";
    EXPECT_FALSE(scn_pattern_compile("(a", &pattern, why));
    EXPECT_CONTAINS(why, "Unmatched (");
    EXPECT_FALSE(scn_pattern_compile("[a", &pattern, why));
    EXPECT_FALSE(scn_pattern_compile("a\\", &pattern, why));
}

// Each that is taken takes little memory.
TEST(Pattern, WhatIsTakenIsSmall)
{
    static const char *const patterns[] = {"a{15}{30}", "((((((a+)+)+)+)+)+)+", "([a-z]{20}){20}", "(a?){240}",
                                           "a{0,490}"};
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        struct rusage before, after;
        regex_t pattern;
        char why[SCN_WHY_MAX] = "";
        TEST_TRACE("pattern '%s'", patterns[i]);
        getrusage(RUSAGE_SELF, &before);
        bool taken = scn_pattern_compile(patterns[i], &pattern, why);
        EXPECT_STREQ(why, "");
        if (taken) {
            regfree(&pattern);
        }
        getrusage(RUSAGE_SELF, &after);
        EXPECT_LE(after.ru_maxrss - before.ru_maxrss, 50000); // KB
    }
}
