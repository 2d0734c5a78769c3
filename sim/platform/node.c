// One node: host memory, root complex, core, GPUs, FPGA, HCA, board and chip.
#include <stdio.h>

#include "sim/platform/configs.h"
#include "sim/platform/internal.h"

// --- names ---------------------------------------------------------------------------------------------------------

struct component_name {
    char text[SCN_NAME_MAX + 32];
};

static struct component_name name_of(const struct plat_node *node, const char *part)
{
    struct component_name name;
    snprintf(name.text, sizeof name.text, "%s.%s", node->config->name, part);
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

static const struct peach2_core_ops chip_ops = {
    .rx = chip_rx, .set_tx_ready = chip_set_tx_ready, .set_tx_room = chip_set_tx_room};
static const struct cosim_peach2_ops chip_callbacks = {.tx = peach2_board_tx, .rx_taken = peach2_board_rx_taken};

// Bus, device and function of the board in its node: the first device behind the first root port.
static const uint16_t board_requester = 0x0100;

// The host's Max_Read_Request_Size bounds what the DMAC asks for.
static uint32_t read_bytes(const struct plat_node *node)
{
    uint32_t mrrs_bytes = node->config->host.mrrs_bytes, wanted_bytes = node->config->board.dmac_read_bytes;
    return mrrs_bytes < wanted_bytes ? mrrs_bytes : wanted_bytes;
}

static enum sim_status rtl_create(struct plat_node *node, const struct plat_options *options)
{
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
        .requester = board_requester,
        .mps_bytes = plat_machine_mps_bytes(node->machine, node->index),
        .start_cycles = board->dmac_start_cycles,
        .fetch_cycles = board->dmac_fetch_cycles,
        .finish_cycles = board->dmac_finish_cycles,
        .read_bytes = read_bytes(node),
        .read_tags = board->dmac_read_tags,
        .prefetch = board->dmac_prefetch,
    };
    status = cosim_peach2_create(clock, node->machine->pool, name_of(node, "chip").text, &config, &chip_callbacks,
                                 node->board, traced ? trace_path : NULL, &node->chip);
    if (status == SIM_OK) {
        peach2_board_set_core(node->board, &chip_ops, node->chip);
    }
    return status;
}

static enum sim_status twin_create(struct plat_node *node)
{
    static const struct peach2_twin_ops ops = {.tx = peach2_board_tx, .rx_taken = peach2_board_rx_taken_at};
    const struct scn_board *board = &node->config->board;
    const struct peach2_twin_config config = {
        .period_ps = plat_clock_period_ps(board->clock_mhz),
        .requester = board_requester,
        .mps_bytes = plat_machine_mps_bytes(node->machine, node->index),
        .start_cycles = board->dmac_start_cycles,
        .fetch_cycles = board->dmac_fetch_cycles,
        .finish_cycles = board->dmac_finish_cycles,
        .read_bytes = read_bytes(node),
        .read_tags = board->dmac_read_tags,
        .prefetch = board->dmac_prefetch,
    };
    enum sim_status status = peach2_twin_create(node->machine->sim, node->machine->pool, name_of(node, "chip").text,
                                                &config, &ops, node->board, &node->twin);
    if (status == SIM_OK) {
        peach2_board_set_core(node->board, &peach2_twin_core_ops, node->twin);
    }
    return status;
}

static enum sim_status chip_create(struct plat_node *node, const struct plat_options *options)
{
    switch (node->config->board.fidelity) {
    case SCN_FIDELITY_RTL:
        break;
    case SCN_FIDELITY_TWIN:
        return twin_create(node);
    }
    return rtl_create(node, options);
}

static enum sim_status board_create(struct plat_node *node, const struct plat_options *options)
{
    const struct scn_board *board = &node->config->board;
    enum sim_status status =
        peach2_board_create(node->machine->sim, name_of(node, "board").text, PLAT_BAR0_BASE, board->window_base,
                            plat_clock_period_ps(board->clock_mhz), &node->board);
    if (status == SIM_OK) {
        status = chip_create(node, options);
    }
    return status == SIM_OK ? plat_chip_counters_register(node, name_of(node, "chip").text) : status;
}

