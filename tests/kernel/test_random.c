// Random streams.
#include "sim/kernel/random.h"

#include <string.h>

#include "tests/shim/test.h"

TEST(Random, GivesThePublishedSequenceOfXoshiro256StarStar)
{
    // Test vectors of the authors' C code started with the state 1, 2, 3, 4.
    static const uint64_t expected[10] = {
        11520, 0, 1509978240, 1215971899390074240, 1216172134540287360,
        607988272756665600, 16172922978634559625u, 8476171486693032832, 10595114339597558777u, 2904607092377533576};
    struct sim_random random = {{1, 2, 3, 4}};
    for (int i = 0; i < 10; i++) {
        EXPECT_EQ(sim_random_u64(&random), expected[i]);
    }
}

TEST(Random, RepeatsForTheSameSeedAndName)
{
    struct sim_random a, b;
    sim_random_init(&a, 42, "node0.link");
    sim_random_init(&b, 42, "node0.link");
    for (int i = 0; i < 100; i++) {
        EXPECT_EQ(sim_random_u64(&a), sim_random_u64(&b));
    }
}

TEST(Random, DiffersBetweenNamesAndBetweenSeeds)
{
    struct sim_random a, other_name, other_seed;
    sim_random_init(&a, 42, "node0.link");
    sim_random_init(&other_name, 42, "node1.link");
    sim_random_init(&other_seed, 43, "node0.link");
    uint64_t value = sim_random_u64(&a);
    EXPECT_NE(value, sim_random_u64(&other_name));
    EXPECT_NE(value, sim_random_u64(&other_seed));
}

TEST(Random, DiffersBetweenNamesThatDifferInAnyOneCharacter)
{
    const char name[] = "node0.link0";
    struct sim_random random, other;
    for (size_t i = 0; i < sizeof name - 1; i++) {
        TEST_TRACE("character %zu", i);
        char changed[sizeof name];
        memcpy(changed, name, sizeof name);
        changed[i]++;
        sim_random_init(&random, 42, name);
        sim_random_init(&other, 42, changed);
        EXPECT_NE(sim_random_u64(&random), sim_random_u64(&other));
    }
}

TEST(Random, IsNotMovedByDrawsFromAnotherStream)
{
    struct sim_random alone, beside, other;
    sim_random_init(&alone, 42, "a");
    sim_random_init(&beside, 42, "a");
    sim_random_init(&other, 42, "b");
    for (int i = 0; i < 100; i++) {
        (void)sim_random_u64(&other);
        EXPECT_EQ(sim_random_u64(&beside), sim_random_u64(&alone));
    }
}

TEST(Random, SpreadsEvenlyBelowItsBound)
{
    struct sim_random random;
    unsigned hits[6] = {0};
    sim_random_init(&random, 1, "dice");
    for (int i = 0; i < 60000; i++) {
        uint64_t value = sim_random_below(&random, 6);
        ASSERT_LT(value, 6);
        hits[value]++;
    }
    for (int i = 0; i < 6; i++) {
        EXPECT_BETWEEN(hits[i], 9600, 10400);
    }
    EXPECT_EQ(sim_random_below(&random, 1), 0);
}
