// The HCA of a node, its slot, and the InfiniBand cables.
#include <stdio.h>

#include "sim/platform/internal.h"

// As `ibv_devinfo -v` prints them for a ConnectX-2 or ConnectX-3 under Linux' mlx4_core with its profile of 2^16 QPs,
// CQs and SRQs, 2^17 regions and 2^15 PDs, less what the firmware keeps for itself. One EQ is a process here (its UAR
// page).
enum {
    QPS = 65464,
    CQS = 65408,
    SRQS = 65472,
    PDS = 32764,
    MRS = 131056,
    EQS = HCA_UAR_PAGES,
    ENTRIES = 16384,
    CQ_ENTRIES = 4194304 // ibv_devinfo: 4194303
};

// Behind the root port after that of the FPGA.
static const uint16_t hca_requester = 0x0300 + 0x100 * SCN_GPUS_MAX;

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t ps_per_byte(const struct scn_hca *hca)
{
    return (uint32_t)(SIM_PS_PER_US / hca->port_bytes_per_us);
}

static struct hca_config config_of(const struct scn_hca *hca, const struct scn_host *host)
{
    return (struct hca_config){
        .pcie_generation = hca->slot.generation,
        .pcie_lanes = hca->slot.lanes,
        .pcie_tx_ps = hca->pcie_tx_ps,
        .pcie_rx_ps = hca->pcie_rx_ps,
        .mps_bytes = least(hca->mps_bytes, host->mps_bytes),
        .mrrs_bytes = least(hca->mrrs_bytes, host->mrrs_bytes),
        .read_tags = hca->read_tags,
        .write_tlps = hca->write_tlps,
        .requester_id = hca_requester,
        .port_ps_per_byte = ps_per_byte(hca),
        .port_gap_bytes = hca->port_gap_bytes,
        .port_tx_ps = hca->port_tx_ps,
        .port_rx_ps = hca->port_rx_ps,
        .port_buffer_blocks = hca->port_buffer_bytes / IB_BLOCK_BYTES,
        .max_mtu_bytes = hca->max_mtu_bytes,
        .doorbell_ps = hca->doorbell_ps,
        .send_request_ps = hca->send_request_ps,
        .send_packet_ps = hca->send_packet_ps,
        .receive_packet_ps = hca->receive_packet_ps,
        .read_packet_ps = hca->read_packet_ps,
        .place_ps = hca->place_ps,
        .atomic_ps = hca->atomic_ps,
        .prefetch_requests = hca->prefetch_requests,
        .gather_packets = hca->gather_packets,
        .order_entries = hca->order_entries,
        .window_packets = hca->window_packets,
        .ack_every_packets = hca->ack_every_packets,
        .max_qp = QPS,
        .max_cq = CQS,
        .max_srq = SRQS,
        .max_pd = PDS,
        .max_mr = MRS,
        .max_eq = EQS,
        .max_entries = ENTRIES,
        .max_cq_entries = CQ_ENTRIES,
        .max_inline_bytes = hca->max_inline_bytes,
        .part_id = hca->part_id,
        .responder_reads = hca->responder_reads,
        .initiator_reads = hca->initiator_reads,
    };
}

enum sim_status plat_hca_create(struct plat_node *node)
{
    char name[SCN_NAME_MAX + 8];
    snprintf(name, sizeof name, "%s.hca", node->config->name);
    const struct hca_config config = config_of(&node->config->hca, &node->config->host);
    return hca_create(node->machine->sim, node->machine->pool, node->machine->packets, name, &config, &node->hca);
}

enum sim_status plat_hca_connect_host(struct plat_node *node)
{
    if (node->hca == NULL) {
        return SIM_OK;
    }
    pcie_end_t *end = pcie_link_end(node->hca_slot, 0);
    unsigned port = pcie_rc_add_port(node->rc, end);
    enum sim_status status = pcie_rc_add_window(node->rc, port, PLAT_HCA_UAR_BASE, hca_uar_bytes());
    if (status == SIM_OK && node->config->hca.socket != 0) {
        status = pcie_rc_set_port_socket(node->rc, port, node->config->hca.socket);
    }
    if (status == SIM_OK) {
        hca_connect_host(node->hca, pcie_link_end(node->hca_slot, 1), PLAT_HCA_UAR_BASE);
        plat_hca_watch(node->hca, node->memory);
    }
    return status;
}

struct pcie_end_config plat_hca_slot_end(const struct plat_node *node)
{
    const struct hca_config config = config_of(&node->config->hca, &node->config->host);
    return hca_slot_end(&config);
}

// The slower of the two sets the rate of the link, as their training does. LIDs are the nodes' numbers from 1 on.
enum sim_status plat_ib_cable_create(plat_machine_t *machine, uint32_t index)
{
    const struct scn_ib_cable *cable = &machine->scenario->ib_cables[index];
    struct plat_node *from = &machine->nodes[cable->from_node], *to = &machine->nodes[cable->to_node];
    const struct scn_hca *a = &from->config->hca, *b = &to->config->hca;
    char name[2 * SCN_NAME_MAX + 16];
    snprintf(name, sizeof name, "%s.hca-%s.hca", from->config->name, to->config->name);
    const struct ib_link_config link = {
        .ps_per_byte = ps_per_byte(a) > ps_per_byte(b) ? ps_per_byte(a) : ps_per_byte(b),
        .flight_ps = cable->flight_ps,
        .buffer_blocks = {a->port_buffer_bytes / IB_BLOCK_BYTES, b->port_buffer_bytes / IB_BLOCK_BYTES},
        .mtu_bytes = a->max_mtu_bytes > b->max_mtu_bytes ? a->max_mtu_bytes : b->max_mtu_bytes,
        .gap_bytes = a->port_gap_bytes > b->port_gap_bytes ? a->port_gap_bytes : b->port_gap_bytes,
    };
    enum sim_status status = ib_link_create(machine->sim, machine->packets, name, &link, &machine->ib_cables[index]);
    if (status == SIM_OK) {
        hca_connect_port(from->hca, ib_link_end(machine->ib_cables[index], 0), (uint16_t)(cable->from_node + 1));
        hca_connect_port(to->hca, ib_link_end(machine->ib_cables[index], 1), (uint16_t)(cable->to_node + 1));
    }
    return status;
}
