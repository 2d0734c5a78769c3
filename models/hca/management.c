#include "models/hca/management.h"

#include <stdio.h>
#include <string.h>

#include "models/hca/abi/hca_abi.h"
#include "models/hca/hca.h"

// The header of all datagrams (13.4.3), and where a class has its data.
enum {
    AT_CLASS = 1,
    AT_CLASS_VERSION = 2,
    AT_METHOD = 3,
    AT_STATUS = 4,
    AT_HOPS = 7, // of a directed route (14.2.1.2)
    AT_ATTRIBUTE = 16,
    AT_MODIFIER = 20,
    AT_COMPONENTS = 48,    // of administration (15.2.1.1): which of a record's components are given
    AT_SMP_DATA = 64,      // 14.2.1.1
    AT_COUNTERS_DATA = 64, // 16.1.2
    AT_RECORD = 56
};
enum { CLASS_BY_LID = 0x01, CLASS_DIRECTED = 0x81, CLASS_ADMINISTRATION = 0x03, CLASS_PERFORMANCE = 0x04 };
enum { METHOD_GET = 0x01, METHOD_SET = 0x02, METHOD_TABLE = 0x12, METHOD_DELETE = 0x15, METHOD_RESPONSE = 0x80 };
enum {
    CLASS_PORT_INFO = 0x01,
    NODE_DESCRIPTION = 0x10,
    NODE_INFO = 0x11,
    PORT_COUNTERS = 0x12,
    GUID_INFO = 0x14,
    PORT_INFO = 0x15,
    PKEY_TABLE = 0x16,
    SM_INFO = 0x20,
    PORT_COUNTERS_EXTENDED = 0x1d,
    PATH_RECORD = 0x35,
    MEMBER_RECORD = 0x38
};
// 13.4.7; of administration 15.2.3.
enum {
    STATUS_OK = 0,
    STATUS_METHOD = 2 << 2,
    STATUS_ATTRIBUTE = 3 << 2,
    STATUS_VALUE = 7 << 2,
    STATUS_NO_RECORDS = 3 << 8,
    STATUS_COMPONENTS = 6 << 8,
    STATUS_GID = 5 << 8,
    STATUS_DIRECTED = 0x8000 // the D bit: it returns
};

static void put(uint8_t *at, unsigned bytes, uint64_t value)
{
    for (unsigned i = 0; i < bytes; i++) {
        at[i] = (uint8_t)(value >> 8 * (bytes - 1 - i));
    }
}

static uint64_t get(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < bytes; i++) {
        value = value << 8 | at[i];
    }
    return value;
}

// --- a port -----------------------------------------------------------------------------------------------------------------

struct port {
    hca_t *hca;
    const char *node;
    struct hca_port_info info;
};

static bool port_of(const struct hca_subnet *subnet, unsigned node, struct port *port_out)
{
    struct hca_command query = {.id = HCA_CMD_QUERY_PORT};
    *port_out = (struct port){.node = ""};
    port_out->hca = subnet->adapter(subnet->ctx, node, &port_out->node);
    bool known = port_out->hca != NULL && hca_fw_command(port_out->hca, &query) == SIM_OK;
    port_out->info = query.query_port;
    return known;
}

// lid 0: whatever its LID is; guid 0: whatever its GUID is.
static bool port_find(const struct hca_subnet *subnet, uint16_t lid, uint64_t guid, struct port *port_out)
{
    bool found = false;
    for (unsigned node = 0; node < subnet->nodes && !found; node++) {
        found = port_of(subnet, node, port_out) && port_out->info.active && (lid == 0 || port_out->info.lid == lid) &&
                (guid == 0 || port_out->info.guid == guid);
    }
    return found;
}

// 14.2.5.6: codes for 256, 512, ... bytes begin with 1.
static unsigned mtu_code(uint32_t bytes)
{
    unsigned code = 1;
    while (code < 5 && (128u << code) < bytes) {
        code++;
    }
    return code;
}

// Of records (15.2.5.16): gigabits in a second of four lanes.
static unsigned rate_code(uint64_t rate_mbps)
{
    switch (hca_speed_of(rate_mbps)) {
    case HCA_SPEED_FDR:
        return 12;
    case HCA_SPEED_QDR:
        return 7;
    case HCA_SPEED_DDR:
        return 6;
    case HCA_SPEED_SDR:
        break;
    }
    return 3;
}

