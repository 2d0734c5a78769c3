// What the files of the endpoint share. Internal to models/fpga.
//
// Data flow: receive (fpga.c) takes packets from the hard IP at 32 B a cycle. Requests go to the BARs (bar.c), which
// pass descriptors to the controllers (controller.c); completions go to the read mover (read_mover.c). Every packet
// leaves through transmit.c, which requests the next one from the movers when the path is free.
#pragma once

#include "models/fpga/fifo.h"
#include "models/fpga/fpga.h"
#include "models/pcie/egress.h"
#include "models/pcie/tags.h"
#include "sim/kernel/cause.h"
#include "sim/kernel/trace.h"

enum { FPGA_PAGE_BYTES = 4096, FPGA_BEAT_BYTES = 32, FPGA_HEADER_BYTES = 16 };

enum fpga_counter {
    FPGA_READS_DONE,
    FPGA_WRITES_DONE,
    FPGA_READ_BYTES,
    FPGA_WRITE_BYTES,
    FPGA_READ_REQUESTS,
    FPGA_WRITE_PACKETS,
    FPGA_TAGS_PEAK,
    FPGA_QUEUE_PEAK,
    FPGA_REFUSED_DESCRIPTORS,
    FPGA_BAD_DESCRIPTORS,
    FPGA_FAILED_READS,
    FPGA_TIMEOUTS,
    FPGA_UNEXPECTED_COMPLETIONS,
    FPGA_UNCLAIMED_WRITES,
    FPGA_UNCLAIMED_READS,
    FPGA_CONTROL_IGNORED,
    FPGA_STALLS,
    FPGA_LOST_TLPS,
    FPGA_COUNTERS
};

// A descriptor in a controller.
struct fpga_entry {
    bool used;
    uint8_t id;
    uint64_t remote, local; // addresses on PCI Express and in the on-chip memory
    uint32_t bytes, issued;
    uint32_t outstanding; // read requests
    uint64_t accepted_ps;
    enum fpga_error error;
};

struct fpga_controller {
    fpga_t *fpga;
    enum fpga_direction direction;
    uint32_t words[FPGA_DESCRIPTOR_WORDS], word_count;
    struct fpga_entry entries[FPGA_DESCRIPTORS];
    uint32_t used;
    uint8_t waiting[FPGA_DESCRIPTORS]; // a ring: entries with packets to issue, in order
    uint32_t waiting_head, waiting_count;
    struct pcie_ring signals; // completion signals in flight
    sim_event_t signal_event;
    uint32_t status[FPGA_IDS], count[FPGA_IDS];
};

// A request of the read mover, by the slot of its tag.
struct fpga_request {
    bool sent; // handed to the hard IP: the time-out runs
    uint64_t remote, local;
    uint64_t deadline_ps;
};

struct fpga_read_mover {
    struct pcie_tags tags; // owner: struct fpga_entry
    struct fpga_request requests[FPGA_TAGS_MAX];
    uint32_t unsent; // the slot whose request is between the mover and the hard IP
    sim_event_t timeout_event;
};

struct fpga_transmit {
    sim_event_t event;
    pcie_tlp_t *moving; // on the path until the event
    uint64_t begun_ps;
    unsigned last;             // class served last
    struct pcie_egress egress; // one packet of each class at most
    struct pcie_ring answers;           // completions to be sent
    pcie_tlp_t *answer_request;         // the request that the completion in flight ends
    struct fpga_entry *write_last;      // the descriptor whose last packet is in flight
};

struct fpga {
    sim_t *sim;
    pcie_pool_t *pool;
    char *name;
    struct fpga_config config;
    pcie_end_t *end;
    uint64_t memory_base, control_base;
    uint8_t *memory;
    // from the hard IP
    pcie_tlp_t *arrived, **arrived_end;
    uint64_t receive_free_ps;
    sim_event_t receive_event;
    struct pcie_ring accesses; // in flight to a BAR's module
    sim_event_t access_event;
    struct fpga_transmit transmit;
    struct fpga_controller controllers[FPGA_DIRECTIONS];
    struct fpga_read_mover reader;
    uint64_t counters[FPGA_COUNTERS];
};

// The clock edge now, or the next one.
static inline uint64_t fpga_edge_ps(const fpga_t *fpga)
{
    uint64_t clock_ps = fpga->config.clock_ps;
    return (sim_now_ps(fpga->sim) + clock_ps - 1) / clock_ps * clock_ps;
}

static inline uint64_t fpga_cycles_ps(const fpga_t *fpga, uint32_t cycles)
{
    return cycles * fpga->config.clock_ps;
}

uint64_t fpga_tlp_path_ps(const fpga_t *fpga, const pcie_tlp_t *tlp);

// --- transmit.c ------------------------------------------------------------------------------------------------------

void fpga_transmit_init(fpga_t *fpga);
void fpga_transmit_fini(fpga_t *fpga);
void fpga_transmit_kick(fpga_t *fpga); // there may be something to send
void fpga_transmit_ready(void *fpga, pcie_end_t *end);
// Sends a completion after answer_cycles; takes its reference. request: the request that it ends, or NULL; it leaves
// the receive buffer when the completion has left.
void fpga_transmit_answer(fpga_t *fpga, pcie_tlp_t *completion, pcie_tlp_t *request);

// --- bar.c -----------------------------------------------------------------------------------------------------------

void fpga_bar_init(fpga_t *fpga);
void fpga_bar_fini(fpga_t *fpga);
void fpga_bar_request(fpga_t *fpga, pcie_tlp_t *tlp); // takes the reference

// --- controller.c ----------------------------------------------------------------------------------------------------

void fpga_controller_init(fpga_t *fpga, enum fpga_direction direction);
void fpga_controller_fini(struct fpga_controller *controller);
void fpga_controller_word(struct fpga_controller *controller, uint32_t word);
// The first descriptor with packets to issue, or NULL; *due_ps_out: when it may be issued, if later than now.
struct fpga_entry *fpga_controller_front(struct fpga_controller *controller, uint64_t *due_ps_out);
void fpga_controller_front_issued(struct fpga_controller *controller); // all its packets have been issued
bool fpga_controller_is_front(const struct fpga_controller *controller, const struct fpga_entry *entry);
// The descriptor ends now: its completion signal follows.
void fpga_controller_end(struct fpga_controller *controller, struct fpga_entry *entry);

// --- the movers ------------------------------------------------------------------------------------------------------

// The next packet, or NULL; then *due_ps_out is when to ask again, SIM_NEVER_PS if the mover will call the kick itself.
pcie_tlp_t *fpga_read_mover_take(fpga_t *fpga, uint64_t *due_ps_out);
pcie_tlp_t *fpga_write_mover_take(fpga_t *fpga, uint64_t *due_ps_out);
// The hard IP has taken it.
void fpga_read_mover_sent(fpga_t *fpga);
void fpga_write_mover_sent(fpga_t *fpga);
void fpga_read_mover_init(fpga_t *fpga);
void fpga_read_mover_fini(fpga_t *fpga);
void fpga_read_mover_complete(fpga_t *fpga, pcie_tlp_t *tlp);
