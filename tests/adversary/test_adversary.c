// The answers of an adversary: the same for a seed, within the bounds of its rules.
#include "sim/adversary/adversary.h"

#include <stdio.h>
#include <string.h>

#include "tests/shim/test.h"

enum { DRAWS = 2000, SEEDS = 40 };

static adversary_t *create(uint64_t seed)
{
    adversary_t *adversary = NULL;
    EXPECT_EQ(adversary_create(seed, &adversary), SIM_OK);
    return adversary;
}

static uint64_t late_ps(adversary_t *adversary, unsigned purpose)
{
    return adversary_late_ps(adversary, (enum adversary_purpose)purpose);
}

TEST(Adversary, IsOnTimeWhereThereIsNone)
{
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        EXPECT_EQ(late_ps(NULL, purpose), 0);
        EXPECT_EQ(adversary_late_within_ps(NULL, (enum adversary_purpose)purpose, 1000), 0);
        EXPECT_FALSE(adversary_strikes(NULL, (enum adversary_purpose)purpose));
    }
}

TEST(Adversary, AnswersTheSameForASeedAndOthersForAnother)
{
    adversary_t *a = create(5), *b = create(5), *other = create(6);
    unsigned differ = 0;
    for (unsigned i = 0; i < DRAWS; i++) {
        unsigned purpose = i % ADVERSARY_PURPOSES;
        uint64_t ps = late_ps(a, purpose);
        EXPECT_EQ(late_ps(b, purpose), ps);
        differ += late_ps(other, purpose) != ps;
    }
    EXPECT_GT(differ, 0);
    adversary_destroy(a);
    adversary_destroy(b);
    adversary_destroy(other);
}

TEST(Adversary, KeepsTheBoundsOfItsRules)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        adversary_t *adversary = create(seed);
        for (unsigned i = 0; i < DRAWS; i++) {
            for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
                ASSERT_LE(late_ps(adversary, purpose), adversary_rules[purpose].most_ps);
                ASSERT_LE(adversary_late_within_ps(adversary, (enum adversary_purpose)purpose, 77), 77);
            }
        }
        adversary_destroy(adversary);
    }
}

TEST(Adversary, ComesNearItsBounds)
{
    adversary_t *adversary = create(1);
    uint64_t most_ps = 0;
    adversary_only(adversary, ADVERSARY_COMPLETION, 1000);
    for (unsigned i = 0; i < DRAWS; i++) {
        uint64_t ps = late_ps(adversary, ADVERSARY_COMPLETION);
        most_ps = ps > most_ps ? ps : most_ps;
    }
    EXPECT_GT(most_ps, adversary_rules[ADVERSARY_COMPLETION].most_ps / 10 * 9);
    adversary_destroy(adversary);
}

TEST(Adversary, StrikesAsOftenAsItsSeedSays)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        adversary_t *adversary = create(seed);
        for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
            uint32_t permille = adversary_permille(adversary, (enum adversary_purpose)purpose), strikes = 0;
            EXPECT_LE(permille, adversary_rules[purpose].permille);
            for (unsigned i = 0; i < DRAWS; i++) {
                strikes += adversary_strikes(adversary, (enum adversary_purpose)purpose);
            }
            uint32_t expected = permille * (DRAWS / 1000);
            EXPECT_LE(strikes, 2 * expected + 20);
            EXPECT_GE(strikes + 20, expected / 2);
            if (permille == 0) {
                EXPECT_EQ(strikes, 0);
            }
        }
        adversary_destroy(adversary);
    }
}

TEST(Adversary, HasEachPurposeAtWorkWithSomeSeedsAndOffWithOthers)
{
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        unsigned off = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            adversary_t *adversary = create(seed);
            off += adversary_permille(adversary, (enum adversary_purpose)purpose) == 0;
            adversary_destroy(adversary);
        }
        EXPECT_GT(off, 0);
        EXPECT_LT(off, SEEDS / 2);
    }
}

