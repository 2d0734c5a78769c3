#include "models/host/write_combining.h"

#include <string.h>

static uint64_t line_of(uint64_t address)
{
    return address & ~(uint64_t)(HOST_LINE_BYTES - 1);
}

static uint64_t ones(size_t count)
{
    return count == HOST_LINE_BYTES ? UINT64_MAX : (UINT64_C(1) << count) - 1;
}

size_t host_line_store(struct host_line *line, uint64_t address, const void *data, size_t bytes)
{
    size_t offset = address - line_of(address);
    size_t taken = bytes < HOST_LINE_BYTES - offset ? bytes : HOST_LINE_BYTES - offset;
    line->address = line_of(address);
    line->written |= ones(taken) << offset;
    memcpy(line->data + offset, data, taken);
    return taken;
}

bool host_line_holds(const struct host_line *line, uint64_t address)
{
    return line->written != 0 && line->address == line_of(address);
}

bool host_line_full(const struct host_line *line)
{
    return line->written == UINT64_MAX;
}

bool host_line_take_run(struct host_line *line, struct host_run *run_out)
{
    if (line->written == 0) {
        return false;
    }
    unsigned first = (unsigned)__builtin_ctzll(line->written);
    uint64_t gaps = ~line->written & ~ones(first);
    unsigned end = gaps == 0 ? HOST_LINE_BYTES : (unsigned)__builtin_ctzll(gaps);
    run_out->address = line->address + first;
    run_out->bytes = end - first;
    memcpy(run_out->data, line->data + first, end - first);
    line->written &= ~(ones(end - first) << first);
    return true;
}
