// One node: host memory, root complex, core, and its devices.
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
        .hca = node->hca,
        .interrupt_ps = node->config->host.interrupt_ps,
    };
}

flow_net_t *plat_node_flows(const struct plat_node *node)
{
    const struct scn_board *board = &node->config->board;
    enum scn_fidelity fidelity = board->given ? board->fidelity : node->machine->scenario->fidelity;
    return fidelity == SCN_FIDELITY_FLOW ? node->machine->flows : NULL;
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
        status = plat_devices_create(node, options);
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
    plat_devices_destroy(node);
    plat_gpus_fini(&node->gpus);
    host_core_destroy(node->core);
    if (node->rc != NULL) {
        pcie_rc_destroy(node->rc);
    }
    host_memory_destroy(node->memory);
}
