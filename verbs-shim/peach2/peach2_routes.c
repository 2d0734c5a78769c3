// The routes of a board and the translation of its N port.
#include <errno.h>
#include <string.h>

#include "rtl/peach2_regs.h"
#include "verbs-shim/peach2/peach2_internal.h"

// Entries of the ROUTE block: one for each output, then a second one for each cable port.
enum entry { ENTRY_N, ENTRY_E, ENTRY_W, ENTRY_S, ENTRY_LOCAL, ENTRY_SECOND };

_Static_assert((int)PEACH2_ROUTE_COUNT <= PEACH2_ROUTES_MAX, "the driver knows every entry of the ROUTE block");

// Bits of a window offset that name a node, and those that name a block of a node.
static const uint64_t node_mask = (uint64_t)(PEACH2_NODES_MAX - 1) << PEACH2_NODE_BITS;
static const uint64_t block_mask = (uint64_t)(PEACH2_NODES_MAX - 1) << PEACH2_NODE_BITS | (uint64_t)PEACH2_BLOCK_BOARD
                                                                                              << PEACH2_BLOCK_BITS;

static uint64_t node_offset(uint32_t node)
{
    return (uint64_t)node << PEACH2_NODE_BITS;
}

static uint64_t block_offset(uint32_t node, enum peach2_block block)
{
    return node_offset(node) | (uint64_t)block << PEACH2_BLOCK_BITS;
}

// Starts a new range of nodes for a cable port. NULL: the port has no entry left.
static struct peach2_route *range_start(struct peach2_route routes[PEACH2_ROUTES_MAX], unsigned port)
{
    unsigned second = ENTRY_SECOND + port - ENTRY_E;
    if (!routes[port].enabled) {
        return &routes[port];
    }
    return second < PEACH2_ROUTE_COUNT && !routes[second].enabled ? &routes[second] : NULL;
}

// A cable port gets whole nodes, in ranges of consecutive numbers.
static int cable_routes_make(const struct peach2_routing *routing, struct peach2_route routes[PEACH2_ROUTES_MAX])
{
    struct peach2_route *open = NULL; // the range that ends with the previous node
    for (uint32_t node = 0; node < routing->node_count; node++) {
        unsigned port = routing->port_of_node[node];
        if (node == routing->node || port == PEACH2_NO_PORT) {
            open = NULL;
            continue;
        }
        if (port < ENTRY_E || port > ENTRY_S) {
            return -EINVAL;
        }
        if (open == NULL || open->port != port) {
            open = range_start(routes, port);
            if (open == NULL) {
                return -EINVAL;
            }
            *open = (struct peach2_route){true, (uint8_t)port, node_mask, node_offset(node), node_offset(node)};
        }
        open->upper = node_offset(node);
    }
    return 0;
}

int peach2_routes_make(const struct peach2_routing *routing, struct peach2_route routes_out[PEACH2_ROUTES_MAX])
{
    struct peach2_route routes[PEACH2_ROUTES_MAX] = {0};
    if (routing->node_count > PEACH2_NODES_MAX || routing->node >= routing->node_count ||
        routing->gpus > PEACH2_GPUS_MAX) {
        return -EINVAL;
    }
    int error = cable_routes_make(routing, routes);
    if (error != 0) {
        return error;
    }
    // N gets only the blocks that have memory behind them: the root complex would send an untranslated write of N
    // straight back.
    uint64_t host = block_offset(routing->node, PEACH2_BLOCK_HOST);
    uint64_t last = block_offset(routing->node, (enum peach2_block)(PEACH2_BLOCK_HOST + routing->gpus));
    uint64_t board = block_offset(routing->node, PEACH2_BLOCK_BOARD);
    routes[ENTRY_N] = (struct peach2_route){true, ENTRY_N, block_mask, host, last};
    routes[ENTRY_LOCAL] = (struct peach2_route){true, ENTRY_LOCAL, block_mask, board, board};
    memcpy(routes_out, routes, sizeof routes);
    return 0;
}

static void route_program(peach2_handle_t *handle, unsigned entry, const struct peach2_route *route)
{
    uint64_t base = PEACH2_ROUTE_BASE + (uint64_t)entry * PEACH2_ROUTE_STRIDE;
    peach2_register_write(handle, base + PEACH2_ROUTE_CONTROL, 0, 4);
    if (!route->enabled) {
        return;
    }
    peach2_register_write(handle, base + PEACH2_ROUTE_MASK, route->mask, 8);
    peach2_register_write(handle, base + PEACH2_ROUTE_LOWER, route->lower, 8);
    peach2_register_write(handle, base + PEACH2_ROUTE_UPPER, route->upper, 8);
    peach2_register_write(handle, base + PEACH2_ROUTE_CONTROL, PEACH2_ROUTE_CONTROL_ENABLE_MASK, 4);
}

// Programs what N subtracts, so that the block of the own node begins at the bus address.
static void block_program(peach2_handle_t *handle, enum peach2_block block, uint64_t bus_address)
{
    uint64_t offset = PEACH2_OFFSET_BASE + (uint64_t)block * PEACH2_OFFSET_STRIDE + PEACH2_OFFSET_SUBTRACT;
    peach2_register_write(handle, offset, peach2_block_address(handle, handle->routing.node, block) - bus_address, 8);
}

int peach2_routes_program(peach2_handle_t *handle)
{
    const struct peach2_routing *routing = &handle->routing;
    struct peach2_route routes[PEACH2_ROUTES_MAX];
    int error = peach2_routes_make(routing, routes);
    if (error != 0) {
        return error;
    }
    peach2_register_write(handle, PEACH2_CHIP_BASE + PEACH2_CHIP_WINDOW_BASE, handle->window_base, 8);
    block_program(handle, PEACH2_BLOCK_HOST, 0);
    const struct backend *backend = &handle->backend;
    for (unsigned gpu = 0; gpu < routing->gpus; gpu++) {
        block_program(handle, (enum peach2_block)(PEACH2_BLOCK_GPU0 + gpu),
                      backend->ops->bar_bus_address(backend->ctx, (enum backend_bar)(BACKEND_BAR_GPU0 + gpu)));
    }
    for (unsigned entry = 0; entry < PEACH2_ROUTE_COUNT; entry++) {
        route_program(handle, entry, &routes[entry]);
    }
    return 0;
}
