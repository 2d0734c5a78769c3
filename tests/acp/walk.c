#include "walk.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { OPERATIONS = 120 };

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static uint64_t random_wide(uint64_t *state)
{
    return random_next(state) << 40 ^ random_next(state) << 20 ^ random_next(state);
}

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    return (uint32_t)(random_next(state) % limit);
}

struct operation {
    bool atomic;
    unsigned kind, width;    // of an atomic
    uint32_t to, from;       // ranks
    uint32_t to_at, from_at; // in the area
    uint32_t bytes;
    uint64_t value, compare;
    int after; // the operation that it must wait for; -1: none
};

struct range {
    uint32_t rank, at, bytes;
};

static bool overlap(struct range a, struct range b)
{
    return a.rank == b.rank && a.at < b.at + b.bytes && b.at < a.at + a.bytes;
}

static struct range target(const struct operation *o)
{
    return (struct range){o->to, o->to_at, o->bytes};
}

static struct range source(const struct operation *o)
{
    return (struct range){o->from, o->from_at, o->bytes};
}

// An atomic also writes its source.
static bool conflict(const struct operation *a, const struct operation *b)
{
    return overlap(target(a), target(b)) || overlap(target(a), source(b)) || overlap(source(a), target(b)) ||
           ((a->atomic || b->atomic) && overlap(source(a), source(b)));
}

static struct operation operation_draw(uint64_t *state, uint32_t ranks, uint32_t own)
{
    struct operation o = {.atomic = random_below(state, 3) == 0,
                          .to = random_below(state, ranks),
                          .from = random_below(state, ranks),
                          .after = -1};
    if (o.atomic) {
        o.kind = random_below(state, 6);
        o.width = random_below(state, 2) == 0 ? 4 : 8;
        o.to = own;
        o.bytes = o.width;
        o.to_at = random_below(state, WALK_AREA_BYTES / 8) * 8;
        o.from_at = random_below(state, WALK_AREA_BYTES / 8) * 8;
        o.value = random_wide(state);
        o.compare = random_wide(state);
    } else {
        o.bytes = random_below(state, 4) == 0 ? random_below(state, 400) : random_below(state, 17);
        o.to_at = random_below(state, WALK_AREA_BYTES - o.bytes);
        o.from_at = random_below(state, WALK_AREA_BYTES - o.bytes);
    }
    return o;
}

static uint64_t changed(const struct operation *o, uint64_t old)
{
    uint64_t mask = o->width == 4 ? UINT32_MAX : UINT64_MAX, value = o->value;
    switch (o->kind) {
    case 0:
        return old == (o->compare & mask) ? value : old;
    case 1:
        return value;
    case 2:
        return old + value;
    case 3:
        return old ^ value;
    case 4:
        return old | value;
    default:
        return old & value;
    }
}

// memory: areas of one rank's program in all ranks.
static void reference_run(const struct operation *o, uint8_t (*memory)[WALK_AREA_BYTES])
{
    uint8_t *to = memory[o->to] + o->to_at, *from = memory[o->from] + o->from_at;
    if (!o->atomic) {
        memcpy(to, from, o->bytes);
        return;
    }
    uint64_t old = 0, value;
    memcpy(&old, from, o->width);
    value = changed(o, old);
    memcpy(from, &value, o->width);
    memcpy(to, &old, o->width);
}

static void area_fill(uint8_t *area, uint32_t owner, uint32_t at)
{
    for (uint32_t i = 0; i < WALK_AREA_BYTES; i++) {
        area[i] = (uint8_t)(i * 7 + owner * 31 + at * 17);
    }
}

// Generates the rank's program, the same wherever it is called, and the final contents of its areas. Half of the
// compare-and-swaps find the value that they compare.
static void program_draw(uint64_t seed, uint32_t ranks, uint32_t own, struct operation *operations,
                         uint8_t (*memory)[WALK_AREA_BYTES])
{
    uint64_t state = seed * 1000 + own + 1;
    for (uint32_t at = 0; at < ranks; at++) {
        area_fill(memory[at], own, at);
    }
    for (int i = 0; i < OPERATIONS; i++) {
        struct operation *o = &operations[i];
        do {
            *o = operation_draw(&state, ranks, own);
        } while (overlap(target(o), source(o)));
        if (o->atomic && random_below(&state, 2) == 0) {
            memcpy(&o->compare, memory[o->from] + o->from_at, o->width);
        }
        for (int j = i - 1; j >= 0 && o->after < 0; j--) {
            o->after = conflict(o, &operations[j]) ? j : -1;
        }
        if (o->after < 0 && i > 0 && random_below(&state, 5) == 0) {
            o->after = i - 1;
        }
        reference_run(o, memory);
    }
}

