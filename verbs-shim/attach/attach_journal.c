// The journal of an attached process: records wait in the thread's slot for the thread's next attach call.
#include <stdatomic.h>
#include <unwind.h>

#include "verbs-shim/attach/attach_ops.h"
#include "verbs-shim/attach/client.h"
#include "verbs-shim/attach/client_internal.h"
#include "verbs-shim/attach/watchpoints.h"

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

// Makes no attach call: the time that posted stores have cost since the last one is missing.
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
    attach_own.began.calls = attach_own.calls;
    return attach_own.began.now_ps;
}

static const _Atomic uint64_t *slot_ps(void *ctx)
{
    (void)ctx;
    return &attach_client.scheduled_ps;
}

struct frames {
    uintptr_t *list;
    unsigned count;
};

static _Unwind_Reason_Code frame_add(struct _Unwind_Context *context, void *arg)
{
    struct frames *frames = arg;
    if (frames->count == ATTACH_FRAMES) {
        return _URC_END_OF_STACK;
    }
    frames->list[frames->count++] = _Unwind_GetIP(context);
    return _URC_NO_REASON;
}

// Like backtrace() of the C library, which would first load a library and so move what the program allocates.
static void frames_take(uintptr_t addresses[ATTACH_FRAMES])
{
    struct frames frames = {addresses, 0};
    (void)_Unwind_Backtrace(frame_add, &frames);
}

static void note(void *ctx, const struct journal_record *record)
{
    struct attach_slot *slot = attach_slot();
    (void)ctx;
    if (slot == NULL || attach_own.in_call) {
        return;
    }
    uintptr_t frames[ATTACH_FRAMES] = {0};
    if (attach_greeting()->checks != 0 && record->call < ATTACH_NOTE_LEFT) {
        frames_take(frames);
    }
    uint32_t count = atomic_load_explicit(&slot->note_count, memory_order_relaxed);
    if (count == ATTACH_NOTES) {
        (void)attach_call(slot, ATTACH_OP_FLUSH);
        count = atomic_load_explicit(&slot->note_count, memory_order_relaxed); // a signal handler may have added some
    }
    uint64_t ended_ps = local_ps(slot);
    bool timed = record->began_ps != 0 && ended_ps > record->began_ps;
    bool listed = attach_own.began.now_ps == record->began_ps && attach_own.began.calls == attach_own.calls;
    slot->notes[count] = (struct attach_note){
        .after_ps = attach_own.tail_ps,
        .took_ps = timed ? ended_ps - record->began_ps : 0,
        .began_after_ps = attach_own.began.after_ps,
        .began_entry = listed ? attach_own.began.entry : UINT32_MAX,
        .entry = entry_count(slot),
        .record = *record,
    };
    for (unsigned i = 0; i < ATTACH_FRAMES; i++) {
        slot->notes[count].frames[i] = frames[i];
    }
    atomic_store_explicit(&slot->note_count, count + 1, memory_order_release);
}

// --- checks ---------------------------------------------------------------------------------------------------------

enum { REGIONS = 4096 };

static struct {
    struct {
        uintptr_t address;
        size_t bytes;
    } list[REGIONS];
    unsigned count;
} regions;

static bool checks(void *ctx)
{
    (void)ctx;
    return attach_greeting()->checks != 0;
}

static void memory(void *ctx, const void *address, size_t bytes, bool registered)
{
    (void)ctx;
    uintptr_t at = (uintptr_t)address;
    if (registered && regions.count < REGIONS) {
        regions.list[regions.count].address = at;
        regions.list[regions.count++].bytes = bytes;
    }
    for (unsigned i = 0; i < regions.count && !registered; i++) {
        if (regions.list[i].address == at && regions.list[i].bytes == bytes) {
            regions.list[i] = regions.list[--regions.count];
            return;
        }
    }
}

__attribute__((visibility("default"))) bool attach_checks_memory(void)
{
    return regions.count != 0;
}

// Reports each region once, and then forgets it.
__attribute__((visibility("default"))) void attach_check_freed(const void *address, size_t bytes, bool unmapped)
{
    uintptr_t at = (uintptr_t)address;
    for (unsigned i = 0; i < regions.count; i++) {
        uintptr_t region = regions.list[i].address;
        if (region < at + bytes && at < region + regions.list[i].bytes) {
            struct journal_record record = {
                .call = JOURNAL_CHECK,
                .check = {.address = region,
                          .bytes = regions.list[i].bytes,
                          .mistake = unmapped ? JOURNAL_MISTAKE_UNMAPPED : JOURNAL_MISTAKE_FREED}};
            regions.list[i--] = regions.list[--regions.count];
            note(NULL, &record);
        }
    }
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
    regions.count = 0;
    attach_watches_forget();
}

void attach_journal_polled(void *ctx, const volatile void *word, bool found)
{
    struct journal_record record = {.call = ATTACH_NOTE_POLLED, .b = found};
    if (attach_pinned_find(word, 1, &record.a)) {
        note(ctx, &record);
    } else if (found) {
        note(ctx, &(struct journal_record){.call = ATTACH_NOTE_FOUND, .a = (uintptr_t)word});
    }
}

void attach_journal_left(void *ctx, const volatile void *word)
{
    note(ctx, &(struct journal_record){.call = ATTACH_NOTE_LEFT, .a = (uintptr_t)word});
}

const struct backend_journal_ops attach_journal_ops = {
    .all = all,
    .checks = checks,
    .now_ps = now_ps,
    .slot_ps = slot_ps,
    .note = note,
    .watch = attach_watch,
    .unwatch = attach_unwatch,
    .memory = memory,
    .describe_by = describe_by,
};
