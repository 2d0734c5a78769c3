#include "cuda_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static struct cuda_fixture *open_fixture;

struct backend_process *backend_current(void)
{
    return open_fixture != NULL ? open_fixture->current : NULL;
}

// --- memory and time ------------------------------------------------------------------------------------------------

static int alloc_pinned(void *ctx, size_t bytes, struct backend_buffer *buffer_out)
{
    struct cuda_fixture *fixture = ctx;
    for (unsigned i = 0; i < CUDA_FIXTURE_PINNED_MAX && !fixture->no_pinned && bytes < 1u << 30; i++) {
        if (fixture->pinned[i].address == NULL) {
            size_t whole = (bytes + 4095) / 4096 * 4096;
            fixture->pinned[i] = (struct backend_buffer){aligned_alloc(4096, whole), 0x100000000ull * (i + 1), bytes};
            memset(fixture->pinned[i].address, 0, whole);
            fixture->pinned_live++;
            *buffer_out = fixture->pinned[i];
            return 0;
        }
    }
    return -ENOMEM;
}

static void free_pinned(void *ctx, struct backend_buffer *buffer)
{
    struct cuda_fixture *fixture = ctx;
    fixture->pinned_live--;
    free(buffer->address);
    fixture->pinned[buffer->bus_address / 0x100000000ull - 1].address = NULL;
    *buffer = (struct backend_buffer){0};
}

static uint64_t time_ps(void *ctx)
{
    return ((struct cuda_fixture *)ctx)->now_ps;
}

static void cost(void *ctx, enum backend_cost kind, uint64_t amount)
{
    static const uint64_t ps[] = {[BACKEND_COST_CALL] = 100000, [BACKEND_COST_COPY] = 100, [BACKEND_COST_TIME] = 1000};
    struct cuda_fixture *fixture = ctx;
    fixture->copied_bytes += kind == BACKEND_COST_COPY ? amount : 0;
    cuda_fixture_run_until(fixture, fixture->now_ps + amount * ps[kind]);
}

// --- BARs -----------------------------------------------------------------------------------------------------------

static uint8_t *bar_at(struct cuda_fixture *fixture, enum backend_bar bar, uint64_t offset)
{
    struct cuda_fixture_gpu *gpu = &fixture->gpu[bar - BACKEND_BAR_GPU0];
    uint64_t page = offset / 65536;
    if (page >= CUDA_FIXTURE_BAR_PAGES || gpu->pages[page] == CUDA_FIXTURE_PAGE_FREE) {
        fixture->unsupported++;
        return NULL;
    }
    return gpu->memory + gpu->pages[page] + offset % 65536;
}

static void write_combined(void *ctx, enum backend_bar bar, uint64_t offset, const void *data, size_t bytes)
{
    struct cuda_fixture *fixture = ctx;
    for (size_t at = 0; at < bytes;) {
        size_t part = bytes - at < 4096 ? bytes - at : 4096;
        unsigned i = fixture->stored_count++;
        fixture->stored[i].bar = bar;
        fixture->stored[i].offset = offset + at;
        fixture->stored[i].bytes = part;
        memcpy(fixture->stored[i].data, (const uint8_t *)data + at, part);
        at += part;
    }
}

static void fence(void *ctx)
{
    struct cuda_fixture *fixture = ctx;
    for (unsigned i = 0; i < fixture->stored_count; i++) {
        for (size_t at = 0; at < fixture->stored[i].bytes; at++) {
            uint8_t *byte = bar_at(fixture, fixture->stored[i].bar, fixture->stored[i].offset + at);
            if (byte != NULL) {
                *byte = fixture->stored[i].data[at];
            }
        }
    }
    fixture->stored_count = 0;
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
    .gpu = &cuda_fixture_gpu_ops,
    .alloc_pinned = alloc_pinned,
    .free_pinned = free_pinned,
    .write_combined = write_combined,
    .fence = fence,
    .read_combined = read_combined,
    .time_ps = time_ps,
    .cost = cost,
};

// --- processes ------------------------------------------------------------------------------------------------------

struct cuda_fixture *cuda_fixture_open(void)
{
    struct cuda_fixture *fixture = calloc(1, sizeof *fixture);
    for (unsigned gpu = 0; gpu < CUDA_FIXTURE_GPUS; gpu++) {
        for (unsigned page = 0; page < CUDA_FIXTURE_BAR_PAGES; page++) {
            fixture->gpu[gpu].pages[page] = CUDA_FIXTURE_PAGE_FREE;
        }
    }
    for (unsigned i = 0; i < CUDA_FIXTURE_PROCESSES; i++) {
        fixture->processes[i] = (struct backend_process){.backend = {&ops, fixture}, .number = 100 + i};
    }
    fixture->gpus = CUDA_FIXTURE_GPUS;
    fixture->current = &fixture->processes[0];
    open_fixture = fixture;
    return fixture;
}

void cuda_fixture_process(struct cuda_fixture *fixture, unsigned number)
{
    fixture->current = &fixture->processes[number];
}

void cuda_fixture_process_end(struct cuda_fixture *fixture, unsigned number)
{
    struct backend_process *process = &fixture->processes[number];
    fixture->current = NULL; // libraries are released when no process is current
    for (unsigned i = 0; i < BACKEND_LIBRARIES; i++) {
        if (process->libraries[i].release != NULL) {
            process->libraries[i].release(process->libraries[i].state);
        }
        process->libraries[i] = (struct backend_library){0};
    }
}

void cuda_fixture_close(struct cuda_fixture *fixture)
{
    for (unsigned i = 0; i < CUDA_FIXTURE_PROCESSES; i++) {
        cuda_fixture_process_end(fixture, i);
    }
    for (unsigned i = 0; i < CUDA_FIXTURE_PINNED_MAX; i++) {
        free(fixture->pinned[i].address);
    }
    open_fixture = NULL;
    free(fixture);
}

void cuda_fixture_fill(void *data, size_t bytes, uint32_t seed)
{
    uint8_t *byte = data;
    for (size_t i = 0; i < bytes; i++) {
        seed = seed * 1664525u + 1013904223u;
        byte[i] = (uint8_t)(seed >> 24);
    }
}
