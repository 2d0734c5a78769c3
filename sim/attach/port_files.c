// /sys/class/infiniband: a device and its port, as the kernel describes them (Linux, Documentation/ABI/stable/sysfs-class-infiniband
// and drivers/infiniband/core/sysfs.c). What changes is written anew whenever a program looks there (REQUEST(PORT_FILES) of
// requests.def).
//
// Leaves out: hw_counters, and counters of a board, which counts no packets.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "models/hca/abi/hca_abi.h"
#include "models/hca/hca.h"
#include "sim/attach/internal.h"
#include "sim/attach/node_files.h"
#include "verbs-shim/backend/tca0.h"

struct port {
    const char *device;
    bool active;
    uint16_t lid, manager_lid;
    uint64_t prefix, guid;
    const char *rate;
};

static void number_text(uint64_t number, char text[24])
{
    snprintf(text, 24, "%04x:%04x:%04x:%04x", (unsigned)(number >> 48), (unsigned)(number >> 32 & 0xffff),
             (unsigned)(number >> 16 & 0xffff), (unsigned)(number & 0xffff));
}

static const char *rate_text(uint64_t rate_mbps)
{
    switch (hca_speed_of(rate_mbps)) {
    case HCA_SPEED_FDR:
        return "56 Gb/sec (4X FDR)";
    case HCA_SPEED_QDR:
        return "40 Gb/sec (4X QDR)";
    case HCA_SPEED_DDR:
        return "20 Gb/sec (4X DDR)";
    case HCA_SPEED_SDR:
        break;
    }
    return "10 Gb/sec (4X SDR)";
}

static void state_write(struct attach_tree *tree, const char *folder, const struct port *port)
{
    attach_tree_write(tree, folder, "state", "%s\n", port->active ? "4: ACTIVE" : "1: DOWN");
    attach_tree_write(tree, folder, "phys_state", "%s\n", port->active ? "5: LinkUp" : "2: Polling");
}

static void port_make(struct attach_tree *tree, const struct port *port)
{
    char folder[96], part[128], prefix[24], guid[24];
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%s/ports/1", port->device);
    number_text(port->prefix, prefix);
    number_text(port->guid, guid);
    state_write(tree, folder, port);
    attach_tree_write(tree, folder, "link_layer", "InfiniBand\n");
    attach_tree_write(tree, folder, "lid", "0x%x\n", port->lid);
    attach_tree_write(tree, folder, "lid_mask_count", "0\n");
    attach_tree_write(tree, folder, "sm_lid", "0x%x\n", port->manager_lid);
    attach_tree_write(tree, folder, "sm_sl", "0\n");
    attach_tree_write(tree, folder, "cap_mask", "0x00000000\n");
    attach_tree_write(tree, folder, "rate", "%s\n", port->rate);
    snprintf(part, sizeof part, "%s/gids", folder);
    attach_tree_write(tree, part, "0", "%s:%s\n", prefix, guid);
    snprintf(part, sizeof part, "%s/gid_attrs/types", folder);
    attach_tree_write(tree, part, "0", "IB/RoCE v1\n");
    snprintf(part, sizeof part, "%s/pkeys", folder);
    attach_tree_write(tree, part, "0", "0xffff\n");
}

static void device_make(struct attach_tree *tree, const char *name, const char *type, const char *firmware,
                        const char *node, uint64_t node_guid, uint64_t system_guid)
{
    char folder[64], part[80], guid[24];
    snprintf(folder, sizeof folder, "/sys/class/infiniband/%s", name);
    attach_tree_write(tree, folder, "node_type", "1: CA\n");
    number_text(node_guid, guid);
    attach_tree_write(tree, folder, "node_guid", "%s\n", guid);
    number_text(system_guid, guid);
    attach_tree_write(tree, folder, "sys_image_guid", "%s\n", guid);
    attach_tree_write(tree, folder, "node_desc", "%s %s\n", node, name);
    attach_tree_write(tree, folder, "fw_ver", "%s\n", firmware);
    attach_tree_write(tree, folder, "hca_type", "%s\n", type);
    attach_tree_write(tree, folder, "hw_rev", "0\n");
    attach_tree_write(tree, folder, "board_id", "tcasim\n");
    snprintf(part, sizeof part, "%s/device", folder);
    attach_tree_write(tree, part, "numa_node", "0\n");
}

