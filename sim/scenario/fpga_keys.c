// The keys of FPGAs.
#include "sim/scenario/keys.h"
#include "sim/scenario/sizes.h"

#define TIME(key, field, text)                                                                                         \
    {                                                                                                                  \
        .name = (key), .unit = SCN_UNIT_TIME, .max = 10 * US, SCN_FIELD(struct scn_fpga, field), .doc = (text)         \
    }
#define COUNT(key, field, least, most, text)                                                                           \
    {                                                                                                                  \
        .name = (key), .unit = SCN_UNIT_INTEGER, .min = (least), .max = (most), SCN_FIELD(struct scn_fpga, field),     \
        .doc = (text)                                                                                                  \
    }

static const struct scn_key fpga_keys[] = {
    {.name = "memory",
     .unit = SCN_UNIT_SIZE,
     .min = 64 * KIB,
     .max = 64 * MIB,
     .multiple = 4 * KIB,
     SCN_FIELD(struct scn_fpga, memory_bytes),
     .doc = "on-chip memory behind a BAR"},
    {.name = "socket",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "0",
     .max = 1,
     SCN_FIELD(struct scn_fpga, socket),
     .doc = "whose root port it sits behind"},
    {.name = "mrrs",
     .unit = SCN_UNIT_SIZE,
     .min = 128,
     .max = 4 * KIB,
     .flags = SCN_KEY_POWER_OF_TWO,
     SCN_FIELD(struct scn_fpga, mrrs_bytes),
     .doc = "largest read request of the DMA; the host's mrrs bounds it"},
    COUNT("read_tags", read_tags, 1, 16, "outstanding reads of the DMA"),
    COUNT("read_start_cycles", read_start_cycles, 0, 65535, "descriptor in the controller to the first read request"),
    COUNT("read_finish_cycles", read_finish_cycles, 0, 65535, "last byte in the on-chip memory to completion signal"),
    COUNT("write_start_cycles", write_start_cycles, 0, 65535, "descriptor in the controller to the first write"),
    COUNT("write_finish_cycles", write_finish_cycles, 0, 65535, "last write at the hard IP to completion signal"),
    COUNT("access_cycles", access_cycles, 0, 65535, "hard IP to the module behind a BAR"),
    COUNT("answer_cycles", answer_cycles, 0, 65535, "and from there to the first beat of the completion"),
    {.name = "completion_timeout",
     .unit = SCN_UNIT_TIME,
     .min = US,
     .max = 1 * S,
     SCN_FIELD(struct scn_fpga, completion_timeout_ps),
     .doc = "after which a read counts as not answered"},
    TIME("ip_tx", ip_tx_ps, "PCIe hard IP: first beat of a packet at its input to first symbol"),
    TIME("ip_rx", ip_rx_ps, "PCIe hard IP: last symbol to first beat at the core"),
    COUNT("posted_header_credits", posted_header_credits, 1, 127, "receive buffer: posted headers"),
    COUNT("posted_data_credits", posted_data_credits, 8, 2047, "receive buffer: posted data, in units of 16 B"),
    COUNT("nonposted_header_credits", nonposted_header_credits, 1, 127, "receive buffer: read requests"),
    COUNT("tx_buffer_tlps", tx_buffer_tlps, 1, 256, "TLPs the hard IP takes before it stalls the core"),
    {.name = "slot",
     .unit = SCN_UNIT_OBJECT,
     .child = &scn_kind_link,
     SCN_FIELD(struct scn_fpga, slot),
     .doc = "link between host and FPGA"},
};

static void fpga_loaded(void *object, const struct scn_tree *tree)
{
    (void)tree;
    ((struct scn_fpga *)object)->given = true;
}

const struct scn_kind scn_kind_fpga = {.name = "fpga",
                                       .doc = "an FPGA that moves data by itself, in a slot of its own",
                                       SCN_ROWS(fpga_keys),
                                       .size = sizeof(struct scn_fpga),
                                       .presets = "fpga",
                                       .loaded = fpga_loaded};
