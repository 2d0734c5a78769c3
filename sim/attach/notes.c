// The records of the journal from a scheduling slot of a thread, at their times.
#include "sim/attach/internal.h"

_Static_assert(ATTACH_FRAMES == OBSERVE_FRAMES, "a note has as many call frames as its call");

// A program that gives wrong times must not overflow a clock.
static const uint64_t own_max_ps = 1000000 * SIM_PS_PER_MS;

// --- what threads leave for each other ------------------------------------------------------------------------------

// -1: nothing is there.
static int left_find(const struct attach_left *left, uint64_t word)
{
    int found = -1;
    for (int i = 0; i < ATTACH_LEFT_MAX && found < 0; i++) {
        found = left->list[i].by != NULL && left->list[i].word == word ? i : -1;
    }
    return found;
}

// is_new: it is noted for the first time. Else it may have been found meanwhile, by a thread whose time is behind.
static void left_note(struct attach_thread *thread, uint64_t word, bool is_new)
{
    struct attach_left *left = &thread->process->left;
    int place = left_find(left, word);
    if (place < 0 && is_new) {
        place = (int)left->next;
        left->next = (left->next + 1) % ATTACH_LEFT_MAX;
    }
    if (place >= 0) {
        left->list[place].word = word;
        left->list[place].by = thread;
        left->list[place].cause = sim_cause_now(thread->process->server->sim);
    }
}

static void left_take(struct attach_thread *thread, uint64_t word)
{
    struct attach_left *left = &thread->process->left;
    int place = left_find(left, word);
    if (place >= 0 && left->list[place].by != thread) {
        host_core_found(thread->core, left->list[place].cause);
    }
    if (place >= 0) {
        left->list[place].by = NULL;
    }
}

// --- the notes of a scheduling slot ---------------------------------------------------------------------------------

// What the thread has left is there from now on, though it has not paid for it: others have the run token meanwhile.
bool attach_notes_begin(struct attach_thread *thread, struct attach_notes *notes)
{
    uint32_t count = atomic_load_explicit(&thread->slot->note_count, memory_order_acquire);
    notes->count = count < ATTACH_NOTES ? count : ATTACH_NOTES;
    notes->taken = 0;
    for (uint32_t i = 0; i < notes->count; i++) {
        const struct journal_record *record = &thread->slot->notes[i].record;
        if (record->call == ATTACH_NOTE_LEFT) {
            left_note(thread, record->a, true);
        }
    }
    return notes->count != 0;
}

static uint64_t own_now_ps(const struct attach_thread *thread)
{
    return sim_now_ps(thread->process->server->sim) - thread->ahead_ps;
}

void attach_notes_entry(const struct attach_thread *thread, struct attach_notes *notes, uint32_t entry)
{
    notes->entries_ps[entry] = own_now_ps(thread);
}

bool attach_notes_next(struct attach_thread *thread, struct attach_notes *notes, uint32_t entry,
                       struct attach_note *note_out)
{
    if (notes->taken == notes->count) {
        return false;
    }
    *note_out = thread->slot->notes[notes->taken];
    note_out->after_ps = note_out->after_ps < own_max_ps ? note_out->after_ps : own_max_ps;
    note_out->entry = note_out->entry < ATTACH_ENTRIES ? note_out->entry : ATTACH_ENTRIES;
    note_out->took_ps = note_out->took_ps < own_max_ps ? note_out->took_ps : 0;
    bool is_next = note_out->entry <= entry;
    notes->taken += is_next;
    return is_next;
}

const struct sim_work *attach_call_work(const struct attach_note *note)
{
    static const struct sim_work calls[] = {
#define JOURNAL_CALL(name, text, member) [JOURNAL_##name] = {"library", text, false},
        JOURNAL_CALLS(JOURNAL_CALL)
#undef JOURNAL_CALL
    };
    return note->record.call < JOURNAL_CALL_COUNT ? &calls[note->record.call] : NULL;
}

// How long the call took: exact, if it began in this list.
static uint64_t took_ps(const struct attach_notes *notes, const struct attach_note *note, uint64_t at_ps)
{
    if (note->began_entry > note->entry || note->entry > ATTACH_ENTRIES) {
        return note->took_ps;
    }
    uint64_t began_ps = notes->entries_ps[note->began_entry];
    began_ps += note->began_after_ps < own_max_ps ? note->began_after_ps : 0;
    return began_ps < at_ps ? at_ps - began_ps : 0;
}

