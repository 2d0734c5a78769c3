// A backend without a simulation: an FPGA endpoint that accepts descriptors, and ends each after a given number of
// polls.
#pragma once

#include "tests/shim/test.h"
#include "verbs-shim/fpga/fpga_driver.h"

enum { ENDPOINT_MEMORY_BYTES = 4096, ENDPOINT_LOG_MAX = 256 };
#define ENDPOINT_MEMORY_BAR  BACKEND_BAR_DEVICE0
#define ENDPOINT_CONTROL_BAR ((enum backend_bar)(BACKEND_BAR_DEVICE0 + 1))
#define ENDPOINT_MEMORY_BUS  0x2000000000ull

struct endpoint_descriptor {
    enum fpga_direction direction;
    uint32_t words[FPGA_DESCRIPTOR_WORDS];
};

struct endpoint {
    struct backend backend;
    bool absent, silent;
    uint8_t memory[ENDPOINT_MEMORY_BYTES];
    uint32_t level[FPGA_DIRECTIONS];
    uint32_t words[FPGA_DIRECTIONS][FPGA_DESCRIPTOR_WORDS], word_count[FPGA_DIRECTIONS];
    struct endpoint_descriptor log[ENDPOINT_LOG_MAX];
    unsigned log_count;
    uint32_t status[FPGA_DIRECTIONS][FPGA_IDS], count[FPGA_DIRECTIONS][FPGA_IDS];
    unsigned polls_to_end; // status reads that find BUSY before the end
    enum fpga_error error; // error with which descriptors end
    unsigned polls, calls, fences;
    unsigned other_sizes; // accesses to the control BAR that are not 32 bits wide
    uint64_t now_ps;      // a poll takes 1 us
};

void endpoint_init(struct endpoint *endpoint);
fpga_handle_t *endpoint_open(struct endpoint *endpoint);
