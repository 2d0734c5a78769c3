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

// A component's tables leave in any order, and what is left is found and visited in the order of registration.
TEST(Counters, OfOneComponentLeaveInAnyOrder)
{
    static const struct sim_counter_desc names[3] = {{"a", "", ""}, {"b", "", ""}, {"c", "", ""}};
    static const char *const left[3] = {"x.b=1 ;x.c=2 ;", "x.a=0 ;x.c=2 ;", "x.a=0 ;x.b=1 ;"};
    const uint64_t values[3] = {0, 1, 2};
    for (unsigned leaves = 0; leaves < 3; leaves++) {
        sim_t *sim = helper_sim_create();
        struct visited visited = {.used = 0};
        for (unsigned i = 0; i < 3; i++) {
            ASSERT_EQ(sim_counters_register(sim, "x", &names[i], &values[i], 1), SIM_OK);
        }
        sim_counters_unregister(sim, &values[leaves]);
        sim_counters_visit(sim, visit, &visited);
        EXPECT_STREQ(visited.text, left[leaves]);
        for (unsigned i = 0; i < 3; i++) {
            bool found = false;
            (void)sim_counter_value(sim, "x", names[i].name, &found);
            EXPECT_EQ(found, i != leaves);
        }
        EXPECT_EQ(sim_counters_register(sim, "x", &names[leaves], &values[leaves], 1), SIM_OK);
        EXPECT_EQ(sim_counters_register(sim, "y", &names[leaves], &values[leaves], 1), SIM_ERR_EXISTS);
        sim_destroy(sim);
    }
}
