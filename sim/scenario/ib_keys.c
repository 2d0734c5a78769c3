// The keys of InfiniBand switches and cables.
#include "sim/scenario/keys.h"
#include "sim/scenario/sizes.h"

static const struct scn_key ib_switch_keys[] = {
    {.name = "name",
     .unit = SCN_UNIT_TEXT,
     .min = 1,
     .flags = SCN_KEY_OWN,
     SCN_FIELD(struct scn_ib_switch, name),
     .doc = "how cables call it"},
    {.name = "ports",
     .unit = SCN_UNIT_INTEGER,
     .min = 2,
     .max = 36,
     SCN_FIELD(struct scn_ib_switch, ports),
     .doc = "for cables"},
    {.name = "latency",
     .unit = SCN_UNIT_TIME,
     .max = 10 * US,
     SCN_FIELD(struct scn_ib_switch, latency_ps),
     .doc = "from a whole packet at a port to its first symbol at another"},
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
     .doc = "of wire between two packets"},
    {.name = "receive_buffer",
     .unit = SCN_UNIT_SIZE,
     .min = 8 * KIB,
     .max = MIB,
     SCN_FIELD(struct scn_ib_switch, port_buffer_bytes),
     .doc = "of a port, as its credits advertise it"},
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
     .doc = "a node with an HCA, or a switch"},
    {.name = "to",
     .unit = SCN_UNIT_NODE,
     .flags = SCN_KEY_SWITCHES,
     SCN_FIELD(struct scn_ib_cable, to_node),
     .doc = "the other one"},
    {.name = "flight",
     .unit = SCN_UNIT_TIME,
     .max = 10 * US,
     SCN_FIELD(struct scn_ib_cable, flight_ps),
     .doc = "both PHYs and the cable, one way"},
};

const struct scn_kind scn_kind_ib_cable = {.name = "ib_cable",
                                           .doc = "an InfiniBand cable between HCAs and switches",
                                           SCN_ROWS(ib_cable_keys),
                                           .size = sizeof(struct scn_ib_cable)};
