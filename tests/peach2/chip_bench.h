// A bare chip and its environment: hard IPs that stall, a host that answers reads, and a record of the packets that
// leave. The same for the RTL and its twin, so that both can be compared packet by packet.
#pragma once

#include "models/peach2/twin.h"
#include "rtl/peach2_regs.h"
#include "sim/kernel/random.h"
#include "tests/shim/test.h"

#define WINDOW          0x8000000000ull
#define OWN_NODE        1u
#define HOST            0x1000ull // target of the chip's reads
#define PERIOD_PS       4000u
#define CHAIN           0x800000ull // of descriptors, in host memory
#define CHAIN_LENGTH    4u
#define HOLDS_TAG       99u
#define STATUS_TAG      98u
#define HIDDEN_TAG      97u // of reads whose data are not recorded
#define DMAC(register_) (PEACH2_DMAC_BASE + (register_))
#define TAKEN_MAX       20000u
#define ANSWERS         256u

struct left {
    uint64_t time_ps, address;
    uint32_t fields[8];
    uint8_t data[256];
};

struct answer {
    pcie_tlp_t *tlp;
    uint64_t due_ps;
};

// The hard IP of a port: a buffer from which the link takes a packet at regular intervals.
struct drain {
    struct bench *bench;
    unsigned port, held;
    uint64_t period_ps; // 0: none
    sim_event_t event;
};

struct bench {
    sim_t *sim;
    pcie_pool_t *pool;
    const struct peach2_core_ops *ops;
    void *core;
    struct left *left;
    unsigned count, taken[PEACH2_PORTS];
    uint64_t taken_ps[PEACH2_PORTS][TAKEN_MAX];
    struct sim_random random, stalls[PEACH2_PORTS];
    uint8_t fills;               // a bit for each port whose next packet fills the hard IP, which then stalls the chip
    unsigned steps;              // remaining steps of random traffic
    bool silent;                 // reads of the chip are not answered
    uint64_t unanswered;         // the read of this address is not answered
    enum pcie_cpl_status status; // or with this status
    struct peach2_descriptor chain[CHAIN_LENGTH];
    struct drain drains[PEACH2_PORTS];
    unsigned holds; // as counted by the chip
    bool may_reset; // random traffic resets the chip
    bool may_be_endless, endless; // it sends packets for ever; a run that does is not compared further
    unsigned resets;
    uint32_t counters[PEACH2_COUNTER_REGISTERS]; // at the end
    struct answer answers[ANSWERS];
    unsigned answer_head, answer_tail;
    sim_event_t step_event, answer_event, begin_event;
};

uint32_t bench_dice(struct bench *bench, uint32_t sides);
// Packets to the chip's registers.
void bench_write32(struct bench *bench, uint32_t offset, uint32_t value);
void bench_write64(struct bench *bench, uint32_t offset, uint64_t value);

// What a driver programs.
void bench_routes_write(struct bench *bench);
// The chip is reset, its driver programs it again, and answers to its reads do not come any more.
void bench_reset(struct bench *bench);
// Runs one chip with a program until no event is left. The caller frees bench->left.
void bench_run(struct bench *bench, bool twin, uint64_t seed, void (*program)(struct bench *bench));
// Both chips; every packet must agree, its time included. holds_out: number of holds by the chip; may be NULL.
void bench_compare(uint64_t seed, void (*program)(struct bench *bench), unsigned *holds_out);