static acp_handle_t issue(const struct operation *o, acp_ga_t dst, acp_ga_t src, acp_handle_t order)
{
    uint32_t narrow = (uint32_t)o->value, compare = (uint32_t)o->compare;
    if (!o->atomic) {
        return acp_copy(dst, src, o->bytes, order);
    }
    switch (o->kind) {
    case 0:
        return o->width == 4 ? acp_cas4(dst, src, compare, narrow, order)
                             : acp_cas8(dst, src, o->compare, o->value, order);
    case 1:
        return o->width == 4 ? acp_swap4(dst, src, narrow, order) : acp_swap8(dst, src, o->value, order);
    case 2:
        return o->width == 4 ? acp_add4(dst, src, narrow, order) : acp_add8(dst, src, o->value, order);
    case 3:
        return o->width == 4 ? acp_xor4(dst, src, narrow, order) : acp_xor8(dst, src, o->value, order);
    case 4:
        return o->width == 4 ? acp_or4(dst, src, narrow, order) : acp_or8(dst, src, o->value, order);
    default:
        return o->width == 4 ? acp_and4(dst, src, narrow, order) : acp_and8(dst, src, o->value, order);
    }
}

// --- the program of a rank ------------------------------------------------------------------------------------------

void walk_fill(uint8_t *memory, uint32_t rank, uint32_t ranks)
{
    for (uint32_t owner = 0; owner < ranks; owner++) {
        area_fill(memory + owner * WALK_AREA_BYTES, owner, rank);
    }
}

// Orders by the handle of the operation, or by the constant for the previous one.
static acp_handle_t order_of(const struct operation *o, int number, const acp_handle_t *handles)
{
    if (o->after < 0) {
        return ACP_HANDLE_NULL;
    }
    return o->after == number - 1 && number % 2 == 0 ? ACP_HANDLE_CONT : handles[o->after];
}

unsigned walk_run(uint64_t seed, uint32_t rank, uint32_t ranks, const acp_ga_t *memories)
{
    struct operation *operations = calloc(OPERATIONS, sizeof *operations);
    uint8_t(*reference)[WALK_AREA_BYTES] = calloc(WALK_RANKS_MAX, WALK_AREA_BYTES);
    acp_handle_t handles[OPERATIONS];
    unsigned refused = 0;
    program_draw(seed, ranks, rank, operations, reference);
    for (int i = 0; i < OPERATIONS; i++) {
        const struct operation *o = &operations[i];
        handles[i] = issue(o, memories[o->to] + rank * WALK_AREA_BYTES + o->to_at,
                           memories[o->from] + rank * WALK_AREA_BYTES + o->from_at, order_of(o, i, handles));
        refused += handles[i] == ACP_HANDLE_NULL;
    }
    acp_complete(handles[OPERATIONS - 1]);
    refused += acp_inquire(ACP_HANDLE_ALL) != 0;
    free(reference);
    free(operations);
    return refused;
}

unsigned walk_check(uint64_t seed, const uint8_t *memory, uint32_t rank, uint32_t ranks)
{
    struct operation *operations = calloc(OPERATIONS, sizeof *operations);
    uint8_t(*reference)[WALK_AREA_BYTES] = calloc(WALK_RANKS_MAX, WALK_AREA_BYTES);
    unsigned wrong = 0;
    for (uint32_t owner = 0; owner < ranks; owner++) {
        program_draw(seed, ranks, owner, operations, reference);
        wrong += memcmp(memory + owner * WALK_AREA_BYTES, reference[rank], WALK_AREA_BYTES) != 0;
    }
    free(reference);
    free(operations);
    return wrong;
}
