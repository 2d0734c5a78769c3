// The keys of InfiniBand switches and cables.
#include "sim/scenario/keys.h"
#include "sim/scenario/sizes.h"

static const struct scn_key ib_switch_keys[] = {
    {.name = "name",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     .flags = SCN_KEY_OWN,
     SCN_FIELD(struct scn_ib_switch, name),
     .doc = "name of the switch, by which cables refer to it"},
    {.name = "ports",
     .unit = SCN_UNIT_INTEGER,
     .min = 2,
     .max = SCN_IB_PORTS_MAX,
     SCN_FIELD(struct scn_ib_switch, ports),
     .doc = "number of ports"},
    {.name = "latency",
     .unit = SCN_UNIT_TIME,
     .max = 10 * US,
     SCN_FIELD(struct scn_ib_switch, latency_ps),
     .doc = "time from a complete packet at a port to its first symbol at another port"},
    {.name = "rate",
     .unit = SCN_UNIT_RATE,
     .min = 1,
     .max = 1000000,
     SCN_FIELD(struct scn_ib_switch, port_bytes_per_us),
     .doc = "data rate of a port"},
    {.name = "packet_gap",
     .unit = SCN_UNIT_SIZE,
     .max = 4 * KIB,
     SCN_FIELD(struct scn_ib_switch, port_gap_bytes),
     .doc = "gap on the wire between two packets"},
    {.name = "receive_buffer",
     .unit = SCN_UNIT_SIZE,
     .min = 8 * KIB,
     .max = MIB,
     SCN_FIELD(struct scn_ib_switch, port_buffer_bytes),
     .doc = "size of the receive buffer of a port, which its credits advertise"},
};

const struct scn_kind scn_kind_ib_switch = {.name = "ib_switch",
                                            .doc = "an InfiniBand switch: forwards whole packets by LID",
                                            SCN_ROWS(ib_switch_keys),
                                            .size = sizeof(struct scn_ib_switch),
                                            .presets = "ib_switch"};

static const struct scn_key ib_cable_keys[] = {
    {.name = "from",
     .unit = SCN_UNIT_NODE,
     .flags = SCN_KEY_SWITCHES,
     SCN_FIELD(struct scn_ib_cable, from_node),
     .doc = "one end: a node with an HCA, or a switch"},
    {.name = "to",
     .unit = SCN_UNIT_NODE,
     .flags = SCN_KEY_SWITCHES,
     SCN_FIELD(struct scn_ib_cable, to_node),
     .doc = "other end: a node with an HCA, or a switch"},
    {.name = "flight",
     .unit = SCN_UNIT_TIME,
     .max = 10 * US,
     SCN_FIELD(struct scn_ib_cable, flight_ps),
     .doc = "time of both PHYs and the cable, one way"},
};

const struct scn_kind scn_kind_ib_cable = {.name = "ib_cable",
                                           .doc = "an InfiniBand cable between HCAs and switches",
                                           SCN_ROWS(ib_cable_keys),
                                           .size = sizeof(struct scn_ib_cable)};
