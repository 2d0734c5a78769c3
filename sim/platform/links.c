// The links of a machine: the slot of each board, GPU, FPGA and HCA, and the cables between boards.
#include <stdio.h>

#include "sim/platform/configs.h"
#include "sim/platform/internal.h"

// TLPs of each class that a root port takes before the root complex has to wait. An assumption; deep enough that a root
// complex never loses time to it, as its own limits come first.
#define ROOT_PORT_QUEUE_TLPS 64

// Ends advertise infinite completion credits and meter their own reads (docs/component-facts.md); so does a board at
// the ends of its cables. Reads carry no data.
static struct pcie_end_config link_end(uint64_t tx_ps, uint64_t rx_ps, uint32_t posted_headers, uint32_t posted_data,
                                       uint32_t nonposted_headers, uint32_t tx_queue_tlps)
{
    return (struct pcie_end_config){
        .tx_ps = tx_ps,
        .rx_ps = rx_ps,
        .headers = {[PCIE_POSTED] = posted_headers,
                    [PCIE_NONPOSTED] = nonposted_headers,
                    [PCIE_COMPLETION] = PCIE_CREDITS_INFINITE},
        .data = {[PCIE_POSTED] = posted_data,
                 [PCIE_NONPOSTED] = PCIE_CREDITS_INFINITE,
                 [PCIE_COMPLETION] = PCIE_CREDITS_INFINITE},
        .tx_queue_tlps = tx_queue_tlps,
    };
}

struct pcie_end_config plat_root_port_config(const struct scn_host *host)
{
    return link_end(host->root_port_tx_ps, host->root_port_rx_ps, host->posted_header_credits,
                    host->posted_data_credits, host->nonposted_header_credits, ROOT_PORT_QUEUE_TLPS);
}

static struct pcie_end_config hard_ip(const struct scn_board *board)
{
    return link_end(board->ip_tx_ps, board->ip_rx_ps, board->posted_header_credits, board->posted_data_credits,
                    board->nonposted_header_credits, board->tx_buffer_tlps);
}

static struct pcie_link_config link_config(const struct scn_link *link, uint32_t mps_bytes,
                                           struct pcie_end_config side0, struct pcie_end_config side1)
{
    return (struct pcie_link_config){
        .generation = link->generation,
        .lanes = link->lanes,
        .mps_bytes = mps_bytes,
        .flight_ps = link->flight_ps,
        .ack_every_tlps = link->ack_every_tlps,
        .corrupt_every_tlps = link->corrupt_every_tlps,
        .ends = {side0, side1},
    };
}

// --- slots ---------------------------------------------------------------------------------------------------------

static enum sim_status slot_windows_add(struct plat_node *node)
{
    unsigned port = pcie_rc_add_port(node->rc, pcie_link_end(node->slot, 0));
    enum sim_status status = pcie_rc_add_window(node->rc, port, PLAT_BAR0_BASE, PEACH2_BAR0_BYTES);
    if (status == SIM_OK) {
        status = pcie_rc_add_window(node->rc, port, node->config->board.window_base, PEACH2_WINDOW_BYTES);
    }
    return status;
}

static enum sim_status slot_create(struct plat_node *node)
{
    if (node->board == NULL) {
        return SIM_OK;
    }
    const struct scn_node *config = node->config;
    plat_machine_t *machine = node->machine;
    char name[SCN_NAME_MAX + 8];
    snprintf(name, sizeof name, "%s.slot", config->name);
    const struct pcie_link_config link =
        link_config(&config->slot, config->host.mps_bytes, plat_root_port_config(&config->host), hard_ip(&config->board));
    enum sim_status status = pcie_link_create(machine->sim, machine->pool, name, &link, &node->slot);
    if (status == SIM_OK) {
        status = slot_windows_add(node);
    }
    if (status == SIM_OK) {
        peach2_board_connect(node->board, PEACH2_PORT_N, pcie_link_end(node->slot, 1));
    }
    return status;
}

// --- GPUs ----------------------------------------------------------------------------------------------------------

static struct pcie_end_config gpu_end(const struct scn_gpu *gpu)
{
    return link_end(gpu->ip_tx_ps, gpu->ip_rx_ps, gpu->posted_header_credits, gpu->posted_data_credits,
                    gpu->nonposted_header_credits, gpu->tx_buffer_tlps);
}

