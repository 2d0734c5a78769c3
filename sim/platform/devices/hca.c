// A node's InfiniBand HCA in its slot. ib_fabric.c connects its port; programs find it as `ibsim0`.
#include "models/hca/hca.h"

#include "sim/platform/configs.h"
#include "sim/platform/device.h"
#include "sim/platform/internal.h"

// Values that `ibv_devinfo -v` prints for a ConnectX-2 or ConnectX-3 under Linux' mlx4_core with its profile of 2^16
// QPs, CQs and SRQs, 2^17 regions and 2^15 PDs, less what the firmware reserves. Here each process has one EQ (and its
// UAR page).
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

// Of a model without a node; in a node its slot has another one.
static const uint16_t alone_requester = 0x0100;

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t ps_per_byte(const struct scn_hca *hca)
{
    return (uint32_t)(SIM_PS_PER_US / hca->port_bytes_per_us);
}

struct hca_config plat_hca_config(const struct scn_hca *hca, const struct scn_host *host)
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
        .requester_id = alone_requester,
        .port_ps_per_byte = ps_per_byte(hca),
        .port_gap_bytes = hca->port_gap_bytes,
        .port_tx_ps = hca->port_tx_ps,
        .port_rx_ps = hca->port_rx_ps,
        .port_buffer_blocks = hca->port_buffer_bytes / IB_BLOCK_BYTES,
        .max_mtu_bytes = hca->max_mtu_bytes,
        .active_mtu_bytes = hca->active_mtu_bytes,
        .doorbell_ps = hca->doorbell_ps,
        .command_ps = hca->command_ps,
        .send_request_ps = hca->send_request_ps,
        .send_packet_ps = hca->send_packet_ps,
        .receive_packet_ps = hca->receive_packet_ps,
        .read_packet_ps = hca->read_packet_ps,
        .write_dispatch_ps = hca->write_dispatch_ps,
        .atomic_ps = hca->atomic_ps,
        .atomic_answer_ps = hca->atomic_answer_ps,
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
        .blueflame_all = hca->blueflame == SCN_BLUEFLAME_ALL,
    };
}

// --- in a node -------------------------------------------------------------------------------------------------------

static struct hca_config config_of(const struct plat_device *device)
{
    struct hca_config config = plat_hca_config(&device->node->config->hca, &device->node->config->host);
    config.requester_id = device->requester;
    config.adversary = device->node->machine->adversary;
    config.flows = plat_node_flows(device->node);
    return config;
}

static enum sim_status create(struct plat_device *device, const struct plat_options *options)
{
    plat_machine_t *machine = device->node->machine;
    const struct hca_config config = config_of(device);
    (void)options;
    enum sim_status status =
        hca_create(machine->sim, machine->pool, machine->packets, device->name, &config, &device->node->hca);
    device->model = device->node->hca;
    return status;
}

static void destroy(struct plat_device *device)
{
    if (device->model != NULL) {
        hca_destroy(device->model);
    }
}

static void describe(struct plat_device *device, struct plat_slot *slot)
{
    const struct hca_config config = config_of(device);
    slot->link = &device->node->config->hca.slot;
    slot->mps_bytes = config.mps_bytes;
    slot->socket = device->node->config->hca.socket;
    slot->end = hca_slot_end(&config);
    device->bars[0].bytes = hca_uar_bytes();
    device->bars[0].number = BACKEND_BAR_HCA_UAR;
}

static void connect(struct plat_device *device, pcie_end_t *end)
{
    hca_connect_host(device->model, end, device->bars[0].base);
    plat_hca_watch(device->model, device->node->memory);
}

const struct plat_device_ops plat_device_hca = {
    .bars = 1,
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .connect = connect,
};