// Reports how long the thread waited since the last report, except waits within a call that waits and reports itself.
// The calls of libtca sleep and poll, those of libibverbs sleep: polls before them are the program's own.
static void waits_report(struct attach_thread *thread, unsigned call, uint64_t within_ps)
{
    struct attach_waits *waits = &thread->waits;
    bool polls = call == JOURNAL_TCA_WAIT || call == JOURNAL_TCA_WAIT_RECEIVE;
    for (unsigned kind = OBSERVE_WAITS; kind-- > 0;) {
        uint64_t most_ps = polls || kind == OBSERVE_WAITING ? within_ps : 0;
        uint64_t less_ps = waits->ps[kind] < most_ps ? waits->ps[kind] : most_ps;
        within_ps -= less_ps;
        observe_waited(thread->process->observed, kind, waits->count[kind], waits->ps[kind] - less_ps);
    }
    *waits = (struct attach_waits){{0}, {0}};
}

void attach_note_take(struct attach_thread *thread, const struct attach_notes *notes, const struct attach_note *note,
                      uint64_t left_ps)
{
    const struct attach_process *process = thread->process;
    uint64_t at_ps = own_now_ps(thread) + left_ps;
    if (note->record.call == ATTACH_NOTE_POLLED) {
        if (attach_pinned_owned(process, note->record.a, 1)) {
            host_core_polled(thread->core, note->record.a, note->record.b != 0, thread->token.given_ps);
        }
        return;
    }
    if (note->record.call == ATTACH_NOTE_LEFT) {
        left_note(thread, note->record.a, false);
        return;
    }
    if (note->record.call == ATTACH_NOTE_FOUND) {
        left_take(thread, note->record.a);
        return;
    }
    const struct observe_call call = {.thread = thread->name,
                                      .at_ps = at_ps,
                                      .took_ps = took_ps(notes, note, at_ps),
                                      .upcoming = &thread->upcoming,
                                      .frames = process->server->options->check ? note->frames : NULL};
    waits_report(thread, note->record.call, observe_is_wait(note->record.call) ? call.took_ps : 0);
    observe_note(process->observed, &call, &note->record);
}

void attach_notes_end(struct attach_thread *thread)
{
    atomic_store_explicit(&thread->slot->note_count, 0, memory_order_relaxed);
}

// The cost of an empty poll. For the first one of a streak it leaves out most of what the thread did before it.
static uint64_t poll_cost_ps(const struct attach_thread *thread, const struct attach_request *request)
{
    bool goes_on = (request->args.poll.what & ATTACH_POLL_GOES_ON) != 0 || request->args.poll.polled.word_count != 0;
    uint64_t most_ps = thread->loop.iteration_ps;
    return goes_on || request->own_ps < most_ps ? request->own_ps : most_ps;
}

// Of the iterations that the thread was fast-forwarded over. It is not always known what an iteration polls.
static uint64_t skipped_polls(const struct poll_loop *loop)
{
    return loop->skipped * (loop->poll_count != 0 ? loop->poll_count : 1);
}

void attach_notes_waited(struct attach_thread *thread, const struct attach_request *request, uint64_t ps)
{
    struct attach_waits *waits = &thread->waits;
    bool reads_clock = request->op == ATTACH_OP_POLL && (request->args.poll.what & ATTACH_POLL_CLOCK) != 0;
    if (request->op == ATTACH_OP_POLL && !reads_clock) {
        waits->count[OBSERVE_POLLING] += 1 + skipped_polls(&thread->loop);
        waits->ps[OBSERVE_POLLING] += ps + poll_cost_ps(thread, request);
    } else if (reads_clock || request->op == ATTACH_OP_WAIT || request->op == ATTACH_OP_WAIT_WORD ||
               request->op == ATTACH_OP_FUTEX_WAIT) {
        waits->count[OBSERVE_WAITING]++;
        waits->ps[OBSERVE_WAITING] += ps;
    }
    observe_call_goes_on(thread->process->observed, &thread->upcoming);
}

void attach_notes_over(struct attach_thread *thread)
{
    waits_report(thread, JOURNAL_CALL_COUNT, 0);
}