static enum sim_status gpu_slot_create(struct plat_node *node, unsigned index)
{
    struct plat_gpu *gpu = &node->gpus.list[index];
    plat_machine_t *machine = node->machine;
    uint64_t base = PLAT_GPU_BASE + index * PLAT_GPU_STEP_BYTES;
    char name[SCN_NAME_MAX + 32];
    snprintf(name, sizeof name, "%s.slot", gpu->name);
    const struct pcie_link_config link = link_config(&gpu->config->slot, node->config->host.mps_bytes,
                                                     plat_root_port_config(&node->config->host), gpu_end(gpu->config));
    enum sim_status status = pcie_link_create(machine->sim, machine->pool, name, &link, &node->gpu_slots[index]);
    if (status != SIM_OK) {
        return status;
    }
    unsigned port = pcie_rc_add_port(node->rc, pcie_link_end(node->gpu_slots[index], 0));
    status = pcie_rc_add_window(node->rc, port, base, gpu->config->bar_bytes);
    if (status == SIM_OK && gpu->config->socket != 0) {
        status = pcie_rc_set_port_socket(node->rc, port, gpu->config->socket);
    }
    if (status == SIM_OK) {
        gpu_connect(gpu->gpu, pcie_link_end(node->gpu_slots[index], 1), base);
    }
    return status;
}

// --- the FPGA ------------------------------------------------------------------------------------------------------

static struct pcie_end_config fpga_end(const struct scn_fpga *fpga)
{
    return link_end(fpga->ip_tx_ps, fpga->ip_rx_ps, fpga->posted_header_credits, fpga->posted_data_credits,
                    fpga->nonposted_header_credits, fpga->tx_buffer_tlps);
}