TEST(Adversary, HasEachPurposeAtItsUsualRateAtAQuarterOfItOrOff)
{
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        TEST_TRACE("%s", adversary_rules[purpose].name);
        uint32_t usual = adversary_rules[purpose].permille;
        unsigned off_count = 0, seldom_count = 0, usual_count = 0;
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            adversary_t *adversary = create(seed);
            uint32_t permille = adversary_permille(adversary, (enum adversary_purpose)purpose);
            off_count += permille == 0;
            seldom_count += permille == usual / 4;
            usual_count += permille == usual;
            adversary_destroy(adversary);
        }
        EXPECT_GT(seldom_count, 0);
        EXPECT_GT(usual_count, 0);
        EXPECT_EQ(off_count + seldom_count + usual_count, SEEDS);
    }
}

static bool is_off(uint64_t seed, unsigned purpose)
{
    adversary_t *adversary = create(seed);
    bool off = adversary_permille(adversary, (enum adversary_purpose)purpose) == 0;
    adversary_destroy(adversary);
    return off;
}

TEST(Adversary, HasOnePurposeAtWorkWhileAnotherIsOff)
{
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        unsigned other = (purpose + 1) % ADVERSARY_PURPOSES, differ = 0;
        TEST_TRACE("%s and %s", adversary_rules[purpose].name, adversary_rules[other].name);
        for (uint64_t seed = 0; seed < SEEDS; seed++) {
            differ += is_off(seed, purpose) != is_off(seed, other);
        }
        EXPECT_GT(differ, 0);
    }
}

TEST(Adversary, HasNothingElseAtWorkInATestOfOnePurpose)
{
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        adversary_t *adversary = create(1);
        adversary_only(adversary, (enum adversary_purpose)purpose, 700);
        for (unsigned other = 0; other < ADVERSARY_PURPOSES; other++) {
            TEST_TRACE("%s with %s", adversary_rules[other].name, adversary_rules[purpose].name);
            EXPECT_EQ(adversary_permille(adversary, (enum adversary_purpose)other), other == purpose ? 700 : 0);
        }
        adversary_destroy(adversary);
    }
}

TEST(Adversary, DelaysShortlyAsOftenAsLong)
{
    adversary_t *adversary = create(1);
    unsigned short_count = 0;
    adversary_only(adversary, ADVERSARY_COMPLETION, 1000);
    for (unsigned i = 0; i < DRAWS; i++) {
        short_count += late_ps(adversary, ADVERSARY_COMPLETION) < adversary_rules[ADVERSARY_COMPLETION].most_ps / 128;
    }
    // The bound is halved none to seven times: less than 1/128 of it are (1 + 2 + 4 + ... + 128) / 128 / 8 of the delays.
    EXPECT_BETWEEN(short_count, DRAWS / 4 - 100, DRAWS / 4 + 100);
    adversary_destroy(adversary);
}

TEST(Adversary, TellsAPurposeTheSameHoweverOftenOthersAsk)
{
    adversary_t *alone = create(9), *asked = create(9);
    for (unsigned i = 0; i < DRAWS; i++) {
        (void)late_ps(asked, ADVERSARY_CALL);
        EXPECT_EQ(late_ps(asked, ADVERSARY_COMPLETION), late_ps(alone, ADVERSARY_COMPLETION));
    }
    adversary_destroy(alone);
    adversary_destroy(asked);
}

// The rows of the documents: | `completion` | 25 % | 20 us | ...
TEST(Adversary, IsDescribedToUsersWithItsNumbers)
{
    static char text[1 << 18];
    FILE *file = fopen(TCASIM_SOURCE_DIR "/docs/attached-programs.md", "r");
    ASSERT_NOT_NULL(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    for (unsigned purpose = 0; purpose < ADVERSARY_PURPOSES; purpose++) {
        const struct adversary_rule *rule = &adversary_rules[purpose];
        char row[128];
        unsigned us = (unsigned)(rule->most_ps / 1000000);
        int length = snprintf(row, sizeof row, "| `%s` | %u", rule->name, rule->permille / 10);
        length += rule->permille % 10 != 0 ? snprintf(row + length, 32, ".%u", rule->permille % 10) : 0;
        snprintf(row + length, 32, us != 0 ? " %% | %u us |" : " %% | ", us);
        EXPECT_CONTAINS(text, row);
    }
}