static bool hca_port_of(hca_t *hca, struct port *port_out)
{
    struct hca_command query = {.id = HCA_CMD_QUERY_PORT};
    bool known = hca_fw_command(hca, &query) == SIM_OK;
    const struct hca_port_info *info = &query.query_port;
    *port_out = (struct port){"ibsim0",
                              info->active,
                              info->lid,
                              info->active ? HCA_MANAGER_LID : 0,
                              info->gid_prefix,
                              info->guid,
                              rate_text(info->rate_mbps)};
    return known;
}

// Errors that the model does not have count nothing.
static void counters_write(struct attach_tree *tree, const hca_t *hca)
{
    static const char folder[] = "/sys/class/infiniband/ibsim0/ports/1/counters";
    static const char *const never[] = {"symbol_error",
                                        "link_error_recovery",
                                        "port_rcv_remote_physical_errors",
                                        "port_rcv_switch_relay_errors",
                                        "port_xmit_discards",
                                        "port_xmit_constraint_errors",
                                        "port_rcv_constraint_errors",
                                        "local_link_integrity_errors",
                                        "excessive_buffer_overrun_errors",
                                        "VL15_dropped"};
    struct hca_port_counts counts;
    if (!hca_port_count(hca, &counts)) {
        return;
    }
    const struct {
        const char *name;
        uint64_t value;
    } files[] = {{"port_xmit_data", counts.sent.bytes / 4},
                 {"port_rcv_data", counts.received.bytes / 4},
                 {"port_xmit_packets", counts.sent.packets},
                 {"port_rcv_packets", counts.received.packets},
                 {"unicast_xmit_packets", counts.sent.packets},
                 {"unicast_rcv_packets", counts.received.packets},
                 {"port_rcv_errors", counts.damaged},
                 {"link_downed", counts.downs},
                 {"port_xmit_wait", counts.stalls}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        attach_tree_write(tree, folder, files[i].name, "%" PRIu64 "\n", files[i].value);
    }
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        attach_tree_write(tree, folder, never[i], "0\n");
    }
}

void attach_hca_files_make(struct attach_tree *tree, hca_t *hca, const char *node)
{
    struct hca_command query = {.id = HCA_CMD_QUERY_DEVICE};
    struct port port;
    char type[16];
    if (hca_fw_command(hca, &query) != SIM_OK || !hca_port_of(hca, &port)) {
        return;
    }
    snprintf(type, sizeof type, "MT%" PRIu32, query.query_device.part_id);
    device_make(tree, port.device, type, HCA_FIRMWARE, node, port.guid - 1, port.guid + 2);
    port_make(tree, &port);
    counters_write(tree, hca);
}

void attach_board_files_make(struct attach_tree *tree, uint32_t number, const char *node)
{
    uint64_t guid = TCA0_GUID_BASE + number + 1;
    const struct port port = {"tca0", true, (uint16_t)(number + 1), 0, TCA0_GID_PREFIX, guid, "40 Gb/sec (4X FDR10)"};
    device_make(tree, port.device, "PEACH2", TCA0_FIRMWARE, node, guid, guid);
    port_make(tree, &port);
}

int64_t attach_serve_port_files(struct attach_thread *thread, const struct attach_args_port_files *args,
                                struct attach_reply_port_files *reply)
{
    struct attach_server *server = thread->process->server;
    hca_t *hca = plat_machine_backend(server->machine, thread->process->node)->hca;
    char root[ATTACH_SYSFS_BYTES];
    struct port port;
    (void)args;
    (void)reply;
    attach_sysfs_path(server, thread->process->node, root, sizeof root);
    struct attach_tree tree = {root, true};
    if (hca != NULL && hca_port_of(hca, &port)) {
        state_write(&tree, "/sys/class/infiniband/ibsim0/ports/1", &port);
        counters_write(&tree, hca);
    }
    return tree.good ? 0 : -EIO;
}