static enum sim_status fpga_slot_create(struct plat_node *node)
{
    if (node->fpga == NULL) {
        return SIM_OK;
    }
    const struct scn_fpga *fpga = &node->config->fpga;
    plat_machine_t *machine = node->machine;
    char name[SCN_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s.fpga.slot", node->config->name);
    const struct pcie_link_config link =
        link_config(&fpga->slot, node->config->host.mps_bytes, plat_root_port_config(&node->config->host), fpga_end(fpga));
    enum sim_status status = pcie_link_create(machine->sim, machine->pool, name, &link, &node->fpga_slot);
    if (status != SIM_OK) {
        return status;
    }
    unsigned port = pcie_rc_add_port(node->rc, pcie_link_end(node->fpga_slot, 0));
    status = pcie_rc_add_window(node->rc, port, PLAT_FPGA_MEMORY_BASE, fpga->memory_bytes);
    if (status == SIM_OK) {
        status = pcie_rc_add_window(node->rc, port, PLAT_FPGA_CONTROL_BASE, FPGA_CONTROL_BYTES);
    }
    if (status == SIM_OK && fpga->socket != 0) {
        status = pcie_rc_set_port_socket(node->rc, port, fpga->socket);
    }
    if (status == SIM_OK) {
        fpga_connect(node->fpga, pcie_link_end(node->fpga_slot, 1), PLAT_FPGA_MEMORY_BASE, PLAT_FPGA_CONTROL_BASE);
    }
    return status;
}

// --- the HCA -------------------------------------------------------------------------------------------------------

static enum sim_status hca_slot_create(struct plat_node *node)
{
    if (node->hca == NULL) {
        return SIM_OK;
    }
    const struct scn_hca *hca = &node->config->hca;
    const struct scn_host *host = &node->config->host;
    char name[SCN_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s.hca.slot", node->config->name);
    uint32_t mps_bytes = hca->mps_bytes < host->mps_bytes ? hca->mps_bytes : host->mps_bytes;
    const struct pcie_link_config link = link_config(&hca->slot, mps_bytes, plat_root_port_config(host), plat_hca_slot_end(node));
    enum sim_status status = pcie_link_create(node->machine->sim, node->machine->pool, name, &link, &node->hca_slot);
    return status == SIM_OK ? plat_hca_connect_host(node) : status;
}

static enum sim_status slots_create(struct plat_node *node)
{
    enum sim_status status = slot_create(node);
    for (unsigned i = 0; i < node->gpus.count && status == SIM_OK; i++) {
        status = gpu_slot_create(node, i);
    }
    if (status == SIM_OK) {
        status = fpga_slot_create(node);
    }
    return status == SIM_OK ? hca_slot_create(node) : status;
}

// --- cables --------------------------------------------------------------------------------------------------------

static enum peach2_port board_port(enum scn_port port)
{
    switch (port) {
    case SCN_PORT_N:
        return PEACH2_PORT_N;
    case SCN_PORT_E:
        return PEACH2_PORT_E;
    case SCN_PORT_W:
        return PEACH2_PORT_W;
    case SCN_PORT_S:
        break;
    }
    return PEACH2_PORT_S;
}

static enum sim_status cable_check(const plat_machine_t *machine, const struct scn_cable *cable,
                                   struct plat_error *error)
{
    const struct scn_node *from = machine->nodes[cable->from_node].config, *to = machine->nodes[cable->to_node].config;
    if (cable->from_port == SCN_PORT_N || cable->to_port == SCN_PORT_N) {
        return plat_error_set(error, SIM_ERR_INVALID, "the cable from %s to %s uses port N, which is the host's",
                              from->name, to->name);
    }
    if (from->board.window_base != to->board.window_base) {
        return plat_error_set(error, SIM_ERR_INVALID,
                              "%s and %s are joined by a cable but have their windows at different addresses",
                              from->name, to->name);
    }
    return SIM_OK;
}

static enum sim_status cable_create(plat_machine_t *machine, uint32_t index, struct plat_error *error)
{
    const struct scn_cable *cable = &machine->scenario->cables[index];
    struct plat_node *from = &machine->nodes[cable->from_node], *to = &machine->nodes[cable->to_node];
    enum sim_status status = cable_check(machine, cable, error);
    if (status != SIM_OK) {
        return status;
    }
    char name[2 * SCN_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s.%s-%s.%s", from->config->name, scn_port_name(cable->from_port), to->config->name,
             scn_port_name(cable->to_port));
    uint32_t from_mps = from->config->host.mps_bytes, to_mps = to->config->host.mps_bytes;
    struct pcie_link_config link = link_config(&cable->link, from_mps < to_mps ? from_mps : to_mps,
                                               hard_ip(&from->config->board), hard_ip(&to->config->board));
    link.is_cable = true;
    status = pcie_link_create(machine->sim, machine->pool, name, &link, &machine->cables[index]);
    if (status != SIM_OK) {
        return plat_error_set(error, status, "the cable %s cannot be built: %s", name, sim_status_text(status));
    }
    peach2_board_connect(from->board, board_port(cable->from_port), pcie_link_end(machine->cables[index], 0));
    peach2_board_connect(to->board, board_port(cable->to_port), pcie_link_end(machine->cables[index], 1));
    return SIM_OK;
}

// --- all of them ---------------------------------------------------------------------------------------------------

enum sim_status plat_links_create(plat_machine_t *machine, struct plat_error *error)
{
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        enum sim_status status = slots_create(&machine->nodes[i]);
        if (status != SIM_OK) {
            return plat_error_set(error, status, "the slot of %s cannot be built: %s", machine->nodes[i].config->name,
                                  sim_status_text(status));
        }
    }
    for (uint32_t i = 0; i < machine->scenario->cable_count; i++) {
        enum sim_status status = cable_create(machine, i, error);
        if (status != SIM_OK) {
            return status;
        }
    }
    enum sim_status status = plat_ib_fabric_create(machine);
    if (status != SIM_OK) {
        return plat_error_set(error, status, "the InfiniBand switches and cables cannot be built: %s",
                              sim_status_text(status));
    }
    return SIM_OK;
}

void plat_links_destroy(plat_machine_t *machine)
{
    for (uint32_t i = 0; i < machine->scenario->cable_count; i++) {
        if (machine->cables[i] != NULL) {
            pcie_link_destroy(machine->cables[i]);
        }
    }
    plat_ib_fabric_destroy(machine);
    for (uint32_t i = 0; i < machine->scenario->node_count; i++) {
        if (machine->nodes[i].slot != NULL) {
            pcie_link_destroy(machine->nodes[i].slot);
        }
        for (unsigned j = 0; j < SCN_GPUS_MAX; j++) {
            if (machine->nodes[i].gpu_slots[j] != NULL) {
                pcie_link_destroy(machine->nodes[i].gpu_slots[j]);
            }
        }
        if (machine->nodes[i].fpga_slot != NULL) {
            pcie_link_destroy(machine->nodes[i].fpga_slot);
        }
        if (machine->nodes[i].hca_slot != NULL) {
            pcie_link_destroy(machine->nodes[i].hca_slot);
        }
    }
}
