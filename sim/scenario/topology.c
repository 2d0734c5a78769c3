#include "sim/scenario/topology.h"

static uint32_t ring_cables(uint32_t first, uint32_t nodes, struct scn_cable *cables)
{
    for (uint32_t i = 0; i < nodes; i++) {
        cables[i].from_node = first + i;
        cables[i].from_port = SCN_PORT_E;
        cables[i].to_node = first + (i + 1) % nodes;
        cables[i].to_port = SCN_PORT_W;
    }
    return nodes;
}

static uint32_t crossing_cables(uint32_t first, uint32_t nodes, struct scn_cable *cables)
{
    for (uint32_t i = 0; i < nodes; i++) {
        cables[i].from_node = first + i;
        cables[i].to_node = first + nodes + i;
        cables[i].from_port = cables[i].to_port = SCN_PORT_S;
    }
    return nodes;
}

uint32_t scn_topology_cables(enum scn_topology topology, uint32_t first, uint32_t nodes, struct scn_cable *cables)
{
    uint32_t half = nodes / 2, count = 0;
    switch (topology) {
    case SCN_TOPOLOGY_PAIR:
        ring_cables(first, nodes, cables);
        return 1;
    case SCN_TOPOLOGY_RING:
        return ring_cables(first, nodes, cables);
    case SCN_TOPOLOGY_TWO_RINGS:
        count += ring_cables(first, half, cables);
        count += ring_cables(first + half, half, cables + count);
        count += crossing_cables(first, half, cables + count);
        break;
    case SCN_TOPOLOGY_SEPARATE:
        break;
    }
    return count;
}

bool scn_cable_from_is_root(const struct scn_cable *cable)
{
    return cable->from_port == SCN_PORT_W || (cable->from_port == SCN_PORT_S && cable->to_port != SCN_PORT_W);
}
