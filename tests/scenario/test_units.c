#include "fixture.h"

#include <math.h>

#include "sim/scenario/units.h"

struct quantity_case {
    enum scn_quantity quantity;
    const char *text;
    uint64_t value;
};

TEST(Units, ReadEveryUnitExactly)
{
    static const struct quantity_case cases[] = {
        {SCN_QUANTITY_SIZE, "256 B", 256},
        {SCN_QUANTITY_SIZE, "256B", 256},
        {SCN_QUANTITY_SIZE, "8 KiB", 8192},
        {SCN_QUANTITY_SIZE, "4 KB", 4000},
        {SCN_QUANTITY_SIZE, "1 MiB", 1048576},
        {SCN_QUANTITY_SIZE, "1.5 MB", 1500000},
        {SCN_QUANTITY_SIZE, "0.5 KiB", 512},
        {SCN_QUANTITY_SIZE, "3 GB", 3000000000},
        {SCN_QUANTITY_SIZE, "512 GiB", 549755813888},
        {SCN_QUANTITY_SIZE, "1 TiB", 1099511627776},
        {SCN_QUANTITY_TIME, "700 ps", 700},
        {SCN_QUANTITY_TIME, "120 ns", 120000},
        {SCN_QUANTITY_TIME, "1.5 us", 1500000},
        {SCN_QUANTITY_TIME, "0.123456789012 s", 123456789012},
        {SCN_QUANTITY_TIME, "10 ms", 10000000000},
        {SCN_QUANTITY_TIME, "1.000000000000000 ns", 1000},
        {SCN_QUANTITY_FREQUENCY, "250 MHz", 250},
        {SCN_QUANTITY_FREQUENCY, "0.5 GHz", 500},
        {SCN_QUANTITY_RATE, "5 GB/s", 5000},
        {SCN_QUANTITY_RATE, "880 MB/s", 880},
        {SCN_QUANTITY_SIZE, "18446744073709551615 B", UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 0;
        char why[SCN_WHY_MAX] = "";
        EXPECT_TRUE(scn_quantity_parse(cases[i].quantity, cases[i].text, &value, why));
        EXPECT_STREQ(why, "");
        EXPECT_EQ(value, cases[i].value);
    }
}

struct refused_case {
    enum scn_quantity quantity;
    const char *text;
    const char *why;
};

TEST(Units, RefuseWhatIsNotExact)
{
    static const struct refused_case cases[] = {
        {SCN_QUANTITY_TIME, "20", "'20' needs a unit (ps, ns, us, ms, s)"},
        {SCN_QUANTITY_TIME, "20 parsec", "'20 parsec' has no known unit (ps, ns, us, ms, s)"},
        {SCN_QUANTITY_TIME, "20 NS", "'20 NS' has no known unit (ps, ns, us, ms, s)"},
        {SCN_QUANTITY_TIME, "0.5 ps", "'0.5 ps' is not a whole number of ps"},
        {SCN_QUANTITY_TIME, "1.0000001 ns", "'1.0000001 ns' is not a whole number of ps"},
        {SCN_QUANTITY_TIME, "-1 ns", "'-1 ns' is not a time such as 120 ns"},
        {SCN_QUANTITY_TIME, "1. ns", "'1. ns' is not a time such as 120 ns"},
        {SCN_QUANTITY_TIME, "", "'' is not a time such as 120 ns"},
        {SCN_QUANTITY_TIME, "1e3 ns", "'1e3 ns' has no known unit (ps, ns, us, ms, s)"},
        {SCN_QUANTITY_SIZE, "ns", "'ns' is not a size such as 256 B"},
        {SCN_QUANTITY_SIZE, "0.3 B", "'0.3 B' is not a whole number of B"},
        {SCN_QUANTITY_SIZE, "18446744073709551615 KiB", "'18446744073709551615 KiB' is too large"},
        {SCN_QUANTITY_SIZE, "18446744073709551616 B", "'18446744073709551616 B' is not a size such as 256 B"},
        {SCN_QUANTITY_FREQUENCY, "250 Hz", "'250 Hz' has no known unit (MHz, GHz)"},
        {SCN_QUANTITY_RATE, "5 Gb/s", "'5 Gb/s' has no known unit (MB/s, GB/s)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint64_t value = 99;
        char why[SCN_WHY_MAX] = "";
        EXPECT_FALSE(scn_quantity_parse(cases[i].quantity, cases[i].text, &value, why));
        EXPECT_STREQ(why, cases[i].why);
        EXPECT_EQ(value, 99);
    }
}

TEST(Units, AreWrittenWithTheLargestThatKeepsAWholeNumber)
{
    static const struct quantity_case cases[] = {
        {SCN_QUANTITY_SIZE, "0 B", 0},
        {SCN_QUANTITY_SIZE, "1000 B", 1000},
        {SCN_QUANTITY_SIZE, "1 KiB", 1024},
        {SCN_QUANTITY_SIZE, "1025 B", 1025},
        {SCN_QUANTITY_TIME, "0 ps", 0},
        {SCN_QUANTITY_TIME, "1500 ns", 1500000},
        {SCN_QUANTITY_TIME, "1 s", 1000000000000},
        {SCN_QUANTITY_FREQUENCY, "1000 MHz", 1000},
        {SCN_QUANTITY_RATE, "5 GB/s", 5000},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[SCN_QUANTITY_MAX];
        scn_quantity_format(cases[i].quantity, cases[i].value, text);
        EXPECT_STREQ(text, cases[i].text);
    }
}

TEST(Units, ReadIntegersInDecimalAndHexadecimal)
{
    uint64_t value = 0;
    char why[SCN_WHY_MAX];
    EXPECT_TRUE(scn_integer_parse("18446744073709551615", &value, why));
    EXPECT_EQ(value, UINT64_MAX);
    EXPECT_TRUE(scn_integer_parse("0x8000000000", &value, why));
    EXPECT_EQ(value, 0x8000000000);
    static const char *const refused[] = {"", "-1", "+1", "1.0", "1 ", "0x", "0xg", "0x11112222333344445", "1e3"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        EXPECT_FALSE(scn_integer_parse(refused[i], &value, why));
        EXPECT_CONTAINS(why, "is not a whole number");
    }
    EXPECT_FALSE(scn_integer_parse("18446744073709551616", &value, why));
    EXPECT_STREQ(why, "'18446744073709551616' is too large");
}

TEST(Units, ReadRealsAndWriteThemBackUnchanged)
{
    static const double values[] = {0, 0.1, 1.0 / 3, -2.5, 1e300, 5e-324, 123456789.125};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char text[SCN_QUANTITY_MAX], why[SCN_WHY_MAX];
        double value = 1;
        scn_real_format(values[i], text);
        EXPECT_TRUE(scn_real_parse(text, &value, why));
        EXPECT_EQ(value, values[i]);
    }
    double value = 0;
    char why[SCN_WHY_MAX];
    EXPECT_TRUE(scn_real_parse("-.inf", &value, why));
    EXPECT_TRUE(isinf(value));
    EXPECT_LT(value, 0);
    static const char *const refused[] = {"", ".nan", "nan", "inf", "1 us", "0x10", "1e999", "1.2.3"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        EXPECT_FALSE(scn_real_parse(refused[i], &value, why));
        EXPECT_CONTAINS(why, "is not a number");
    }
}
