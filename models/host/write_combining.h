// A write-combining buffer of one 64 B line: collects stores and returns them as contiguous runs of bytes. Private to
// the room.
//
// Source: Intel 64 SDM volume 3A, 11.3.1. Leaves out: a core has several such buffers; with one, stores to alternating
// lines never combine.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HOST_LINE_BYTES 64u

struct host_line {
    uint64_t address; // multiple of HOST_LINE_BYTES
    uint64_t written; // one bit for each byte; 0: the buffer is empty
    uint8_t data[HOST_LINE_BYTES];
};

// Takes the bytes that belong to the line of address; returns their number. Precondition: the buffer is empty or holds
// that line.
size_t host_line_store(struct host_line *line, uint64_t address, const void *data, size_t bytes);
bool host_line_holds(const struct host_line *line, uint64_t address);
bool host_line_full(const struct host_line *line);

// Removes the lowest contiguous run. false: the buffer is empty.
struct host_run {
    uint64_t address;
    uint32_t bytes;
    uint8_t data[HOST_LINE_BYTES];
};
bool host_line_take_run(struct host_line *line, struct host_run *run_out);
