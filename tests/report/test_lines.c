// Texts as lines: their difference, and bytes that are not text.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/lines.h"
#include "tests/shim/test.h"

static struct lines_text text_of(const char *bytes)
{
    return (struct lines_text){bytes, strlen(bytes)};
}

static void difference_is(const char *expected, const char *printed, const char *difference)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    lines_difference_write(out, text_of(expected), text_of(printed));
    fclose(out);
    EXPECT_STREQ(text, difference);
    free(text);
}

TEST(Lines, EqualTextsHaveNoDifference)
{
    difference_is("", "", "");
    difference_is("a\nb\n", "a\nb\n", "");
}

TEST(Lines, ADifferenceHasThreeLinesAroundIt)
{
    difference_is("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
                  "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n");
}

TEST(Lines, ChangesFarApartAreApart)
{
    difference_is("a\n1\n2\n3\n4\n5\n6\n7\nb\n", "1\n2\n3\n4\n5\n6\n7\n",
                  "@@ -1,4 +1,3 @@\n-a\n 1\n 2\n 3\n@@ -6,4 +5,3 @@\n 5\n 6\n 7\n-b\n");
}

TEST(Lines, WhatIsInBothStaysAligned)
{
    difference_is("a\nb\nc\nd\n", "b\nx\nc\n", "@@ -1,4 +1,3 @@\n-a\n b\n+x\n c\n-d\n");
    difference_is("", "a\n", "@@ -0,0 +1,1 @@\n+a\n");
    difference_is("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
}

TEST(Lines, ALastLineWithoutANewlineDiffersFromOneWithIt)
{
    difference_is("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n");
    difference_is("a\n", "a", "@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file\n");
    difference_is("b\na", "b\na", "");
}

TEST(Lines, ALongDifferenceIsCut)
{
    char printed[8 * 300], *text = NULL;
    size_t size = 0, length = 0;
    for (int i = 0; i < 300; i++) {
        length += (size_t)snprintf(printed + length, sizeof printed - length, "%d\n", i);
    }
    FILE *out = open_memstream(&text, &size);
    lines_difference_write(out, text_of(""), text_of(printed));
    fclose(out);
    EXPECT_CONTAINS(text, "\n+59\n... and 240 more lines\n");
    free(text);
}

// Texts that are too long for the table of the common subsequence count as replaced.
TEST(Lines, AVeryLongDifferenceEnds)
{
    enum { LINES = 100000 };
    char *a = malloc(LINES * 8), *b = malloc(LINES * 8), *text = NULL;
    size_t size = 0, length_a = 0, length_b = 0;
    for (int i = 0; i < LINES; i++) {
        length_a += (size_t)sprintf(a + length_a, "%d\n", i);
        length_b += (size_t)sprintf(b + length_b, "%d\n", i + 1 + i % 2);
    }
    FILE *out = open_memstream(&text, &size);
    lines_difference_write(out, (struct lines_text){a, length_a}, (struct lines_text){b, length_b});
    fclose(out);
    EXPECT_CONTAINS(text, "more lines\n");
    free(text);
    free(a);
    free(b);
}

static void shown_is(const char *bytes, size_t length, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    lines_shown_write(out, (struct lines_text){bytes, length});
    fclose(out);
    EXPECT_STREQ(text, expected);
    free(text);
}

TEST(Lines, WhatIsNoTextIsShownAsBytes)
{
    shown_is("a\tµs €\xf0\x9f\x98\x80", 13, "a\tµs €\xf0\x9f\x98\x80");
    shown_is("\x00\x1b\x7f\r", 4, "\\x00\\x1b\\x7f\\x0d");
    shown_is("\xc0\xaf", 2, "\\xc0\\xaf");                   // longer than necessary
    shown_is("\xed\xa0\x80", 3, "\\xed\\xa0\\x80");          // half of a surrogate pair
    shown_is("\xef\xbf\xbf", 3, "\\xef\\xbf\\xbf");          // not a character
    shown_is("\xf4\x90\x80\x80", 4, "\\xf4\\x90\\x80\\x80"); // beyond the last code
    shown_is("\xe2\x82", 2, "\\xe2\\x82");                   // cut off
    shown_is("\xc2\x85", 2, "\\xc2\\x85");                   // a control character of ISO 6429
}

static void tail_is(const char *bytes, const char *expected)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    lines_tail_write(out, text_of(bytes), 2, "> ");
    fclose(out);
    EXPECT_STREQ(text, expected);
    free(text);
}

TEST(Lines, TheTailIsTheLastLines)
{
    tail_is("", "");
    tail_is("a\n", "> a\n");
    tail_is("a\nb\n", "> a\n> b\n");
    tail_is("a\nb\nc", "> b\n> c\n");
    tail_is("a\nb\n\n", "> b\n> \n");
}
