// The keys of InfiniBand HCAs, switches and cables.
#include "sim/scenario/keys.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define US  1000000ull

#define TIME(key, field, text)                                                                                         \
    {                                                                                                                  \
        .name = (key), .unit = SCN_UNIT_TIME, .max = 10 * US, SCN_FIELD(struct scn_hca, field), .doc = (text)          \
    }
#define COUNT(key, field, least, most, text)                                                                           \
    {                                                                                                                  \
        .name = (key), .unit = SCN_UNIT_INTEGER, .min = (least), .max = (most), SCN_FIELD(struct scn_hca, field),      \
        .doc = (text)                                                                                                  \
    }
#define SIZE(key, field, least, most, bits, text)                                                                      \
    {                                                                                                                  \
        .name = (key), .unit = SCN_UNIT_SIZE, .min = (least), .max = (most), .flags = (bits),                          \
        SCN_FIELD(struct scn_hca, field), .doc = (text)                                                                \
    }

static const struct scn_choice blueflames[] = {{"inline", SCN_BLUEFLAME_INLINE}, {"all", SCN_BLUEFLAME_ALL}, {NULL, 0}};

static const struct scn_key hca_keys[] = {
    {.name = "slot",
     .unit = SCN_UNIT_EMBED,
     .child = &scn_kind_link,
     SCN_FIELD(struct scn_hca, slot),
     .doc = "the keys of the link between host and HCA"},
    {.name = "socket",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "0",
     .max = 1,
     SCN_FIELD(struct scn_hca, socket),
     .doc = "whose root port it sits behind"},
    TIME("pcie_tx", pcie_tx_ps, "transaction layer to first symbol on PCI Express"),
    TIME("pcie_rx", pcie_rx_ps, "last symbol to the transaction layer"),
    SIZE("mps", mps_bytes, 128, 4 * KIB, SCN_KEY_POWER_OF_TWO, "largest payload it supports; the host's mps bounds it"),
    SIZE("mrrs", mrrs_bytes, 128, 4 * KIB, SCN_KEY_POWER_OF_TWO, "largest read request; the host's mrrs bounds it"),
    COUNT("read_tags", read_tags, 1, 256, "outstanding DMA reads"),
    COUNT("write_buffer_tlps", write_tlps, 1, 1024, "posted writes waiting inside before the engines stall"),
    {.name = "rate",
     .unit = SCN_UNIT_RATE,
     .min = 1,
     .max = 1000000,
     SCN_FIELD(struct scn_hca, port_bytes_per_us),
     .doc = "data rate of the InfiniBand port"},
    SIZE("packet_gap", port_gap_bytes, 0, 4 * KIB, 0, "of wire between two packets"),
    SIZE("max_mtu", max_mtu_bytes, 256, 4 * KIB, SCN_KEY_POWER_OF_TWO, "largest path MTU that a queue pair may have"),
    SIZE("active_mtu", active_mtu_bytes, 256, 4 * KIB, SCN_KEY_POWER_OF_TWO,
         "largest payload of a packet on its link; longer ones are discarded at the port"),
    TIME("port_tx", port_tx_ps, "from a complete packet to the port"),
    TIME("port_rx", port_rx_ps, "from the port to the receive engine"),
    SIZE("receive_buffer", port_buffer_bytes, 8 * KIB, MIB, 0, "of the port, as its credits advertise it"),
    TIME("doorbell", doorbell_ps, "from the BAR to the scheduler"),
    TIME("send_request", send_request_ps, "from a request to its first packet, one request of a queue pair at a time"),
    TIME("send_packet", send_packet_ps,
         "of that, and for each other packet: the send engine, which all queue pairs share"),
    TIME("receive_packet", receive_packet_ps, "the receive engine, for each packet"),
    TIME("read_packet", read_packet_ps, "the engine of responses, for each packet"),
    {.name = "write_dispatch",
     .was = "place",
     .unit = SCN_UNIT_TIME,
     .max = 10 * US,
     SCN_FIELD(struct scn_hca, write_dispatch_ps),
     .doc = "order at the responder: a packet that writes memory"},
    TIME("atomic", atomic_ps, "an atomic, besides its read of memory"),
    COUNT("prefetch_requests", prefetch_requests, 1, 64, "of a queue, read ahead of their use"),
    COUNT("gather_packets", gather_packets, 1, 1024, "being gathered or waiting for the port"),
    COUNT("order_entries", order_entries, 1, 1024, "accesses waiting for their turn at the responder"),
    COUNT("window_packets", window_packets, 1, 65536, "unacknowledged packets of a queue pair"),
    COUNT("ack_every_packets", ack_every_packets, 1, 65536, "an acknowledge is asked for inside long messages"),
    COUNT("responder_reads", responder_reads, 1, 255, "reads and atomics of a queue pair as responder"),
    COUNT("initiator_reads", initiator_reads, 1, 255, "and as initiator"),
    SIZE("max_inline", max_inline_bytes, 0, 900, 0, "data inside a request"),
    {.name = "blueflame",
     .unit = SCN_UNIT_CHOICE,
     .choices = blueflames,
     SCN_FIELD(struct scn_hca, blueflame),
     .doc =
         "which single requests the driver sends whole instead of having them fetched: all, or those with inline data"},
    COUNT("part_id", part_id, 1, 65535, "PCI device id, by which programs know it (vendor_part_id)"),
};

static void hca_loaded(void *object, const struct scn_tree *tree)
{
    (void)tree;
    ((struct scn_hca *)object)->given = true;
}

const struct scn_kind scn_kind_hca = {.name = "hca",
                                      .doc = "an InfiniBand host channel adapter with one port, in a slot of its own",
                                      SCN_ROWS(hca_keys),
                                      .size = sizeof(struct scn_hca),
                                      .presets = "hca",
                                      .loaded = hca_loaded};

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
