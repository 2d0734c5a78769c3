#include "sim/scenario/sets.h"

#include "sim/scenario/ib_fabric.h"

void scn_sets_init(struct scn_sets *sets)
{
    for (uint32_t i = 0; i < sizeof sets->of / sizeof sets->of[0]; i++) {
        sets->of[i] = i;
    }
}

static uint32_t root_of(struct scn_sets *sets, uint32_t vertex)
{
    while (sets->of[vertex] != vertex) {
        sets->of[vertex] = sets->of[sets->of[vertex]];
        vertex = sets->of[vertex];
    }
    return vertex;
}

void scn_sets_join(struct scn_sets *sets, uint32_t a, uint32_t b)
{
    sets->of[root_of(sets, a)] = root_of(sets, b);
}

void scn_sets_join_boards(struct scn_sets *sets, const struct scn_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->cable_count; i++) {
        const struct scn_cable *cable = &scenario->cables[i];
        if (cable->from_node < scenario->node_count && cable->to_node < scenario->node_count) {
            scn_sets_join(sets, cable->from_node, cable->to_node);
        }
    }
}

void scn_sets_join_ib(struct scn_sets *sets, const struct scn_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->ib_cable_count; i++) {
        const struct scn_ib_cable *cable = &scenario->ib_cables[i];
        if (scn_ib_vertex_name(scenario, cable->from_node)[0] != '\0' &&
            scn_ib_vertex_name(scenario, cable->to_node)[0] != '\0') {
            scn_sets_join(sets, cable->from_node, cable->to_node);
        }
    }
}

bool scn_sets_joined(struct scn_sets *sets, uint32_t a, uint32_t b)
{
    return root_of(sets, a) == root_of(sets, b);
}
