// A device as the FPGA's partner: memory behind a window, reads answered after a declared latency.
#pragma once

#include "models/pcie/link.h"
#include "sim/kernel/random.h"

enum { PEER_BYTES = 4 << 20, PEER_LOG_MAX = 4096, PEER_READS_MAX = 256 };

struct peer_access {
    uint64_t time_ps, address;
    uint32_t bytes;
};

struct peer_read {
    struct peer *peer;
    pcie_tlp_t *request;
    unsigned number;
    sim_event_t event;
};

struct peer {
    sim_t *sim;
    pcie_end_t *end;
    uint64_t base;
    uint8_t *memory;
    uint64_t latency_ps;
    uint64_t jitter_ps;          // each read takes up to this much longer: completions leave out of order
    uint32_t completion_bytes;   // largest completion
    enum pcie_cpl_status status; // of the answer to read number fail_from and later ones
    unsigned fail_from;          // counted from 0
    unsigned silent_from;        // reads from this number on are never answered
    bool holds_writes;           // keeps writes in the receive buffer until peer_release
    pcie_tlp_t *held;
    struct sim_random random;
    struct peer_read reads[PEER_READS_MAX];
    unsigned at_work, at_work_peak;
    unsigned newest_answered, overtaken; // overtaken: answered after a later read
    struct peer_access read_log[PEER_LOG_MAX], write_log[PEER_LOG_MAX];
    unsigned read_count, write_count;
    pcie_tlp_t *out, **out_end;
    // its own read
    uint8_t answer[PCIE_PAYLOAD_MAX];
    uint32_t asked_bytes, answer_bytes;
    unsigned answer_count;
    uint8_t answer_ends[64]; // lower address bits after each completion
};

void peer_init(struct peer *peer, sim_t *sim, pcie_end_t *end, uint64_t base);
void peer_fini(struct peer *peer);
// One read at a time, into `answer`.
void peer_ask(struct peer *peer, pcie_pool_t *pool, uint64_t address, uint32_t bytes);
void peer_release(struct peer *peer); // takes the writes that it held, and later writes at once