// --- the FPGA ------------------------------------------------------------------------------------------------------

// Behind the root port after those of the GPUs.
static const uint16_t fpga_requester = 0x0200 + 0x100 * SCN_GPUS_MAX;

static enum sim_status fpga_start(struct plat_node *node)
{
    const struct scn_fpga *fpga = &node->config->fpga;
    const struct scn_host *host = &node->config->host;
    const struct fpga_config config = {
        .clock_ps = FPGA_CYCLE_NS * SIM_PS_PER_NS,
        .memory_bytes = fpga->memory_bytes,
        .requester = fpga_requester,
        .mps_bytes = host->mps_bytes,
        .mrrs_bytes = host->mrrs_bytes < fpga->mrrs_bytes ? host->mrrs_bytes : fpga->mrrs_bytes,
        .read_tags = fpga->read_tags,
        .access_cycles = fpga->access_cycles,
        .answer_cycles = fpga->answer_cycles,
        .read_start_cycles = fpga->read_start_cycles,
        .read_finish_cycles = fpga->read_finish_cycles,
        .write_start_cycles = fpga->write_start_cycles,
        .write_finish_cycles = fpga->write_finish_cycles,
        .completion_timeout_ps = fpga->completion_timeout_ps,
    };
    return fpga_create(node->machine->sim, node->machine->pool, name_of(node, "fpga").text, &config, &node->fpga);
}

// --- the host ------------------------------------------------------------------------------------------------------

static enum sim_status memory_create(struct plat_node *node, struct plat_error *error)
{
    uint64_t bytes = node->config->host.memory_bytes;
    if (bytes > PEACH2_HOST_BYTES_MAX) {
        return plat_error_set(error, SIM_ERR_INVALID,
                              "%s: %llu MiB of host memory do not fit its block of the window, which has %llu MiB",
                              node->config->name, (unsigned long long)(bytes >> 20), PEACH2_HOST_BYTES_MAX >> 20);
    }
    return host_memory_create(node->machine->sim, name_of(node, "memory").text, bytes, &node->memory);
}

struct pcie_rc_config plat_rc_config(const struct scn_host *host)
{
    return (struct pcie_rc_config){
        .memory_read_ps = host->memory_read_ps,
        .memory_write_ps = host->memory_write_ps,
        .memory_reads_max = host->memory_reads_max,
        .rcb_bytes = host->rcb_bytes,
        .mps_bytes = host->mps_bytes,
        .peer_ps = host->peer_ps,
        .peer_reads_max = host->peer_reads_max,
        .peer_read_bytes = host->peer_read_bytes,
        .qpi_ps = host->qpi_ps,
        .qpi_peer_write_ps = host->qpi_peer_write_ps,
        .qpi_peer_read_ps = host->qpi_peer_read_ps,
        .qpi_peer_lines_max = host->qpi_peer_lines_max,
    };
}

static enum sim_status root_complex_create(struct plat_node *node)
{
    struct pcie_rc_config config = plat_rc_config(&node->config->host);
    config.adversary = node->machine->adversary;
    return pcie_rc_create(node->machine->sim, node->machine->pool, name_of(node, "root_complex").text, &config,
                          &host_memory_pcie_ops, node->memory, &node->rc);
}

static uint64_t flush_far_ps(const struct scn_host *host)
{
    if (host->flush_wc_far_ps == 0) {
        return host->flush_wc_ps + host->qpi_ps;
    }
    return host->flush_wc_far_ps > host->flush_wc_ps ? host->flush_wc_far_ps : host->flush_wc_ps;
}

