// The GPUs of a node.
#include "sim/platform/device.h"
#include "sim/platform/internal.h"

static struct gpu_config config_of(const struct plat_device *device)
{
    const struct scn_node *node = device->node->config;
    const struct scn_gpu *gpu = &node->gpus[device->index];
    return (struct gpu_config){
        .memory_bytes = gpu->memory_bytes,
        .bar_bytes = gpu->bar_bytes,
        .requester_id = device->requester,
        .write_ps = gpu->write_ps,
        .read_ps = gpu->read_ps,
        .reads_max = gpu->reads_max,
        .mps_bytes = node->host.mps_bytes,
        .completion_bytes = gpu->completion_bytes,
        .l2_bytes = (uint32_t)gpu->l2_bytes,
        .l2_miss_ps = gpu->l2_miss_ps,
        .copy_engines = gpu->copy_engines,
        .copy_setup_ps = gpu->copy_setup_ps,
        .mrrs_bytes = node->host.mrrs_bytes < gpu->copy_read_bytes ? node->host.mrrs_bytes : gpu->copy_read_bytes,
        .copy_reads_max = gpu->copy_reads_max,
        .launch_ps = gpu->launch_ps,
        .memory_bytes_per_us = gpu->memory_bytes_per_us,
        .flops_per_us = gpu->flops_per_us,
        .flows = plat_node_flows(device->node),
    };
}

static enum sim_status create(struct plat_device *device, const struct plat_options *options)
{
    struct plat_node *node = device->node;
    const struct gpu_config config = config_of(device);
    struct plat_gpu *gpu;
    (void)options;
    enum sim_status status =
        plat_gpus_add(&node->gpus, node->machine->sim, device->name, &node->config->gpus[device->index], &gpu);
    if (status == SIM_OK) {
        status = gpu_create(node->machine->sim, node->machine->pool, device->name, &config, &gpu->gpu);
        device->model = gpu->gpu;
    }
    return status;
}

// plat_gpus_fini frees the backend's state of all GPUs of the node.
static void destroy(struct plat_device *device)
{
    gpu_destroy(device->model);
}

static void describe(struct plat_device *device, struct plat_slot *slot)
{
    const struct scn_gpu *gpu = &device->node->config->gpus[device->index];
    slot->link = &gpu->slot;
    slot->socket = gpu->socket;
    slot->end = plat_link_end(gpu->ip_tx_ps, gpu->ip_rx_ps, gpu->posted_header_credits, gpu->posted_data_credits,
                              gpu->nonposted_header_credits, gpu->tx_buffer_tlps);
    device->bars[0] = (struct plat_device_bar){.base = PLAT_GPU_BASE + device->index * PLAT_GPU_STEP_BYTES,
                                               .bytes = gpu->bar_bytes,
                                               .number = (enum backend_bar)(BACKEND_BAR_GPU0 + device->index)};
}

static void connect(struct plat_device *device, pcie_end_t *end)
{
    gpu_connect(device->model, end, device->bars[0].base);
}

const struct plat_device_ops plat_device_gpu = {
    .many = true,
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .connect = connect,
};
