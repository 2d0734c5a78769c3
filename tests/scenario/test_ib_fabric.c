// Routes between HCAs, through switches.
#include <string.h>

#include "fixture.h"
#include "sim/scenario/ib_fabric.h"

// Two leaves below a spine; node 4 has no cable.
static struct scn_scenario *tree(void)
{
    static const uint32_t ends[][2] = {{0, SCN_IB_SWITCH(0)}, {SCN_IB_SWITCH(0), SCN_IB_SWITCH(2)},
                                       {1, SCN_IB_SWITCH(0)}, {SCN_IB_SWITCH(2), SCN_IB_SWITCH(1)},
                                       {SCN_IB_SWITCH(1), 2}, {3, SCN_IB_SWITCH(1)}};
    static struct scn_scenario scenario;
    memset(&scenario, 0, sizeof scenario);
    scenario.node_count = 5;
    scenario.ib_switch_count = 3;
    for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
        scenario.ib_cables[scenario.ib_cable_count++] =
            (struct scn_ib_cable){.from_node = ends[i][0], .to_node = ends[i][1]};
    }
    return &scenario;
}

static void expect_way(uint32_t from, uint32_t to, uint32_t first, uint32_t cables)
{
    uint32_t actual = 0;
    EXPECT_EQ(scn_ib_first_cable(tree(), from, to, &actual), first);
    EXPECT_EQ(actual, cables);
}

TEST(IbFabric, LeadsThroughSwitchesToTheNode)
{
    expect_way(0, 1, 0, 2);
    expect_way(0, 3, 0, 4);
    expect_way(SCN_IB_SWITCH(0), 1, 2, 1);
    expect_way(SCN_IB_SWITCH(0), 3, 1, 3);
    expect_way(SCN_IB_SWITCH(2), 0, 1, 2);
    expect_way(SCN_IB_SWITCH(1), 2, 4, 1);
}

TEST(IbFabric, HasNoWayToANodeWithoutACable)
{
    EXPECT_EQ(scn_ib_first_cable(tree(), 0, 4, NULL), SCN_IB_NO_CABLE);
    EXPECT_EQ(scn_ib_first_cable(tree(), SCN_IB_SWITCH(2), 4, NULL), SCN_IB_NO_CABLE);
    EXPECT_EQ(scn_ib_first_cable(tree(), 0, 0, NULL), SCN_IB_NO_CABLE);
}

TEST(IbFabric, HasNoWayThroughAnHca)
{
    struct scn_scenario *scenario = tree();
    scenario->ib_cables[3] = (struct scn_ib_cable){.from_node = 1, .to_node = SCN_IB_SWITCH(1)};
    EXPECT_EQ(scn_ib_first_cable(scenario, 0, 3, NULL), SCN_IB_NO_CABLE);
}