struct host_core_config plat_core_config(const struct scn_host *host)
{
    return (struct host_core_config){
        .store_wc_ps = host->store_wc_ps,
        .flush_wc_ps = host->flush_wc_ps,
        .flush_wc_far_ps = flush_far_ps(host),
        .store_uc_ps = host->store_uc_ps,
        .load_uc_ps = host->load_uc_ps,
        .load_uc_return_ps = host->load_uc_return_ps,
        .load_ps = host->load_ps,
        .device_line_ps = host->device_line_ps,
        .lock_ps = host->lock_ps,
        .poll_ps = host->poll_ps,
        .timestamp_ps = host->timestamp_ps,
        .call_ps = host->call_ps,
        .copy_bytes_per_us = host->copy_bytes_per_us,
    };
}

static enum sim_status core_create(struct plat_node *node)
{
    const struct host_core_config config = plat_core_config(&node->config->host);
    return host_core_create(node->machine->sim, name_of(node, "core").text, &config, node->rc, node->memory,
                            &node->core);
}

// --- life ----------------------------------------------------------------------------------------------------------

static void backend_init(struct plat_node *node)
{
    node->backend = (struct plat_backend_inproc){
        .sim = node->machine->sim,
        .core = node->core,
        .memory = node->memory,
        .rc = node->rc,
        .node = node->config->name,
        .gpus = &node->gpus,
        .interrupt_ps = node->config->host.interrupt_ps,
    };
    for (unsigned i = 0; i < node->gpus.count; i++) {
        node->backend.bars[BACKEND_BAR_GPU0 + i] =
            (struct plat_bar){PLAT_GPU_BASE + i * PLAT_GPU_STEP_BYTES, node->config->gpus[i].bar_bytes};
    }
    if (node->board != NULL) {
        node->backend.bars[BACKEND_BAR_REGISTERS] = (struct plat_bar){PLAT_BAR0_BASE, PEACH2_BAR0_BYTES};
        node->backend.bars[BACKEND_BAR_WINDOW] =
            (struct plat_bar){node->config->board.window_base, PEACH2_WINDOW_BYTES};
    }
    if (node->hca != NULL) {
        node->backend.hca = node->hca;
        node->backend.bars[BACKEND_BAR_HCA_UAR] = (struct plat_bar){PLAT_HCA_UAR_BASE, hca_uar_bytes()};
    }
    if (node->fpga != NULL) {
        node->backend.bars[BACKEND_BAR_FPGA_MEMORY] =
            (struct plat_bar){PLAT_FPGA_MEMORY_BASE, node->config->fpga.memory_bytes};
        node->backend.bars[BACKEND_BAR_FPGA_CONTROL] = (struct plat_bar){PLAT_FPGA_CONTROL_BASE, FPGA_CONTROL_BYTES};
    }
}

enum sim_status plat_node_init(struct plat_node *node, const struct plat_options *options, struct plat_error *error)
{
    enum sim_status status = memory_create(node, error);
    if (status == SIM_OK) {
        status = root_complex_create(node);
    }
    if (status == SIM_OK) {
        status = core_create(node);
    }
    if (status == SIM_OK) {
        status = plat_gpus_init(&node->gpus, node->config, node->machine->sim, node->machine->pool);
    }
    if (status == SIM_OK && node->config->fpga.given) {
        status = fpga_start(node);
    }
    if (status == SIM_OK && node->config->hca.given) {
        status = plat_hca_create(node);
    }
    if (status == SIM_OK && node->config->board.given) {
        status = board_create(node, options);
    }
    if (status != SIM_OK) {
        return plat_error_set(error, status, "%s cannot be built: %s", node->config->name, sim_status_text(status));
    }
    backend_init(node);
    return SIM_OK;
}

void plat_node_fini(struct plat_node *node)
{
    plat_backend_leave(&node->backend);
    fpga_close(node->fpga_handle);
    peach2_close(node->handle);
    if (node->chip != NULL) {
        cosim_peach2_destroy(node->chip);
    }
    peach2_twin_destroy(node->twin);
    peach2_board_destroy(node->board);
    fpga_destroy(node->fpga);
    if (node->hca != NULL) {
        hca_destroy(node->hca);
    }
    plat_gpus_fini(&node->gpus);
    host_core_destroy(node->core);
    if (node->rc != NULL) {
        pcie_rc_destroy(node->rc);
    }
    host_memory_destroy(node->memory);
}
