// A device in a PCI Express slot of a node: the platform's state of a device, and the operations of a kind. The board,
// the GPUs and the rows of sim/scenario/devices.def all join a node through these operations. The rest of the platform
// names a kind only for what is outside the slot: cables of boards, the InfiniBand fabric, queues of GPUs.
//
// Interrupts need no operation, as the root complex models none as messages: a device interrupts by writing a word in
// pinned memory, for which its driver waits (verbs-shim/peach2/peach2_interrupt.c).
//
// The operations of a row of devices.def are struct plat_device_ops plat_device_<id>, in devices/<id>.c.
// Private to the room.
#pragma once

#include "models/pcie/link.h"
#include "sim/platform/platform.h"
#include "verbs-shim/backend/backend.h"

struct plat_node;

#define PLAT_DEVICE_BARS_MAX 2
#define PLAT_DEVICES_MAX     (1 + SCN_GPUS_MAX + SCN_DEVICE_IDS) // of a node: a board, GPUs, one of each row

struct plat_device_bar {
    uint64_t base, bytes;
    enum backend_bar number; // the number that drivers use
};

struct plat_device {
    const struct plat_device_ops *ops; // NULL: the node has no such device
    const char *title;                 // "FPGA", in messages
    struct plat_node *node;
    unsigned index;              // among the devices of its kind
    char name[SCN_NAME_MAX + 8]; // "node0.fpga": of the model, its counters and its slot ("node0.fpga.slot")
    uint16_t requester;          // bus, device and function
    struct plat_device_bar bars[PLAT_DEVICE_BARS_MAX];
    void *model;       // from create; NULL: it failed
    void *driver;      // from boot; NULL: none, or not booted
    pcie_link_t *slot; // NULL: not created yet
};

// The link between a device and its host.
struct plat_slot {
    char name[SCN_NAME_MAX + 16];
    const struct scn_link *link;
    uint32_t mps_bytes;
    uint32_t socket; // of the root port
    struct pcie_end_config end;
};

struct plat_device_ops {
    bool many;     // a node may have several, whose names end with the index
    unsigned bars; // BARs in the platform's range, 4 GiB each; 0: the kind has addresses of its own

    // Creates the model, without its link, as device->model, and registers its counters.
    enum sim_status (*create)(struct plat_device *device, const struct plat_options *options);
    void (*destroy)(struct plat_device *device); // also after a failed create; before the slot
    // Describes the slot, whose name and the host's mps_bytes are set already, and the sizes of the BARs. A kind with
    // addresses of its own also sets base and number.
    void (*describe)(struct plat_device *device, struct plat_slot *slot);
    // The model becomes the owner of its end of the slot.
    void (*connect)(struct plat_device *device, pcie_end_t *end);
    // In the node's thread, before programs start: boots the driver as device->driver. Returns 0 or a negative errno.
    // NULL: programs open the device themselves. close destroys what boot created, from outside threads.
    int (*boot)(struct plat_device *device, const struct backend *backend);
    void (*close)(struct plat_device *device);
};

extern const struct plat_device_ops plat_device_board, plat_device_gpu;
#define DEVICE(id, ID, name, kind_doc, key_doc) extern const struct plat_device_ops plat_device_##id;
#include "sim/scenario/devices.def"

// Creates the models of all devices of a node, in node->devices. destroy also frees what a failed create left.
enum sim_status plat_devices_create(struct plat_node *node, const struct plat_options *options);
void plat_devices_destroy(struct plat_node *node);

// Creates their slots: links, windows of the root complex, BARs of the backend.
enum sim_status plat_slots_create(struct plat_node *node);
void plat_slots_destroy(struct plat_node *node);

// Boots the drivers in the order of the slots. Returns 0, or a negative errno with the device that failed.
int plat_devices_boot(struct plat_node *node, const struct plat_device **failed_out);

// The device of that row, or NULL.
struct plat_device *plat_device_find(struct plat_node *node, enum scn_device_id id);

// The end of a link that has buffers of its own. Completion credits are infinite, because ends limit their own reads
// (docs/component-facts.md).
struct pcie_end_config plat_link_end(uint64_t tx_ps, uint64_t rx_ps, uint32_t posted_headers, uint32_t posted_data,
                                     uint32_t nonposted_headers, uint32_t tx_queue_tlps);
struct pcie_link_config plat_link_config(const struct scn_link *link, uint32_t mps_bytes, struct pcie_end_config side0,
                                         struct pcie_end_config side1);
