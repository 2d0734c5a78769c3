#include "sim/platform/device.h"

#include <stdio.h>

#include "sim/platform/configs.h"
#include "sim/platform/internal.h"

static unsigned board_count(const struct scn_node *node)
{
    return node->board.given;
}

static unsigned gpu_count(const struct scn_node *node)
{
    return node->gpu_count;
}

#define DEVICE(id, ID, name, kind_doc, key_doc)                                                                        \
    static unsigned id##_count(const struct scn_node *node)                                                            \
    {                                                                                                                  \
        return node->id.given;                                                                                         \
    }
#include "sim/scenario/devices.def"

// In the order of the slots, which is that of bus numbers, root ports, and addresses of BARs.
static const struct {
    const char *id, *title; // id: in names of components; title: in messages
    const struct plat_device_ops *ops;
    unsigned (*count)(const struct scn_node *node);
} registry[] = {
    {"board", "board", &plat_device_board, board_count},
    {"gpu", "GPU", &plat_device_gpu, gpu_count},
#define DEVICE(id, ID, name, kind_doc, key_doc) {#id, name, &plat_device_##id, id##_count},
#include "sim/scenario/devices.def"
};
enum { KINDS = sizeof registry / sizeof registry[0], KIND_BOARD = 0, KIND_FIRST_ROW = 2 };

// The first device of a kind in node->devices.
static unsigned device_first(unsigned kind)
{
    return kind == KIND_BOARD ? 0 : kind < KIND_FIRST_ROW ? 1 : 1 + SCN_GPUS_MAX + (kind - KIND_FIRST_ROW);
}

// --- addresses -----------------------------------------------------------------------------------------------------

// Each device has a bus, even if devices before it do not exist; bus 0 is the root complex.
static uint16_t requester_of(unsigned position)
{
    return (uint16_t)((position + 1) << 8);
}

static enum sim_status bars_assign(struct plat_device *device, unsigned kind)
{
    unsigned bar = 0;
    for (unsigned i = 0; i < kind; i++) {
        bar += registry[i].ops->bars;
    }
    if (BACKEND_BAR_DEVICE0 + bar + device->ops->bars > BACKEND_BARS) {
        return SIM_ERR_RANGE;
    }
    for (unsigned i = 0; i < device->ops->bars; i++, bar++) {
        device->bars[i].base = PLAT_DEVICE_BAR_BASE + bar * PLAT_DEVICE_BAR_BYTES;
        device->bars[i].number = (enum backend_bar)(BACKEND_BAR_DEVICE0 + bar);
    }
    return SIM_OK;
}

// --- models --------------------------------------------------------------------------------------------------------

static enum sim_status device_create(struct plat_node *node, unsigned kind, unsigned index,
                                     const struct plat_options *options)
{
    unsigned position = device_first(kind) + index;
    struct plat_device *device = &node->devices[position];
    *device = (struct plat_device){.ops = registry[kind].ops,
                                   .title = registry[kind].title,
                                   .node = node,
                                   .index = index,
                                   .requester = requester_of(position)};
    snprintf(device->name, sizeof device->name, device->ops->many ? "%s.%s%u" : "%s.%s", node->config->name,
             registry[kind].id, index);
    enum sim_status status = bars_assign(device, kind);
    return status == SIM_OK ? device->ops->create(device, options) : status;
}

static enum sim_status kind_create(struct plat_node *node, unsigned kind, const struct plat_options *options)
{
    enum sim_status status = SIM_OK;
    for (unsigned i = 0; i < registry[kind].count(node->config) && status == SIM_OK; i++) {
        status = device_create(node, kind, i, options);
    }
    return status;
}

// The board is last, so that its counters follow those of the other devices.
enum sim_status plat_devices_create(struct plat_node *node, const struct plat_options *options)
{
    enum sim_status status = SIM_OK;
    for (unsigned kind = KIND_BOARD + 1; kind < KINDS && status == SIM_OK; kind++) {
        status = kind_create(node, kind, options);
    }
    return status == SIM_OK ? kind_create(node, KIND_BOARD, options) : status;
}

void plat_devices_destroy(struct plat_node *node)
{
    for (unsigned i = PLAT_DEVICES_MAX; i-- > 0;) {
        if (node->devices[i].driver != NULL) {
            node->devices[i].ops->close(&node->devices[i]);
        }
    }
    for (unsigned i = 0; i < PLAT_DEVICES_MAX; i++) {
        if (node->devices[i].ops != NULL) {
            node->devices[i].ops->destroy(&node->devices[i]);
        }
    }
}

struct plat_device *plat_device_find(struct plat_node *node, enum scn_device_id id)
{
    struct plat_device *device = &node->devices[device_first(KIND_FIRST_ROW + id)];
    return device->ops != NULL ? device : NULL;
}

// --- slots ---------------------------------------------------------------------------------------------------------

static enum sim_status windows_add(struct plat_device *device, const struct plat_slot *slot)
{
    struct plat_node *node = device->node;
    unsigned port = pcie_rc_add_port(node->rc, pcie_link_end(device->slot, 0));
    enum sim_status status = SIM_OK;
    for (unsigned i = 0; i < PLAT_DEVICE_BARS_MAX && device->bars[i].bytes != 0 && status == SIM_OK; i++) {
        const struct plat_device_bar *bar = &device->bars[i];
        status = pcie_rc_add_window(node->rc, port, bar->base, bar->bytes);
        node->backend.bars[bar->number] = (struct plat_bar){bar->base, bar->bytes};
    }
    if (status == SIM_OK && slot->socket != 0) {
        status = pcie_rc_set_port_socket(node->rc, port, slot->socket);
    }
    return status;
}

static enum sim_status slot_create(struct plat_device *device)
{
    const struct scn_host *host = &device->node->config->host;
    plat_machine_t *machine = device->node->machine;
    struct plat_slot slot = {.mps_bytes = host->mps_bytes};
    snprintf(slot.name, sizeof slot.name, "%s.slot", device->name);
    device->ops->describe(device, &slot);
    const struct pcie_link_config link =
        plat_link_config(slot.link, slot.mps_bytes, plat_root_port_config(host), slot.end);
    enum sim_status status = pcie_link_create(machine->sim, machine->pool, slot.name, &link, &device->slot);
    if (status == SIM_OK) {
        status = windows_add(device, &slot);
    }
    if (status == SIM_OK) {
        device->ops->connect(device, pcie_link_end(device->slot, 1));
    }
    return status;
}

enum sim_status plat_slots_create(struct plat_node *node)
{
    enum sim_status status = SIM_OK;
    for (unsigned i = 0; i < PLAT_DEVICES_MAX && status == SIM_OK; i++) {
        status = node->devices[i].ops != NULL ? slot_create(&node->devices[i]) : SIM_OK;
    }
    return status;
}

void plat_slots_destroy(struct plat_node *node)
{
    for (unsigned i = 0; i < PLAT_DEVICES_MAX; i++) {
        if (node->devices[i].slot != NULL) {
            pcie_link_destroy(node->devices[i].slot);
        }
    }
}

// --- drivers -------------------------------------------------------------------------------------------------------

int plat_devices_boot(struct plat_node *node, const struct plat_device **failed_out)
{
    const struct backend backend = plat_backend_inproc(&node->backend);
    int error = 0;
    for (unsigned i = 0; i < PLAT_DEVICES_MAX && error == 0; i++) {
        struct plat_device *device = &node->devices[i];
        if (device->ops != NULL && device->ops->boot != NULL) {
            *failed_out = device;
            error = device->ops->boot(device, &backend);
        }
    }
    return error;
}
