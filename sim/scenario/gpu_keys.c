// The keys of GPUs.
#include "sim/scenario/keys.h"

#define KIB (1ull << 10)
#define MIB (1ull << 20)
#define GIB (1ull << 30)
#define US  1000000ull

#define TIME(key, field, text)                                                                                         \
    {                                                                                                                  \
        .name = (key), .unit = SCN_UNIT_TIME, .max = 1000 * US, SCN_FIELD(struct scn_gpu, field), .doc = (text)        \
    }
#define COUNT(key, field, least, most, text)                                                                           \
    {                                                                                                                  \
        .name = (key), .unit = SCN_UNIT_INTEGER, .min = (least), .max = (most), SCN_FIELD(struct scn_gpu, field),      \
        .doc = (text)                                                                                                  \
    }

static const struct scn_key gpu_keys[] = {
    {.name = "memory",
     .unit = SCN_UNIT_SIZE,
     .min = MIB,
     .max = 64 * GIB,
     .multiple = 64 * KIB,
     SCN_FIELD(struct scn_gpu, memory_bytes),
     .doc = "device memory; costs only what is touched"},
    {.name = "bar",
     .unit = SCN_UNIT_SIZE,
     .min = MIB,
     .max = 64 * GIB,
     .multiple = 64 * KIB,
     SCN_FIELD(struct scn_gpu, bar_bytes),
     .doc = "window (BAR 1) onto device memory, in pages of 64 KiB"},
    {.name = "socket",
     .unit = SCN_UNIT_INTEGER,
     .fallback = "0",
     .max = 1,
     SCN_FIELD(struct scn_gpu, socket),
     .doc = "whose root port it sits behind; the board is on 0"},
    TIME("ip_tx", ip_tx_ps, "transaction layer of the GPU to first symbol on the wire"),
    TIME("ip_rx", ip_rx_ps, "last symbol on the wire to the transaction layer of the GPU"),
    COUNT("posted_header_credits", posted_header_credits, 1, 127, "receive buffer: posted headers"),
    COUNT("posted_data_credits", posted_data_credits, 8, 2047, "receive buffer: posted data, in units of 16 B"),
    COUNT("nonposted_header_credits", nonposted_header_credits, 1, 127, "receive buffer: read requests"),
    COUNT("tx_buffer_tlps", tx_buffer_tlps, 1, 256, "TLPs that wait to leave"),
    TIME("write", write_ps, "a write through the window: translated to visible"),
    TIME("read", read_ps, "a read through the window: translated to its first completion"),
    COUNT("reads_max", reads_max, 1, 1024, "reads through the window at work at once"),
    {.name = "completion",
     .unit = SCN_UNIT_SIZE,
     .min = 64,
     .max = 128,
     .flags = SCN_KEY_POWER_OF_TWO,
     SCN_FIELD(struct scn_gpu, completion_bytes),
     .doc = "completions but the last end at multiples of it"},
    COUNT("translations", translations, 1, 65536, "pages that the window's translation cache holds"),
    TIME("translation_miss", translation_miss_ps, "what a page that it does not hold costs"),
    COUNT("translation_walks_max", translation_walks_max, 1, 64, "misses at work at once"),
    COUNT("copy_engines", copy_engines, 1, 2, "1, or one for each direction"),
    TIME("copy_setup", copy_setup_ps, "of a copy over the bus, before its first TLP"),
    COUNT("copy_reads_max", copy_reads_max, 1, 255, "outstanding reads of a copy engine"),
    TIME("launch", launch_ps, "from the work queue to a kernel's first instruction"),
    {.name = "memory_rate",
     .unit = SCN_UNIT_RATE,
     .min = 1,
     .max = 10000000,
     SCN_FIELD(struct scn_gpu, memory_bytes_per_us),
     .doc = "bandwidth of device memory"},
    {.name = "mflops",
     .unit = SCN_UNIT_INTEGER,
     .min = 1,
     .max = 1000000000,
     SCN_FIELD(struct scn_gpu, flops_per_us),
     .doc = "double-precision rate of the compute unit, millions a second"},
    TIME("copy_call", copy_call_ps, "runtime and driver: of a copy that the caller waits for"),
    TIME("submit_call", submit_call_ps, "runtime and driver: of anything asynchronous"),
    TIME("manage_call", manage_call_ps, "runtime and driver: of an allocation, of pinning, and of their ends"),
    {.name = "slot",
     .unit = SCN_UNIT_OBJECT,
     .child = &scn_kind_link,
     SCN_FIELD(struct scn_gpu, slot),
     .doc = "link between host and GPU"},
};
const struct scn_kind scn_kind_gpu = {.name = "gpu",
                                      .doc = "a GPU in a slot of its own",
                                      SCN_ROWS(gpu_keys),
                                      .size = sizeof(struct scn_gpu),
                                      .presets = "gpu"};