static void node_info_put(const struct port *port, uint8_t *data)
{
    enum { VENDOR_MELLANOX = 0x0002c9 };
    struct hca_command query = {.id = HCA_CMD_QUERY_DEVICE};
    (void)hca_fw_command(port->hca, &query);
    put(data, 4, 0x01010101); // versions; a channel adapter; one port
    put(data + 4, 8, port->info.guid + 2);
    put(data + 12, 8, port->info.guid - 1);
    put(data + 20, 8, port->info.guid);
    put(data + 28, 2, 1); // partitions
    put(data + 30, 2, query.query_device.part_id);
    put(data + 36, 1, 1);
    put(data + 37, 3, VENDOR_MELLANOX);
}

static void port_info_put(const struct port *port, uint8_t *data)
{
    enum { WIDTH_4X = 2, WIDTH_1X_OR_4X = 3, VL_0 = 1, ACTIVE = 4, DOWN = 1, POLLING = 2, LINK_UP = 5 };
    const struct hca_port_info *info = &port->info;
    unsigned speed = hca_speed_of(info->rate_mbps) & 0xf; // FDR is told elsewhere
    speed = speed == 0 ? HCA_SPEED_QDR : speed;
    unsigned speeds = speed | (speed - 1); // and all slower ones
    put(data + 8, 8, info->gid_prefix);
    put(data + 16, 2, info->lid);
    put(data + 18, 2, HCA_MANAGER_LID);
    data[28] = 1;
    data[29] = data[30] = WIDTH_1X_OR_4X;
    data[31] = WIDTH_4X;
    data[32] = (uint8_t)(speeds << 4 | (info->active ? ACTIVE : DOWN));
    data[33] = (uint8_t)((info->active ? LINK_UP : POLLING) << 4 | POLLING);
    data[35] = (uint8_t)(speed << 4 | speeds);
    data[36] = (uint8_t)(mtu_code(info->active_mtu_bytes) << 4);
    data[37] = VL_0 << 4;
    data[41] = (uint8_t)mtu_code(info->max_mtu_bytes);
    data[43] = VL_0 << 4;
    data[50] = 1; // GUIDs
}

static unsigned port_answer(const struct port *port, unsigned attribute, uint32_t modifier, uint8_t *data)
{
    enum { DATA_BYTES = 64, MASTER = 3 };
    memset(data, 0, DATA_BYTES);
    switch (attribute) {
    case NODE_DESCRIPTION:
        (void)snprintf((char *)data, DATA_BYTES, "%s ibsim0", port->node);
        return STATUS_OK;
    case NODE_INFO:
        node_info_put(port, data);
        return STATUS_OK;
    case PORT_INFO:
        port_info_put(port, data);
        return modifier <= 1 ? STATUS_OK : STATUS_VALUE;
    case GUID_INFO:
        put(data, 8, port->info.guid);
        return modifier == 0 ? STATUS_OK : STATUS_VALUE;
    case PKEY_TABLE:
        put(data, 2, 0xffff);
        return modifier == 0 ? STATUS_OK : STATUS_VALUE;
    case SM_INFO: // 14.2.5.13
        put(data, 8, port->info.guid);
        data[20] = MASTER;
        return port->info.lid == HCA_MANAGER_LID ? STATUS_OK : STATUS_ATTRIBUTE;
    default:
        return STATUS_ATTRIBUTE;
    }
}

// --- what it has counted ----------------------------------------------------------------------------------------------------

// A counter stays at its end.
static void count_put(uint8_t *at, unsigned bytes, uint64_t count)
{
    uint64_t most = UINT64_MAX >> (64 - 8 * bytes);
    put(at, bytes, count < most ? count : most);
}

