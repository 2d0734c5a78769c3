// The ordering rules of clause 2.4.1, each with a second test in which nothing blocks the TLP.
#include "pair.h"
#include "tests/shim/test.h"

static const struct rule {
    enum pcie_tlp_kind first, second;
    bool passes; // the second may leave while the first lacks credits
} RULES[] = {
    {PCIE_TLP_MWR, PCIE_TLP_MWR, false}, {PCIE_TLP_MWR, PCIE_TLP_MRD, false}, {PCIE_TLP_MWR, PCIE_TLP_CPLD, false},
    {PCIE_TLP_MRD, PCIE_TLP_MWR, true},  {PCIE_TLP_MRD, PCIE_TLP_MRD, false}, {PCIE_TLP_MRD, PCIE_TLP_CPLD, true},
    {PCIE_TLP_CPLD, PCIE_TLP_MWR, true}, {PCIE_TLP_CPLD, PCIE_TLP_MRD, true}, {PCIE_TLP_CPLD, PCIE_TLP_CPLD, false},
    {PCIE_TLP_MWR, PCIE_TLP_CPL, false}, {PCIE_TLP_CPL, PCIE_TLP_MWR, true},  {PCIE_TLP_MRD, PCIE_TLP_CPL, true},
};
enum { RULE_COUNT = sizeof RULES / sizeof RULES[0] };

static enum pcie_class kind_class(enum pcie_tlp_kind kind)
{
    static const enum pcie_class CLASSES[] = {
        [PCIE_TLP_MRD] = PCIE_NONPOSTED,
        [PCIE_TLP_MWR] = PCIE_POSTED,
        [PCIE_TLP_CPL] = PCIE_COMPLETION,
        [PCIE_TLP_CPLD] = PCIE_COMPLETION,
    };
    return CLASSES[kind];
}

// The class of the first TLP has one header credit, which an earlier TLP has taken.
static struct pair *blocked_pair(const struct rule *rule)
{
    struct pcie_link_config config = pair_config();
    pair_set_credits(&config, 1, kind_class(rule->first), 1, 1024);
    struct pair *pair = pair_create(&config);
    pair->owners[1].holds = true;
    EXPECT_TRUE(pair_offer(pair, 0, rule->first, 0, 16));
    (void)sim_run(pair->sim);
    EXPECT_EQ(pair->owners[1].received, 1);
    return pair;
}

TEST(Ordering, LetsTheSecondPassABlockedFirstAsTheTableAllows)
{
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        struct pair *pair = blocked_pair(&RULES[i]);
        EXPECT_TRUE(pair_offer(pair, 0, RULES[i].first, 1, 16));
        EXPECT_TRUE(pair_offer(pair, 0, RULES[i].second, 2, 16));
        (void)sim_run(pair->sim);
        EXPECT_EQ(pair->owners[1].received, RULES[i].passes ? 2 : 1);
        if (RULES[i].passes) {
            EXPECT_EQ(pair->owners[1].log[1].tag, 2);
        }
        pair_destroy(pair);
    }
}

TEST(Ordering, DeliversBothInOrderOnceTheFirstIsFree)
{
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        struct pair *pair = blocked_pair(&RULES[i]);
        EXPECT_TRUE(pair_offer(pair, 0, RULES[i].first, 1, 16));
        EXPECT_TRUE(pair_offer(pair, 0, RULES[i].second, 2, 16));
        (void)sim_run(pair->sim);
        pair->owners[1].holds = false;
        pair_release_all(&pair->owners[1]);
        (void)sim_run(pair->sim);
        EXPECT_EQ(pair->owners[1].received, 3);
        EXPECT_EQ(pair->owners[1].log[1].tag, RULES[i].passes ? 2 : 1);
        EXPECT_EQ(pair->owners[1].log[2].tag, RULES[i].passes ? 1 : 2);
        pair_destroy(pair);
    }
}

TEST(Ordering, KeepsTheOrderOfOffersWhenNothingIsBlocked)
{
    for (unsigned i = 0; i < RULE_COUNT; i++) {
        const struct pcie_link_config config = pair_config();
        struct pair *pair = pair_create(&config);
        EXPECT_TRUE(pair_offer(pair, 0, RULES[i].first, 1, 16));
        EXPECT_TRUE(pair_offer(pair, 0, RULES[i].second, 2, 16));
        (void)sim_run(pair->sim);
        EXPECT_EQ(pair->owners[1].received, 2);
        EXPECT_EQ(pair->owners[1].log[0].tag, 1);
        EXPECT_EQ(pair->owners[1].log[1].tag, 2);
        pair_destroy(pair);
    }
}
