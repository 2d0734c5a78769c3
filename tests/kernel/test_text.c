#include "sim/kernel/text.h"

#include <stdlib.h>

#include "tests/shim/test.h"

static void expect_shown(const char *text, const char *kept, const char *expected)
{
    char *shown = sim_text_printable(text, kept);
    EXPECT_STREQ(shown, expected);
    free(shown);
}

TEST(Text, ShowsControlCharactersAsEscapes)
{
    expect_shown("", "", "");
    expect_shown("plain, \xc3\xa9 and \xe6\x97\xa5", "", "plain, \xc3\xa9 and \xe6\x97\xa5");
    expect_shown("a\nb\x1b[31mc\x7f\t", "", "a\\nb\\x1b[31mc\\x7f\\x09");
    expect_shown("a\nb\tc\r", "\n\t", "a\nb\tc\\x0d");
    expect_shown("\xc2\x9b"
                 "31m \xc2\xa0",
                 "", "\\x9b31m \xc2\xa0"); // a C1 character, and a blank that is none
    expect_shown("cut \xc2", "", "cut \xc2");
}

static void expect_written(void (*write)(FILE *out, const char *text), const char *text, const char *expected)
{
    char *written = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&written, &size);
    write(out, text);
    fclose(out);
    EXPECT_STREQ(written, expected);
    free(written);
}

TEST(Text, IsQuotedAsJsonAndYamlReadIt)
{
    expect_written(sim_text_quote, "", "\"\"");
    expect_written(sim_text_quote, "say \"\\\" <\xc3\xa9>", "\"say \\\"\\\\\\\" <\xc3\xa9>\"");
    expect_written(sim_text_quote, "a\nb\x7f\xc2\x85\xef\xbb\xbf", "\"a\\u000ab\\u007f\\u0085\\ufeff\"");
    expect_written(sim_text_quote, "cut \xc2", "\"cut ?\"");
}

TEST(Text, IsNoRequestOfTheManual)
{
    expect_written(sim_text_manual, ".SH a-b\n'c\\.d", "\\&.SH a\\-b\n\\&'c\\e.d");
}

TEST(Text, EndsUnicodeAtItsLastCharacter)
{
    EXPECT_EQ(sim_text_character("\xf4\x8f\xbf\xbf"), 4); // U+10FFFF
    EXPECT_EQ(sim_text_character("\xf4\x90\x80\x80"), 0); // U+110000
    EXPECT_EQ(sim_text_character("\xf4\xbf\xbf\xbf"), 0);
    EXPECT_EQ(sim_text_character("\xf5\x80\x80\x80"), 0);
}