static unsigned counters_answer(const struct port *port, unsigned attribute, uint8_t *data)
{
    enum { EXTENDED_BUT_UNICAST = 0x0400, DATA_BYTES = HCA_MAD_BYTES - AT_COUNTERS_DATA, ALL_PORTS = 0xff };
    struct hca_port_counts counts = {0};
    unsigned selected = data[1];
    (void)hca_port_count(port->hca, &counts);
    memset(data, 0, DATA_BYTES);
    if (attribute == CLASS_PORT_INFO) {
        put(data, 2, 0x0101);
        put(data + 2, 2, EXTENDED_BUT_UNICAST);
        return STATUS_OK;
    }
    data[1] = (uint8_t)selected;
    if (attribute == PORT_COUNTERS) { // 16.1.3.5
        count_put(data + 7, 1, counts.downs);
        count_put(data + 8, 2, counts.damaged);
        count_put(data + 24, 4, counts.sent.bytes / 4);
        count_put(data + 28, 4, counts.received.bytes / 4);
        count_put(data + 32, 4, counts.sent.packets);
        count_put(data + 36, 4, counts.received.packets);
        count_put(data + 40, 4, counts.stalls);
    } else if (attribute == PORT_COUNTERS_EXTENDED) { // 16.1.4.11
        count_put(data + 8, 8, counts.sent.bytes / 4);
        count_put(data + 16, 8, counts.received.bytes / 4);
        count_put(data + 24, 8, counts.sent.packets);
        count_put(data + 32, 8, counts.received.packets);
    } else {
        return STATUS_ATTRIBUTE;
    }
    return selected == 1 || selected == ALL_PORTS ? STATUS_OK : STATUS_VALUE;
}

// --- the subnet's administration --------------------------------------------------------------------------------------------

enum { EXACTLY = 2 << 6, LIFE_TIME = 18 }; // 4.096 us times two to the power of 18

// What a record says about every path: the smaller of both ports' MTUs and rates.
static void path_limits_put(const struct port *a, const struct port *b, uint8_t *mtu, uint8_t *rate)
{
    const struct hca_port_info *x = &a->info, *y = &b->info;
    uint32_t mtu_bytes = x->active_mtu_bytes < y->active_mtu_bytes ? x->active_mtu_bytes : y->active_mtu_bytes;
    uint64_t rate_mbps = x->rate_mbps < y->rate_mbps ? x->rate_mbps : y->rate_mbps;
    *mtu = (uint8_t)(EXACTLY | mtu_code(mtu_bytes));
    *rate = (uint8_t)(EXACTLY | rate_code(rate_mbps));
}

// 15.2.5.17
static unsigned member_answer(const struct port *own, uint64_t components, uint8_t *record)
{
    enum { HAS_GROUP = 1, HAS_PORT = 2, HAS_STATE = 1 << 16, GROUP = 0xff };
    if ((components & HAS_GROUP) == 0) {
        return STATUS_COMPONENTS;
    }
    if (record[0] != GROUP) {
        return STATUS_GID;
    }
    if ((components & HAS_PORT) == 0) {
        put(record + 16, 8, own->info.gid_prefix);
        put(record + 24, 8, own->info.guid);
    }
    put(record + 36, 2, hca_group_lid(record));
    put(record + 40, 2, 0xffff);
    path_limits_put(own, own, &record[38], &record[42]);
    record[43] = EXACTLY | LIFE_TIME;
    record[48] |= (components & HAS_STATE) == 0 ? 1 : 0; // a full member
    return STATUS_OK;
}

// 15.2.5.16: a path is named by LIDs or GIDs of its ends.
static unsigned path_answer(const struct hca_subnet *subnet, uint64_t components, uint8_t *record)
{
    enum { TO_GID = 1 << 2, FROM_GID = 1 << 3, TO_LID = 1 << 4, FROM_LID = 1 << 5, REVERSIBLE = 0x80 };
    uint16_t to_lid = (uint16_t)((components & TO_LID) != 0 ? get(record + 40, 2) : 0);
    uint16_t from_lid = (uint16_t)((components & FROM_LID) != 0 ? get(record + 42, 2) : 0);
    uint64_t to_guid = (components & TO_GID) != 0 ? get(record + 16, 8) : 0;
    uint64_t from_guid = (components & FROM_GID) != 0 ? get(record + 32, 8) : 0;
    struct port to, from;
    if ((to_lid == 0 && to_guid == 0) || (from_lid == 0 && from_guid == 0)) {
        return STATUS_COMPONENTS;
    }
    if (!port_find(subnet, to_lid, to_guid, &to) || !port_find(subnet, from_lid, from_guid, &from)) {
        return STATUS_NO_RECORDS;
    }
    put(record + 8, 8, to.info.gid_prefix);
    put(record + 16, 8, to.info.guid);
    put(record + 24, 8, from.info.gid_prefix);
    put(record + 32, 8, from.info.guid);
    put(record + 40, 2, to.info.lid);
    put(record + 42, 2, from.info.lid);
    put(record + 44, 5, 0);
    record[49] = REVERSIBLE | 1;
    put(record + 50, 2, 0xffff);
    put(record + 52, 2, 0);
    path_limits_put(&to, &from, &record[54], &record[55]);
    record[56] = EXACTLY | LIFE_TIME;
    record[57] = 0;
    return STATUS_OK;
}

