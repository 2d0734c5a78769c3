// A node's PEACH2 board with its chip: the Verilog, or the twin.
#include <stdio.h>

#include "sim/platform/device.h"
#include "sim/platform/internal.h"
#include "sim/platform/routes.h"

struct component_name {
    char text[SCN_NAME_MAX + 8];
};

static struct component_name chip_name(const struct plat_node *node)
{
    struct component_name name;
    snprintf(name.text, sizeof name.text, "%s.chip", node->config->name);
    return name;
}

// --- the chip, as the board sees it --------------------------------------------------------------------------------

static void chip_rx(void *chip, unsigned port, unsigned bar, pcie_tlp_t *tlp)
{
    cosim_peach2_rx(chip, port, bar, tlp);
}

static void chip_set_tx_ready(void *chip, unsigned port, bool ready)
{
    cosim_peach2_set_tx_ready(chip, port, ready);
}

static void chip_set_tx_room(void *chip, unsigned port, bool room)
{
    cosim_peach2_set_tx_room(chip, port, room);
}

static void chip_reset(void *chip)
{
    cosim_peach2_reset(chip);
}

static const struct peach2_core_ops chip_ops = {
    .rx = chip_rx, .set_tx_ready = chip_set_tx_ready, .set_tx_room = chip_set_tx_room, .reset = chip_reset};
static const struct cosim_peach2_ops chip_callbacks = {.tx = peach2_board_tx, .rx_taken = peach2_board_rx_taken};

// The host's Max_Read_Request_Size limits the read requests of the DMAC.
static uint32_t read_bytes(const struct plat_node *node)
{
    uint32_t mrrs_bytes = node->config->host.mrrs_bytes, wanted_bytes = node->config->board.dmac_read_bytes;
    return mrrs_bytes < wanted_bytes ? mrrs_bytes : wanted_bytes;
}

static enum sim_status rtl_create(struct plat_device *device, const struct plat_options *options)
{
    struct plat_node *node = device->node;
    const struct scn_board *board = &node->config->board;
    cosim_clock_t *clock;
    enum sim_status status = plat_machine_clock(node->machine, board->clock_mhz, &clock);
    if (status != SIM_OK) {
        return status;
    }
    char trace_path[4096];
    bool traced = options != NULL && options->trace_rtl_path != NULL;
    if (traced) {
        snprintf(trace_path, sizeof trace_path, "%s-%s.fst", options->trace_rtl_path, node->config->name);
    }
    const struct cosim_peach2_config config = {
        .requester = device->requester,
        .mps_bytes = plat_machine_mps_bytes(node->machine, node->index),
        .start_cycles = board->dmac_start_cycles,
        .fetch_cycles = board->dmac_fetch_cycles,
        .finish_cycles = board->dmac_finish_cycles,
        .read_bytes = read_bytes(node),
        .read_tags = board->dmac_read_tags,
        .prefetch = board->dmac_prefetch,
    };
    status = cosim_peach2_create(clock, node->machine->pool, chip_name(node).text, &config, &chip_callbacks,
                                 node->board, traced ? trace_path : NULL, &node->chip);
    if (status == SIM_OK) {
        peach2_board_set_core(node->board, &chip_ops, node->chip);
    }
    return status;
}

static enum sim_status twin_create(struct plat_device *device)
{
    struct plat_node *node = device->node;
    static const struct peach2_twin_ops ops = {
        .tx = peach2_board_tx, .rx_taken = peach2_board_rx_taken_at, .end = peach2_board_end};
    const struct scn_board *board = &node->config->board;
    const struct peach2_twin_config config = {
        .period_ps = plat_clock_period_ps(board->clock_mhz),
        .requester = device->requester,
        .mps_bytes = plat_machine_mps_bytes(node->machine, node->index),
        .start_cycles = board->dmac_start_cycles,
        .fetch_cycles = board->dmac_fetch_cycles,
        .finish_cycles = board->dmac_finish_cycles,
        .read_bytes = read_bytes(node),
        .read_tags = board->dmac_read_tags,
        .prefetch = board->dmac_prefetch,
        .flows = plat_node_flows(node),
    };
    enum sim_status status = peach2_twin_create(node->machine->sim, node->machine->pool, chip_name(node).text, &config,
                                                &ops, node->board, &node->twin);
    if (status == SIM_OK) {
        peach2_board_set_core(node->board, &peach2_twin_core_ops, node->twin);
    }
    return status;
}

static enum sim_status chip_create(struct plat_device *device, const struct plat_options *options)
{
    switch (device->node->config->board.fidelity) {
    case SCN_FIDELITY_RTL:
        break;
    case SCN_FIDELITY_TWIN:
    case SCN_FIDELITY_FLOW:
        return twin_create(device);
    }
    return rtl_create(device, options);
}

// --- in a node -----------------------------------------------------------------------------------------------------

static enum sim_status create(struct plat_device *device, const struct plat_options *options)
{
    struct plat_node *node = device->node;
    const struct scn_board *board = &node->config->board;
    enum sim_status status = peach2_board_create(node->machine->sim, device->name, PLAT_BAR0_BASE, board->window_base,
                                                 plat_clock_period_ps(board->clock_mhz), &node->board);
    device->model = node->board;
    if (status == SIM_OK && board->packet_buffer == SCN_PACKET_BUFFER_DDR3) {
        status = peach2_board_add_ddr3(node->board, &(struct peach2_ddr3_config){.embedded_tlps = board->embedded_tlps,
                                                                                 .bytes_per_us = board->ddr3_bytes_per_us,
                                                                                 .turn_ps = board->ddr3_turn_ps});
    }
    if (status == SIM_OK) {
        status = chip_create(device, options);
    }
    return status == SIM_OK ? plat_chip_counters_register(node, chip_name(node).text) : status;
}

static void destroy(struct plat_device *device)
{
    struct plat_node *node = device->node;
    if (node->chip != NULL) {
        cosim_peach2_destroy(node->chip);
    }
    peach2_twin_destroy(node->twin);
    peach2_board_destroy(node->board);
}

struct pcie_end_config plat_board_end(const struct scn_board *board)
{
    return plat_link_end(board->ip_tx_ps, board->ip_rx_ps, board->posted_header_credits, board->posted_data_credits,
                         board->nonposted_header_credits, board->tx_buffer_tlps);
}

static void describe(struct plat_device *device, struct plat_slot *slot)
{
    const struct scn_node *node = device->node->config;
    snprintf(slot->name, sizeof slot->name, "%s.slot", node->name); // other slots have the device in the name
    slot->link = &node->slot;
    slot->end = plat_board_end(&node->board);
    device->bars[0] = (struct plat_device_bar){PLAT_BAR0_BASE, PEACH2_BAR0_BYTES, BACKEND_BAR_REGISTERS};
    device->bars[1] = (struct plat_device_bar){node->board.window_base, PEACH2_WINDOW_BYTES, BACKEND_BAR_WINDOW};
}

static void connect(struct plat_device *device, pcie_end_t *end)
{
    peach2_board_connect(device->model, PEACH2_PORT_N, end);
}

static int boot(struct plat_device *device, const struct backend *backend)
{
    struct plat_node *node = device->node;
    const struct peach2_routing routing = plat_routing_of(node->machine->routes, node->index);
    int error = peach2_open(backend, &routing, &node->handle);
    device->driver = error == 0 ? node->handle : NULL;
    return error;
}

static void close_driver(struct plat_device *device)
{
    peach2_close(device->driver);
}

const struct plat_device_ops plat_device_board = {
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .connect = connect,
    .boot = boot,
    .close = close_driver,
};
