#include "pair.h"

#include <errno.h>
#include <string.h>

#include "verbs-shim/peach2_driver.h"

#define WORDS 16

struct run {
    const struct backend_ops *ops;
    void *ctx;
    struct peach2_board_handle *board;
    struct backend_buffer buffer;
    struct pair *pair;
    uint64_t remote; // the other side's buffer in the window
};

static void stamp(struct run *run)
{
    run->pair->stamps[run->pair->count++] = run->ops->time_ps(run->ctx);
}

static void fail(struct run *run, int line)
{
    run->pair->error = run->pair->error != 0 ? run->pair->error : line;
}

// A small and a large write by PIO, the last word of which the other side waits for.
static void send(struct run *run, uint64_t value)
{
    uint64_t words[WORDS];
    for (unsigned i = 0; i < WORDS; i++) {
        words[i] = value;
    }
    run->ops->cost(run->ctx, BACKEND_COST_COPY, sizeof words);
    if (peach2_pio_write(run->board, run->remote, words, value % 3 == 0 ? sizeof words : 8) != 0) {
        fail(run, __LINE__);
    }
}

static void receive(struct run *run, uint64_t value)
{
    const uint64_t *words = run->buffer.address;
    if (run->ops->wait_word(run->ctx, words, UINT64_MAX, value, 1000000000) != 0) {
        fail(run, __LINE__);
    }
    stamp(run);
    if (value % 3 == 0 && run->ops->wait_word(run->ctx, words + WORDS - 1, UINT64_MAX, value, 1000000000) != 0) {
        fail(run, __LINE__);
    }
}

static void look_around(struct run *run)
{
    uint64_t value;
    if (run->ops->read(run->ctx, BACKEND_BAR_REGISTERS, 0, 4, &value) != 0) {
        fail(run, __LINE__);
    }
    stamp(run);
    if (run->ops->wait_word(run->ctx, run->buffer.address, UINT64_MAX, 77, 2000) != -ETIMEDOUT) {
        fail(run, __LINE__);
    }
    stamp(run);
    run->ops->cost(run->ctx, BACKEND_COST_CALL, 3);
    run->ops->cost(run->ctx, BACKEND_COST_TIME, 12);
    stamp(run);
}

void pair_run(struct backend_process *process, unsigned side, unsigned rounds, struct pair *pair)
{
    struct run run = {process->backend.ops, process->backend.ctx, process->board, {0}, pair, 0};
    memset(pair, 0, sizeof *pair);
    stamp(&run);
    pair->error = run.ops->alloc_pinned(run.ctx, 8192, &run.buffer);
    if (pair->error != 0) {
        return;
    }
    // Both sides' first buffers lie at the same address.
    run.remote = peach2_window_address(run.board, 1 - side, run.buffer.bus_address);
    look_around(&run);
    for (uint64_t round = 1; round <= rounds; round++) {
        if (side == 0) {
            send(&run, round);
            receive(&run, round);
        } else {
            receive(&run, round);
            send(&run, round);
        }
    }
    look_around(&run);
    run.ops->free_pinned(run.ctx, &run.buffer);
}
