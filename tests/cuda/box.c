#include "box.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct box *open_box;

struct backend_process *backend_current(void)
{
    return open_box != NULL ? open_box->current : NULL;
}

// --- memory and time ------------------------------------------------------------------------------------------------

static int alloc_pinned(void *ctx, size_t bytes, struct backend_buffer *buffer_out)
{
    struct box *box = ctx;
    for (unsigned i = 0; i < BOX_PINNED_MAX && !box->no_pinned && bytes < 1u << 30; i++) {
        if (box->pinned[i].address == NULL) {
            size_t whole = (bytes + 4095) / 4096 * 4096;
            box->pinned[i] = (struct backend_buffer){aligned_alloc(4096, whole), 0x100000000ull * (i + 1), bytes};
            memset(box->pinned[i].address, 0, whole);
            box->pinned_live++;
            *buffer_out = box->pinned[i];
            return 0;
        }
    }
    return -ENOMEM;
}

static void free_pinned(void *ctx, struct backend_buffer *buffer)
{
    struct box *box = ctx;
    box->pinned_live--;
    free(buffer->address);
    box->pinned[buffer->bus_address / 0x100000000ull - 1].address = NULL;
    *buffer = (struct backend_buffer){0};
}

static uint64_t time_ps(void *ctx)
{
    return ((struct box *)ctx)->now_ps;
}

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    static const uint64_t ps[] = {[BACKEND_COST_CALL] = 100000, [BACKEND_COST_COPY] = 100, [BACKEND_COST_TIME] = 1000};
    struct box *box = ctx;
    box->copied_bytes += kind == BACKEND_COST_COPY ? amount : 0;
    box_run_until(box, box->now_ps + amount * ps[kind]);
}

// --- BARs -----------------------------------------------------------------------------------------------------------

static uint8_t *bar_at(struct box *box, enum backend_bar bar, uint64_t offset)
{
    struct box_gpu *gpu = &box->gpu[bar - BACKEND_BAR_GPU0];
    uint64_t page = offset / 65536;
    if (page >= BOX_BAR_PAGES || gpu->pages[page] == BOX_PAGE_FREE) {
        box->unsupported++;
        return NULL;
    }
    return gpu->memory + gpu->pages[page] + offset % 65536;
}

static void write_combined(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    struct box *box = ctx;
    for (size_t at = 0; at < bytes;) {
        size_t part = bytes - at < 4096 ? bytes - at : 4096;
        unsigned i = box->stored_count++;
        box->stored[i].bar = bar;
        box->stored[i].offset = offset + at;
        box->stored[i].bytes = part;
        memcpy(box->stored[i].data, (const uint8_t *)data + at, part);
        at += part;
    }
}

static void fence(void *ctx)
{
    struct box *box = ctx;
    for (unsigned i = 0; i < box->stored_count; i++) {
        for (size_t at = 0; at < box->stored[i].bytes; at++) {
            uint8_t *byte = bar_at(box, box->stored[i].bar, box->stored[i].offset + at);
            if (byte != NULL) {
                *byte = box->stored[i].data[at];
            }
        }
    }
    box->stored_count = 0;
}

static int read_combined(void *ctx, enum backend_bar bar, uint64_t offset, void *data, size_t bytes)
{
    int error = 0;
    for (size_t at = 0; at < bytes; at++) {
        const uint8_t *byte = bar_at(ctx, bar, offset + at);
        ((uint8_t *)data)[at] = byte != NULL ? *byte : 0xff;
        error = byte != NULL ? error : -EIO;
    }
    return error;
}

static const struct backend_ops ops = {
    .gpu = &box_gpu_ops,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .write_combined = write_combined,
    .fence = fence,
    .read_combined = read_combined,
    .time_ps = time_ps,
    .cost = cost,
};

// --- processes ------------------------------------------------------------------------------------------------------

struct box *box_open(void)
{
    struct box *box = calloc(1, sizeof *box);
    for (unsigned gpu = 0; gpu < BOX_GPUS; gpu++) {
        for (unsigned page = 0; page < BOX_BAR_PAGES; page++) {
            box->gpu[gpu].pages[page] = BOX_PAGE_FREE;
        }
    }
    for (unsigned i = 0; i < BOX_PROCESSES; i++) {
        box->processes[i] = (struct backend_process){.backend = {&ops, box}, .number = 100 + i};
    }
    box->gpus = BOX_GPUS;
    box->current = &box->processes[0];
    open_box = box;
    return box;
}

void box_process(struct box *box, unsigned number)
{
    box->current = &box->processes[number];
}

void box_process_end(struct box *box, unsigned number)
{
    struct backend_process *process = &box->processes[number];
    box->current = NULL; // libraries are released outside the process
    for (unsigned i = 0; i < BACKEND_LIBRARIES; i++) {
        if (process->libraries[i].release != NULL) {
            process->libraries[i].release(process->libraries[i].state);
        }
        process->libraries[i] = (struct backend_library){0};
    }
}

void box_close(struct box *box)
{
    for (unsigned i = 0; i < BOX_PROCESSES; i++) {
        box_process_end(box, i);
    }
    for (unsigned i = 0; i < BOX_PINNED_MAX; i++) {
        free(box->pinned[i].address);
    }
    open_box = NULL;
    free(box);
}

void box_fill(void *data, size_t bytes, uint32_t seed)
{
    uint8_t *byte = data;
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        byte[i] = (uint8_t)(seed >> 24);
    }
}
