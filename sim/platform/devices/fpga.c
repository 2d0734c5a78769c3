// An FPGA with its own DMA engine, in a node.
#include "models/fpga/fpga.h"
#include "sim/platform/device.h"
#include "sim/platform/internal.h"
#include "verbs-shim/fpga/fpga_driver.h"

enum { BAR_MEMORY, BAR_CONTROL, BARS };

static enum sim_status create(struct plat_device *device, const struct plat_options *options)
{
    const struct scn_fpga *fpga = &device->node->config->fpga;
    const struct scn_host *host = &device->node->config->host;
    (void)options;
    const struct fpga_config config = {
        .clock_ps = FPGA_CYCLE_NS * SIM_PS_PER_NS,
        .memory_bytes = fpga->memory_bytes,
        .requester = device->requester,
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
    fpga_t *model;
    enum sim_status status =
        fpga_create(device->node->machine->sim, device->node->machine->pool, device->name, &config, &model);
    device->model = status == SIM_OK ? model : NULL;
    return status;
}

static void destroy(struct plat_device *device)
{
    fpga_destroy(device->model);
}

static void describe(struct plat_device *device, struct plat_slot *slot)
{
    const struct scn_fpga *fpga = &device->node->config->fpga;
    slot->link = &fpga->slot;
    slot->socket = fpga->socket;
    slot->end = plat_link_end(fpga->ip_tx_ps, fpga->ip_rx_ps, fpga->posted_header_credits, fpga->posted_data_credits,
                              fpga->nonposted_header_credits, fpga->tx_buffer_tlps);
    device->bars[BAR_MEMORY].bytes = fpga->memory_bytes;
    device->bars[BAR_CONTROL].bytes = FPGA_CONTROL_BYTES;
}

static void connect(struct plat_device *device, pcie_end_t *end)
{
    fpga_connect(device->model, end, device->bars[BAR_MEMORY].base, device->bars[BAR_CONTROL].base);
}

static int boot(struct plat_device *device, const struct backend *backend)
{
    fpga_handle_t *handle;
    int error = fpga_open(backend, device->bars[BAR_MEMORY].number, device->bars[BAR_CONTROL].number, &handle);
    device->driver = error == 0 ? handle : NULL;
    return error;
}

static void close_driver(struct plat_device *device)
{
    fpga_close(device->driver);
}

const struct plat_device_ops plat_device_fpga = {
    .bars = BARS,
    .create = create,
    .destroy = destroy,
    .describe = describe,
    .connect = connect,
    .boot = boot,
    .close = close_driver,
};
