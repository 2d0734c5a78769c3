#include "sim/platform/routes.h"

#include "scene.h"
#include "tests/shim/test.h"

static void expect_ports(const struct scn_scenario *scene, uint32_t node, const uint8_t *ports)
{
    struct peach2_routing routing = plat_routes_find(scene, node);
    EXPECT_EQ(routing.node, node);
    EXPECT_EQ(routing.node_count, scene->node_count);
    for (uint32_t i = 0; i < scene->node_count; i++) {
        if (i != node) {
            EXPECT_EQ(routing.port_of_node[i], ports[i]);
        }
    }
}

TEST(Routes, LeadAlongALine)
{
    struct scn_scenario *scene = scene_line(4);
    const uint8_t first[] = {0, 1, 1, 1}, third[] = {2, 2, 0, 1};
    expect_ports(scene, 0, first);
    expect_ports(scene, 2, third);
    scene_free(scene);
}

TEST(Routes, TakeTheShorterWayAroundARingAndEastWhenBothAreEqual)
{
    struct scn_scenario *scene = scene_line(4);
    scene->cables[scene->cable_count++] =
        (struct scn_cable){.from_node = 3, .to_node = 0, .from_port = SCN_PORT_E, .to_port = SCN_PORT_W};
    const uint8_t first[] = {0, 1, 1, 2};
    expect_ports(scene, 0, first);
    scene_free(scene);
}

TEST(Routes, UseAnSCableWhereItIsShorter)
{
    struct scn_scenario *scene = scene_line(4);
    scene->cables[scene->cable_count++] =
        (struct scn_cable){.from_node = 0, .to_node = 3, .from_port = SCN_PORT_S, .to_port = SCN_PORT_S};
    const uint8_t first[] = {0, 1, 1, 3};
    expect_ports(scene, 0, first);
    scene_free(scene);
}

TEST(Routes, LeaveNodesWithoutACableUnreached)
{
    struct scn_scenario *scene = scene_line(3);
    scene->cable_count = 1;
    const uint8_t first[] = {0, 1, PEACH2_NO_PORT};
    expect_ports(scene, 0, first);
    EXPECT_TRUE(plat_routes_joined(scene, 0, 1));
    EXPECT_FALSE(plat_routes_joined(scene, 1, 2));
    EXPECT_TRUE(plat_routes_joined(scene, 2, 2));
    scene_free(scene);
}
