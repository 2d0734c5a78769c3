// The loops of perftest: latency (one request at a time) and bandwidth (as many as the queue holds), optionally with
// another flow at the same time.
#pragma once

#include "tests/support/hca_fixture.h"

struct perf {
    enum hca_opcode opcode;
    uint32_t bytes;
    unsigned iterations; // of the measured flow
};

// near: both processes on node 0; loopback: their peers are there as well.
struct perf_setup {
    const char *preset;
    struct perf measured, beside; // beside.iterations 0: no other flow
    bool loopback;
    const char *wait;           // NULL, or a queue of the responder: the mean wait there is written to
    uint64_t *mean_wait_ps_out; // this
};

uint64_t perf_latency_ps(const struct perf_setup *setup);               // mean of a request
uint64_t perf_kib_per_second(const struct perf_setup *setup);           // of payload
uint64_t perf_send_latency_ps(const char *preset, unsigned iterations); // half a round trip of 8 B sends
// Half a round trip of writes whose last byte is polled.
uint64_t perf_write_latency_ps(const char *preset, bool blueflame_all, uint32_t bytes, unsigned iterations);
