// The journal's records of a thread's turn, at their times.
#include "sim/attach/internal.h"

// A program that lies about times shall not overflow a clock.
static const uint64_t own_max_ps = 1000000 * SIM_PS_PER_MS;

void attach_notes_take(struct attach_thread *thread, struct attach_notes *notes, uint32_t entry)
{
    const struct attach_process *process = thread->process;
    uint64_t now_ps = sim_now_ps(process->server->sim) - thread->ahead_ps;
    for (; notes->taken < notes->count; notes->taken++) {
        const struct attach_note note = thread->slot->notes[notes->taken];
        if (note.entry > entry && entry != UINT32_MAX) {
            return;
        }
        uint64_t after_ps = note.after_ps < own_max_ps ? note.after_ps : own_max_ps;
        observe_note(process->observed, thread->name, now_ps + after_ps, note.took_ps < own_max_ps ? note.took_ps : 0,
                     &note.record);
    }
}

struct attach_notes attach_notes_begin(const struct attach_thread *thread)
{
    uint32_t count = atomic_load_explicit(&thread->slot->note_count, memory_order_acquire);
    return (struct attach_notes){.count = count < ATTACH_NOTES ? count : ATTACH_NOTES};
}

void attach_notes_end(struct attach_thread *thread)
{
    atomic_store_explicit(&thread->slot->note_count, 0, memory_order_relaxed);
}

void attach_notes_waited(struct attach_thread *thread, const struct attach_request *request, uint64_t ps)
{
    observe_process_t *observed = thread->process->observed;
    if (request->op == ATTACH_OP_POLL) {
        bool goes_on = (request->arguments[6] & ATTACH_POLL_GOES_ON) != 0;
        observe_waited(observed, OBSERVE_POLLING, 1 + thread->slot->values[0], ps + (goes_on ? request->own_ps : 0));
    } else if (request->op == ATTACH_OP_WAIT || request->op == ATTACH_OP_WAIT_WORD ||
               request->op == ATTACH_OP_FUTEX_WAIT) {
        observe_waited(observed, OBSERVE_WAITING, 1, ps);
    }
}
