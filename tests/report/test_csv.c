#include <stdlib.h>
#include <string.h>

#include "sim/report/csv.h"
#include "tests/shim/test.h"

static char *written(const char *text, bool number, uint64_t micro)
{
    char *result = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&result, &size);
    if (number) {
        csv_micro_write(out, micro);
    } else {
        csv_text_write(out, text);
    }
    fclose(out);
    return result;
}

static void text_is(const char *text, const char *expected)
{
    char *result = written(text, false, 0);
    EXPECT_STREQ(result, expected);
    free(result);
}

static void number_is(uint64_t micro, const char *expected)
{
    char *result = written(NULL, true, micro);
    EXPECT_STREQ(result, expected);
    free(result);
}

TEST(Csv, LeavesPlainTextsAlone)
{
    text_is("PIO CPU-CPU", "PIO CPU-CPU");
    text_is("", "");
}

TEST(Csv, QuotesTextsWithCommasQuotesAndNewlines)
{
    text_is("a,b", "\"a,b\"");
    text_is("a \"b\"", "\"a \"\"b\"\"\"");
    text_is("a\nb", "\"a\nb\"");
}

TEST(Csv, WritesMillionthsWithSixDecimals)
{
    number_is(0, "0.000000");
    number_is(1, "0.000001");
    number_is(912345, "0.912345");
    number_is(3660000, "3.660000");
    number_is(UINT64_MAX, "18446744073709.551615");
}

TEST(Csv, ReadsBackWhatItQuoted)
{
    char text[] = "a,\"b,\"\"c\"\"\nd\",\r\nlast";
    char *cursor = text;
    char *fields[3];
    ASSERT_EQ(csv_record_read(&cursor, fields, 3), 3);
    EXPECT_STREQ(fields[0], "a");
    EXPECT_STREQ(fields[1], "b,\"c\"\nd");
    EXPECT_STREQ(fields[2], "");
    ASSERT_EQ(csv_record_read(&cursor, fields, 3), 1);
    EXPECT_STREQ(fields[0], "last");
    EXPECT_EQ(csv_record_read(&cursor, fields, 3), 0);
}

TEST(Csv, CountsFieldsThatFindNoRoom)
{
    char text[] = "1,2,3,4\n";
    char *cursor = text;
    char *fields[2];
    EXPECT_EQ(csv_record_read(&cursor, fields, 2), 4);
    EXPECT_STREQ(fields[1], "2");
}
