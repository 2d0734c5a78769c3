// The routes of a board and the translation of its N port.
#include <errno.h>
#include <stdbool.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/peach2_internal.h"

// Outputs of the ROUTE block.
enum output { OUTPUT_N, OUTPUT_E, OUTPUT_W, OUTPUT_S, OUTPUT_LOCAL, OUTPUTS };

// Window offset bits that name a node, and those that name a block of one.
static const uint64_t node_mask = (uint64_t)(PEACH2_NODES_MAX - 1) << PEACH2_NODE_SHIFT;
static const uint64_t block_mask = (uint64_t)(PEACH2_NODES_MAX - 1) << PEACH2_NODE_SHIFT | (uint64_t)PEACH2_BLOCK_BOARD
                                                                                               << PEACH2_BLOCK_SHIFT;

struct route {
    bool enabled;
    uint64_t mask, lower, upper;
};

static uint64_t node_offset(uint32_t node)
{
    return (uint64_t)node << PEACH2_NODE_SHIFT;
}

static uint64_t block_offset(uint32_t node, enum peach2_block block)
{
    return node_offset(node) | (uint64_t)block << PEACH2_BLOCK_SHIFT;
}

// A link port takes whole nodes, from the first to the last that it reaches.
static int cable_routes_make(const struct peach2_routing *routing, struct route routes[OUTPUTS])
{
    for (uint32_t node = 0; node < routing->node_count; node++) {
        unsigned port = routing->port_of_node[node];
        if (node == routing->node || port == PEACH2_NO_PORT) {
            continue;
        }
        if (port < OUTPUT_E || port > OUTPUT_S) {
            return -EINVAL;
        }
        struct route *route = &routes[port];
        if (!route->enabled) {
            *route = (struct route){true, node_mask, node_offset(node), node_offset(node)};
        } else if (route->upper + node_offset(1) == node_offset(node)) {
            route->upper = node_offset(node);
        } else {
            return -EINVAL;
        }
    }
    return 0;
}

static void route_program(peach2_handle_t *handle, unsigned output, const struct route *route)
{
    uint64_t base = PEACH2_ROUTE_BASE + (uint64_t)output * PEACH2_ROUTE_STRIDE;
    peach2_register_write(handle, base + PEACH2_ROUTE_CONTROL, 0, 4);
    if (!route->enabled) {
        return;
    }
    peach2_register_write(handle, base + PEACH2_ROUTE_MASK, route->mask, 8);
    peach2_register_write(handle, base + PEACH2_ROUTE_LOWER, route->lower, 8);
    peach2_register_write(handle, base + PEACH2_ROUTE_UPPER, route->upper, 8);
    peach2_register_write(handle, base + PEACH2_ROUTE_CONTROL, PEACH2_ROUTE_CONTROL_ENABLE_MASK, 4);
}

int peach2_routes_program(peach2_handle_t *handle)
{
    const struct peach2_routing *routing = &handle->routing;
    if (routing->node_count > PEACH2_NODES_MAX || routing->node >= routing->node_count) {
        return -EINVAL;
    }
    struct route routes[OUTPUTS] = {0};
    int error = cable_routes_make(routing, routes);
    if (error != 0) {
        return error;
    }
    // N takes the host's block alone: the GPUs' blocks have nothing behind them yet, and a write that left through N
    // untranslated would come straight back from the root complex.
    uint64_t host = block_offset(routing->node, PEACH2_BLOCK_HOST);
    uint64_t board = block_offset(routing->node, PEACH2_BLOCK_BOARD);
    routes[OUTPUT_N] = (struct route){true, block_mask, host, host};
    routes[OUTPUT_LOCAL] = (struct route){true, block_mask, board, board};

    peach2_register_write(handle, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE, handle->window_base, 8);
    peach2_register_write(handle,
                          PEACH2_OFFSET_BASE + PEACH2_BLOCK_HOST * PEACH2_OFFSET_STRIDE + PEACH2_OFFSET_SUBTRACT,
                          peach2_block_address(handle, routing->node, PEACH2_BLOCK_HOST), 8);
    for (unsigned output = 0; output < OUTPUTS; output++) {
        route_program(handle, output, &routes[output]);
    }
    return 0;
}
