// An FPGA on PCI Express Gen3 x8 with DMA of its own: Intel's "Arria 10 Hard IP for PCI Express, Avalon-MM with DMA"
// with the module that kobayashi2018 puts before it.
//
// Models: on-chip memory behind a BAR, which the processor and other devices read and write; a control BAR
// (registers/fpga_regs.h) through which descriptors arrive as five 32-bit words; a controller for reads and one for
// writes, each with a queue; the read data mover (requests split at Max_Read_Request_Size and 4 KB, a bounded number of
// tags, completions of different requests in any order); the write data mover (split at Max_Payload_Size and 4 KB);
// completion signals with the descriptor's id, kept as status words; the counter of 250 MHz that measures a descriptor
// from the controller to its completion signal; errors as status. Logic acts on edges of the clock. Each direction
// between the IP and its hard IP is a path of 32 B a cycle, whose first beat carries a header and 16 B of data. Leaves
// out: the hard IP itself (its latency, buffers and credits belong to the link's end), interrupts, the IP's own
// descriptor table in host memory, DDR memory of the board, configuration space.
//
// A write is complete when its last packet was handed to the hard IP: the IP is not notified when the data become
// visible at the target. Descriptors of a controller start in order and overlap; reads are signalled as they end. A
// descriptor that arrives while its controller holds FPGA_DESCRIPTORS is refused: status QUEUE_FULL, no data move. If
// two descriptors of a controller use an id at the same time, the status word shows only the last event.
//
// Source: Intel UG-01145 (Arria 10 Avalon-MM DMA interface), from public knowledge; kobayashi2018, sections 2.2
// and 3.1.
#pragma once

#include "models/fpga/registers/fpga_regs.h"
#include "models/pcie/link.h"

#define FPGA_TAGS_MAX 16

typedef struct fpga fpga_t;

struct fpga_config {
    uint64_t clock_ps;     // 4000: the IP's clock at Gen3 x8
    uint64_t memory_bytes; // on-chip, a multiple of 4 KiB
    uint16_t requester;    // requester ID
    uint32_t mps_bytes;    // at most the link's
    uint32_t mrrs_bytes;   // 128..4096
    uint32_t read_tags;    // 1..FPGA_TAGS_MAX
    // From the hard IP to the module behind a BAR, and from there to the completion's first beat.
    uint32_t access_cycles, answer_cycles;
    // From the descriptor in the controller to the first beat of the first packet, and from the last byte in the
    // on-chip memory (read) or the last beat handed to the hard IP (write) to the completion signal.
    uint32_t read_start_cycles, read_finish_cycles;
    uint32_t write_start_cycles, write_finish_cycles;
    uint64_t completion_timeout_ps;
};

// name is copied; counters are registered under it. SIM_ERR_INVALID: a value outside its limits.
enum sim_status fpga_create(sim_t *sim, pcie_pool_t *pool, const char *name, const struct fpga_config *config,
                            fpga_t **fpga_out);
void fpga_destroy(fpga_t *fpga); // before its link

// Becomes the owner of `end`. Call once; the BARs may not overlap.
void fpga_connect(fpga_t *fpga, pcie_end_t *end, uint64_t memory_base, uint64_t control_base);

// The on-chip memory as the FPGA's own logic sees it, immediately and without cost.
uint8_t *fpga_memory(fpga_t *fpga);