static unsigned administration_answer(const struct hca_subnet *subnet, const struct port *own, uint8_t *mad)
{
    unsigned attribute = (unsigned)get(mad + AT_ATTRIBUTE, 2), method = mad[AT_METHOD];
    uint64_t components = get(mad + AT_COMPONENTS, 8);
    uint8_t *record = mad + AT_RECORD;
    bool changes = method == METHOD_SET || method == METHOD_DELETE;
    if (attribute == MEMBER_RECORD) {
        return member_answer(own, components, record);
    }
    if (changes) {
        return STATUS_METHOD;
    }
    if (attribute == PATH_RECORD) {
        return path_answer(subnet, components, record);
    }
    memset(record, 0, HCA_MAD_BYTES - AT_RECORD);
    put(record, 2, 0x0102); // of ClassPortInfo: versions of the base and of the class
    return attribute == CLASS_PORT_INFO ? STATUS_OK : STATUS_ATTRIBUTE;
}

// --- datagrams --------------------------------------------------------------------------------------------------------------

static unsigned status_of(const struct hca_subnet *subnet, const struct port *port, uint8_t *mad)
{
    unsigned attribute = (unsigned)get(mad + AT_ATTRIBUTE, 2), method = mad[AT_METHOD];
    uint32_t modifier = (uint32_t)get(mad + AT_MODIFIER, 4);
    switch (mad[AT_CLASS]) {
    case CLASS_ADMINISTRATION:
        return method == METHOD_GET || method == METHOD_SET || method == METHOD_DELETE
                   ? administration_answer(subnet, port, mad)
                   : STATUS_METHOD;
    case CLASS_PERFORMANCE:
        return method == METHOD_GET ? counters_answer(port, attribute, mad + AT_COUNTERS_DATA) : STATUS_METHOD;
    default:
        return method == METHOD_GET ? port_answer(port, attribute, modifier, mad + AT_SMP_DATA) : STATUS_METHOD;
    }
}

bool hca_mad_answer(const struct hca_subnet *subnet, unsigned node, uint16_t lid, uint8_t mad[HCA_MAD_BYTES])
{
    bool directed = mad[AT_CLASS] == CLASS_DIRECTED, administration = mad[AT_CLASS] == CLASS_ADMINISTRATION;
    bool known = directed || administration || mad[AT_CLASS] == CLASS_BY_LID || mad[AT_CLASS] == CLASS_PERFORMANCE;
    unsigned method = mad[AT_METHOD];
    bool asks = method == METHOD_GET || method == METHOD_SET || method == METHOD_DELETE || method == METHOD_TABLE;
    struct port here, port;
    if (!port_of(subnet, node, &here) || !known || !asks || (directed && mad[AT_HOPS] != 0) ||
        (administration && (lid != HCA_MANAGER_LID || !here.info.active))) {
        return false;
    }
    port = here;
    if (!directed && !administration && lid != here.info.lid &&
        (!here.info.active || lid == 0 || !port_find(subnet, lid, 0, &port))) {
        return false;
    }
    unsigned status = status_of(subnet, &port, mad);
    put(mad + AT_STATUS, 2, status | (directed ? STATUS_DIRECTED : 0));
    mad[AT_METHOD] =
        (uint8_t)(mad[AT_METHOD] == METHOD_SET ? METHOD_GET | METHOD_RESPONSE : mad[AT_METHOD] | METHOD_RESPONSE);
    return true;
}
