// The journal of an attached process: records wait in the thread's slot for its next crossing.
#include <stdatomic.h>

#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"

static bool all(void *ctx)
{
    (void)ctx;
    return attach_greeting()->journal_all != 0;
}

static uint32_t entry_count(struct attach_slot *slot)
{
    return atomic_load_explicit(&slot->entry_count, memory_order_relaxed);
}

static uint64_t local_ps(const struct attach_slot *slot)
{
    return slot->now_ps + attach_own.listed_ps + attach_own.tail_ps;
}

// Without crossing: what posted stores may have cost since the last one is not in it.
static uint64_t now_ps(void *ctx)
{
    struct attach_slot *slot = attach_slot();
    (void)ctx;
    if (slot == NULL) {
        return 0;
    }
    attach_own.began.now_ps = local_ps(slot);
    attach_own.began.after_ps = attach_own.tail_ps;
    attach_own.began.entry = entry_count(slot);
    attach_own.began.crossings = attach_own.crossings;
    return attach_own.began.now_ps;
}

static void note(void *ctx, const struct journal_record *record)
{
    struct attach_slot *slot = attach_slot();
    (void)ctx;
    if (slot == NULL || attach_own.crossing) {
        return;
    }
    uint32_t count = atomic_load_explicit(&slot->note_count, memory_order_relaxed);
    if (count == ATTACH_NOTES) {
        (void)attach_cross(slot, ATTACH_OP_NOTHING);
        count = 0;
    }
    uint64_t ended_ps = local_ps(slot);
    bool timed = record->began_ps != 0 && ended_ps > record->began_ps;
    bool listed = attach_own.began.now_ps == record->began_ps && attach_own.began.crossings == attach_own.crossings;
    slot->notes[count] = (struct attach_note){
        .after_ps = attach_own.tail_ps,
        .took_ps = timed ? ended_ps - record->began_ps : 0,
        .began_after_ps = attach_own.began.after_ps,
        .began_entry = listed ? attach_own.began.entry : UINT32_MAX,
        .entry = entry_count(slot),
        .record = *record,
    };
    atomic_store_explicit(&slot->note_count, count + 1, memory_order_release);
}

static struct {
    unsigned (*describe)(void *arg, struct journal_state *states, unsigned room);
    void *arg;
} describer;

static void describe_by(void *ctx, unsigned (*describe)(void *arg, struct journal_state *states, unsigned room),
                        void *arg)
{
    (void)ctx;
    describer.describe = describe;
    describer.arg = arg;
}

void attach_journal_describe(struct attach_slot *slot)
{
    struct journal_state *states = (struct journal_state *)(void *)slot->data;
    unsigned room = (unsigned)(sizeof slot->data / sizeof *states);
    slot->ask_count = describer.describe != NULL ? describer.describe(describer.arg, states, room) : 0;
}

void attach_journal_forked(void)
{
    describer.describe = NULL;
}

void attach_journal_looked(void *ctx, const volatile void *word, bool found)
{
    struct journal_record record = {.call = ATTACH_NOTE_LOOKED, .b = found};
    if (attach_pinned_find(word, 1, &record.a)) {
        note(ctx, &record);
    }
}

const struct backend_journal_ops attach_journal_ops = {
    .all = all, .now_ps = now_ps, .note = note, .describe_by = describe_by};
