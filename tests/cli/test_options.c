#include <stdint.h>

#include "sim/cli/options.h"
#include "tests/shim/test.h"

struct values {
    const char *out;
    bool quiet;
    struct cli_list sets;
};

static const struct cli_option options[] = {
    {"out", "DIR", "where", CLI_OPTION_TEXT, offsetof(struct values, out)},
    {"quiet", NULL, "less", CLI_OPTION_FLAG, offsetof(struct values, quiet)},
    {"set", "P=V", "key", CLI_OPTION_LIST, offsetof(struct values, sets)},
};

static const struct cli_syntax syntax = {
    .usage = "x",
    .doc = "x",
    .options = options,
    .option_count = 3,
    .operands_min = 1,
    .operands_max = 2,
    .operand = "a file",
};

#define PARSE(values, files, ...)                                                                                      \
    cli_options_parse(&syntax, (int)(sizeof((char *[]){"x", __VA_ARGS__}) / sizeof(char *)),                           \
                      (char *[]){"x", __VA_ARGS__}, values, files)

TEST(Options, TakeValuesInEitherForm)
{
    struct values values = {0};
    struct cli_list files = {0};
    EXPECT_EQ(PARSE(&values, &files, "a", "--out", "d", "--set=k=v", "--quiet", "--set", "l=w"), CLI_PARSED_RUN);
    EXPECT_STREQ(values.out, "d");
    EXPECT_TRUE(values.quiet);
    ASSERT_EQ(values.sets.count, 2);
    EXPECT_STREQ(values.sets.items[0], "k=v");
    EXPECT_STREQ(values.sets.items[1], "l=w");
    cli_list_free(&values.sets);
    cli_list_free(&files);
}

TEST(Options, EndAtTwoDashes)
{
    struct values values = {0};
    struct cli_list files = {0};
    EXPECT_EQ(PARSE(&values, &files, "--", "--quiet"), CLI_PARSED_RUN);
    EXPECT_FALSE(values.quiet);
    ASSERT_EQ(files.count, 1);
    EXPECT_STREQ(files.items[0], "--quiet");
    cli_list_free(&files);
}

TEST(Options, RefuseTooFewAndTooManyOperands)
{
    struct values values = {0};
    struct cli_list files = {0};
    EXPECT_EQ(PARSE(&values, &files, "--quiet"), CLI_PARSED_WRONG);
    EXPECT_EQ(PARSE(&values, &files, "a", "b", "c"), CLI_PARSED_WRONG);
    cli_list_free(&files);
}

TEST(Options, RefuseWhatTheyDoNotKnow)
{
    struct values values = {0};
    struct cli_list files = {0};
    EXPECT_EQ(PARSE(&values, &files, "a", "--oot", "d"), CLI_PARSED_WRONG);
    cli_list_free(&files);
    EXPECT_EQ(PARSE(&values, &files, "a", "-q"), CLI_PARSED_WRONG);
    cli_list_free(&files);
    EXPECT_EQ(PARSE(&values, &files, "a", "--quiet=1"), CLI_PARSED_WRONG);
    cli_list_free(&files);
    EXPECT_EQ(PARSE(&values, &files, "a", "--out"), CLI_PARSED_WRONG);
    cli_list_free(&files);
}

TEST(Options, SuggestTheNearestNameOnly)
{
    const char *const names[] = {"run", "check", "params"};
    EXPECT_STREQ(cli_nearest("rum", names, 3), "run");
    EXPECT_STREQ(cli_nearest("chekc", names, 3), "check");
    EXPECT_STREQ(cli_nearest("param", names, 3), "params");
    EXPECT_NULL(cli_nearest("bananas", names, 3));
    EXPECT_NULL(cli_nearest("a word that is longer than any name can be", names, 3));
}

TEST(Numbers, HaveNoSignAndFitInto64Bits)
{
    static const char *const wrong[] = {"18446744073709551616", "99999999999999999999", "-1", "+1", " 1", "", "x"};
    uint64_t number = 0;
    char *end = NULL;
    EXPECT_TRUE(cli_number_read("18446744073709551615", &end, &number));
    EXPECT_EQ(number, UINT64_MAX);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        TEST_TRACE("'%s'", wrong[i]);
        EXPECT_FALSE(cli_number_read(wrong[i], &end, &number));
    }
}
