// The registry of counters.
#include <stdio.h>

#include "sim/kernel/counter.h"
#include "helpers.h"

static const struct sim_counter_desc descs[2] = {
    {"tlps_sent", "TLPs", "TLPs given to the wire."},
    {"bytes_sent", "bytes", "Payload given to the wire."},
};

struct visited {
    char text[256];
    size_t used;
};

static void visit(void *ctx, const char *component, const struct sim_counter_desc *desc, uint64_t value)
{
    struct visited *visited = ctx;
    int more = snprintf(visited->text + visited->used, sizeof visited->text - visited->used, "%s.%s=%llu %s;",
                        component, desc->name, (unsigned long long)value, desc->unit);
    visited->used += (size_t)more;
}

TEST(Counters, AreVisitedInTheOrderOfRegistration)
{
    sim_t *sim = helper_sim_create();
    uint64_t b[2] = {1, 2};
    uint64_t a[2] = {3, 4};
    struct visited visited = {.used = 0};
    ASSERT_EQ(sim_counters_register(sim, "b", descs, b, 2), SIM_OK);
    ASSERT_EQ(sim_counters_register(sim, "a", descs, a, 1), SIM_OK);
    a[0]++;
    sim_counters_visit(sim, visit, &visited);
    EXPECT_STREQ(visited.text, "b.tlps_sent=1 TLPs;b.bytes_sent=2 bytes;a.tlps_sent=4 TLPs;");
    sim_destroy(sim);
}

TEST(Counters, AreFoundByComponentAndName)
{
    sim_t *sim = helper_sim_create();
    uint64_t values[2] = {0, 77};
    char component[] = "link";
    bool found = false;
    ASSERT_EQ(sim_counters_register(sim, component, descs, values, 2), SIM_OK);
    component[0] = 'X';
    EXPECT_EQ(sim_counter_value(sim, "link", "bytes_sent", &found), 77);
    EXPECT_TRUE(found);
    EXPECT_EQ(sim_counter_value(sim, "link", "nonsense", &found), 0);
    EXPECT_FALSE(found);
    EXPECT_EQ(sim_counter_value(sim, "nobody", "bytes_sent", NULL), 0);
    sim_destroy(sim);
}

TEST(Counters, RefuseASecondOneOfTheSameName)
{
    sim_t *sim = helper_sim_create();
    uint64_t values[2] = {0, 0};
    ASSERT_EQ(sim_counters_register(sim, "link", descs, values, 1), SIM_OK);
    EXPECT_EQ(sim_counters_register(sim, "link", descs, values, 2), SIM_ERR_EXISTS);
    EXPECT_EQ(sim_counters_register(sim, "link", &descs[1], &values[1], 1), SIM_OK);
    sim_destroy(sim);
}

TEST(Counters, RefuseATableInWhichALaterNameIsTaken)
{
    sim_t *sim = helper_sim_create();
    uint64_t values[2] = {0, 0};
    bool found = true;
    ASSERT_EQ(sim_counters_register(sim, "link", &descs[1], values, 1), SIM_OK);
    EXPECT_EQ(sim_counters_register(sim, "link", descs, values, 2), SIM_ERR_EXISTS);
    (void)sim_counter_value(sim, "link", "tlps_sent", &found);
    EXPECT_FALSE(found); // nothing of the refused table stays
    sim_destroy(sim);
}

TEST(Counters, LeaveWithTheirOwner)
{
    sim_t *sim = helper_sim_create();
    uint64_t a[1] = {1};
    uint64_t b[1] = {2};
    bool found = true;
    ASSERT_EQ(sim_counters_register(sim, "a", descs, a, 1), SIM_OK);
    ASSERT_EQ(sim_counters_register(sim, "b", descs, b, 1), SIM_OK);
    sim_counters_unregister(sim, a);
    EXPECT_EQ(sim_counter_value(sim, "a", "tlps_sent", &found), 0);
    EXPECT_FALSE(found);
    EXPECT_EQ(sim_counter_value(sim, "b", "tlps_sent", &found), 2);
    EXPECT_EQ(sim_counters_register(sim, "a", descs, a, 1), SIM_OK);
    sim_destroy(sim);
}
