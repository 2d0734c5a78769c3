// The keys of InfiniBand HCAs and of their cables.
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
    SIZE("mtu", max_mtu_bytes, 256, 4 * KIB, SCN_KEY_POWER_OF_TWO, "largest payload of an InfiniBand packet"),
    TIME("port_tx", port_tx_ps, "from a complete packet to the port"),
    TIME("port_rx", port_rx_ps, "from the port to the receive engine"),
    SIZE("receive_buffer", port_buffer_bytes, 8 * KIB, MIB, 0, "of the port, as its credits advertise it"),
    TIME("doorbell", doorbell_ps, "from the BAR to the scheduler"),
    TIME("send_request", send_request_ps, "the send engine, for the first packet of a request"),
    TIME("send_packet", send_packet_ps, "and for each other"),
    TIME("receive_packet", receive_packet_ps, "the receive engine, for each packet"),
    TIME("read_packet", read_packet_ps, "the engine of read responses, for each packet"),
    TIME("place", place_ps, "order at the responder: a packet that writes memory"),
    TIME("atomic", atomic_ps, "an atomic, besides its read of memory"),
    COUNT("prefetch_requests", prefetch_requests, 1, 64, "of a queue, read ahead of their use"),
    COUNT("gather_packets", gather_packets, 1, 1024, "being gathered or waiting for the port"),
    COUNT("order_entries", order_entries, 1, 1024, "accesses waiting for their turn at the responder"),
    COUNT("window_packets", window_packets, 1, 65536, "unacknowledged packets of a queue pair"),
    COUNT("ack_every_packets", ack_every_packets, 1, 65536, "an acknowledge is asked for inside long messages"),
    COUNT("responder_reads", responder_reads, 1, 255, "reads and atomics of a queue pair as responder"),
    COUNT("initiator_reads", initiator_reads, 1, 255, "and as initiator"),
    SIZE("max_inline", max_inline_bytes, 0, 900, 0, "data inside a request"),
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

static const struct scn_key ib_cable_keys[] = {
    {.name = "from", .unit = SCN_UNIT_NODE, SCN_FIELD(struct scn_ib_cable, from_node), .doc = "a node with an HCA"},
    {.name = "to", .unit = SCN_UNIT_NODE, SCN_FIELD(struct scn_ib_cable, to_node), .doc = "the other one"},
    {.name = "flight",
     .unit = SCN_UNIT_TIME,
     .max = 10 * US,
     SCN_FIELD(struct scn_ib_cable, flight_ps),
     .doc = "both PHYs and the cable, one way"},
};

const struct scn_kind scn_kind_ib_cable = {.name = "ib_cable",
                                           .doc = "an InfiniBand cable between two HCAs",
                                           SCN_ROWS(ib_cable_keys),
                                           .size = sizeof(struct scn_ib_cable)};
