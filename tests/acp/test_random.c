// Random programs against a reference in plain memory: every rank works on areas of its own in all ranks' memory, with
// copies in every direction, atomics and orders. What is not ordered does not conflict.
#include <stdlib.h>
#include <string.h>

#include "crew.h"

enum { AREA_BYTES = 1024, RANKS_MAX = 8, OPERATIONS = 120, WORDS = 16, REGION_COLOR = 1 };

static uint64_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
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
    int after; // the operation that it has to wait for; -1: none
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
        o.to_at = random_below(state, AREA_BYTES / 8) * 8;
        o.from_at = random_below(state, AREA_BYTES / 8) * 8;
        o.value = random_next(state);
        o.compare = random_below(state, 2);
    } else {
        o.bytes = random_below(state, 4) == 0 ? random_below(state, 400) : random_below(state, 17);
        o.to_at = random_below(state, AREA_BYTES - o.bytes);
        o.from_at = random_below(state, AREA_BYTES - o.bytes);
    }
    return o;
}

// The rank's program: the same wherever it is drawn.
static void program_draw(uint64_t seed, uint32_t ranks, uint32_t own, struct operation *operations)
{
    uint64_t state = seed * 1000 + own + 1;
    for (int i = 0; i < OPERATIONS; i++) {
        do {
            operations[i] = operation_draw(&state, ranks, own);
        } while (overlap(target(&operations[i]), source(&operations[i])));
        for (int j = i - 1; j >= 0 && operations[i].after < 0; j--) {
            operations[i].after = conflict(&operations[i], &operations[j]) ? j : -1;
        }
        if (operations[i].after < 0 && i > 0 && random_below(&state, 5) == 0) {
            operations[i].after = i - 1;
        }
    }
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

// memory: areas of one rank's program at all ranks.
static void reference_run(const struct operation *o, uint8_t (*memory)[AREA_BYTES])
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

// --- the program of a rank
// ---------------------------------------------------------------------------------------------------

struct plan {
    uint64_t seed;
    acp_ga_t areas[RANKS_MAX]; // of the registered memory of each rank; RANKS_MAX areas
};

static void area_fill(uint8_t *area, uint32_t owner, uint32_t at)
{
    for (uint32_t i = 0; i < AREA_BYTES; i++) {
        area[i] = (uint8_t)(i * 7 + owner * 31 + at * 17);
    }
}

static void operations_issue(const struct plan *plan, const struct operation *operations, uint32_t own)
{
    acp_handle_t handles[OPERATIONS];
    for (int i = 0; i < OPERATIONS; i++) {
        const struct operation *o = &operations[i];
        acp_handle_t order = o->after < 0                      ? ACP_HANDLE_NULL
                             : o->after == i - 1 && i % 2 == 0 ? ACP_HANDLE_CONT
                                                               : handles[o->after];
        handles[i] = issue(o, plan->areas[o->to] + own * AREA_BYTES + o->to_at,
                           plan->areas[o->from] + own * AREA_BYTES + o->from_at, order);
        EXPECT_TRUE(handles[i] != ACP_HANDLE_NULL);
    }
    acp_complete(handles[OPERATIONS - 1]);
    EXPECT_EQ(acp_inquire(ACP_HANDLE_ALL), 0);
}

static void areas_check(const struct plan *plan, const uint8_t *memory, uint32_t rank, uint32_t ranks)
{
    struct operation *operations = calloc(OPERATIONS, sizeof *operations);
    uint8_t(*reference)[AREA_BYTES] = calloc(RANKS_MAX, AREA_BYTES);
    for (uint32_t owner = 0; owner < ranks; owner++) {
        for (uint32_t at = 0; at < ranks; at++) {
            area_fill(reference[at], owner, at);
        }
        program_draw(plan->seed, ranks, owner, operations);
        for (int i = 0; i < OPERATIONS; i++) {
            reference_run(&operations[i], reference);
        }
        EXPECT_EQ(memcmp(memory + owner * AREA_BYTES, reference[rank], AREA_BYTES), 0);
    }
    free(reference);
    free(operations);
}

static void walk(struct crew_rank *member)
{
    struct plan *plan = member->crew->arg;
    uint32_t rank = (uint32_t)acp_rank(), ranks = (uint32_t)acp_procs();
    uint8_t *memory = malloc(RANKS_MAX * AREA_BYTES);
    struct operation *operations = calloc(OPERATIONS, sizeof *operations);
    for (uint32_t owner = 0; owner < ranks; owner++) {
        area_fill(memory + owner * AREA_BYTES, owner, rank);
    }
    acp_atkey_t key = acp_register_memory(memory, RANKS_MAX * AREA_BYTES, REGION_COLOR);
    EXPECT_TRUE(key != ACP_ATKEY_NULL);
    plan->areas[rank] = acp_query_ga(key, memory);
    EXPECT_EQ(acp_sync(), 0);
    program_draw(plan->seed, ranks, rank, operations);
    operations_issue(plan, operations, rank);
    EXPECT_EQ(acp_sync(), 0);
    areas_check(plan, memory, rank, ranks);
    EXPECT_EQ(acp_unregister_memory(key), 0);
    free(operations);
    free(memory);
}

static void walks(enum crew_device device, uint32_t ranks, uint64_t first, uint64_t last)
{
    const char *count = getenv("TCASIM_WALK_SEEDS_ACP");
    last = count != NULL ? first + strtoull(count, NULL, 10) : last;
    for (uint64_t seed = first; seed <= last; seed++) {
        struct plan plan = {.seed = seed};
        struct crew crew;
        crew_init(&crew, device, ranks);
        crew.arg = &plan;
        crew_run(&crew, walk);
        crew_fini(&crew);
    }
}

TEST(AcpRandom, ProgramsOfTwoRanksDoWhatPlainMemoryDoes)
{
    walks(CREW_IBSIM0, 2, 1, 6);
}

TEST(AcpRandom, ProgramsOfThreeRanksDoWhatPlainMemoryDoes)
{
    walks(CREW_IBSIM0, 3, 100, 106);
}

TEST(AcpRandom, ProgramsOfEightRanksDoWhatPlainMemoryDoes)
{
    walks(CREW_IBSIM0, 8, 200, 203);
}

TEST(AcpRandom, ProgramsOnBoardsDoWhatPlainMemoryDoes)
{
    walks(CREW_TCA0, 4, 300, 302);
}
