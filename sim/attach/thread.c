// A program's thread as a simulated thread: its scheduling slots, and the replay of what it did in them.
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/attach/internal.h"

// Attach calls between two checks for other events.
enum { ASIDE_CALLS = 256 };
// Simulated time does not go beyond this: a program that gives wrong times must not overflow a clock.
static const uint64_t end_ps = UINT64_C(1) << 62;
static const uint64_t work_max_ps = 1000000 * SIM_PS_PER_MS;

void attach_hash(struct attach_server *server, uint64_t value)
{
    uint64_t mixed = (server->result->hash ^ value) * 0x9e3779b97f4a7c15u;
    server->result->hash = mixed ^ mixed >> 32;
}

// --- giving the run token -------------------------------------------------------------------------------------------

// What has happened until now, the thread sees.
static void seen_note(struct attach_thread *thread)
{
    const struct attach_server *server = thread->process->server;
    thread->loop.seen = thread->loop.own = thread->loop.others = false;
    thread->loop.stored = 0;
    thread->seen.events = thread->process->writes.events;
    thread->seen.works = thread->process->writes.works;
    thread->seen.wakes = server->settling.wakes;
    thread->seen.scheduled = thread->process->scheduled;
    thread->seen.writes = thread->process->writes.all;
    thread->seen.ends = server->settling.ends;
}

static void token_pass(struct attach_thread *thread)
{
    struct attach_server *server = thread->process->server;
    thread->token.given_ps = sim_now_ps(server->sim);
    thread->slot->now_ps = thread->token.given_ps - thread->ahead_ps;
    attach_shared_check(thread);
    if (!thread->flushes) { // it has not looked at anything since its last call
        seen_note(thread);
    }
    attach_memory_settle(server, thread->process->node);
    attach_token_give(thread);
}

// --- what the thread did --------------------------------------------------------------------------------------------

static bool waits_for_descriptors(const struct attach_request *request)
{
    return request->op == ATTACH_OP_WAIT && (request->args.wait.flags & ATTACH_WAIT_DESCRIPTORS) != 0;
}

static void request_take(struct attach_thread *thread, struct attach_request *request)
{
    const struct attach_slot *slot = thread->slot;
    request->op = slot->op;
    request->entry_count = atomic_load_explicit(&slot->entry_count, memory_order_acquire);
    request->tail_ps = slot->tail_ps;
    attach_args_take(&request->args, request->op, slot);
    if (request->entry_count > ATTACH_ENTRIES) {
        request->entry_count = ATTACH_ENTRIES;
    }
    request->own_ps = 0;
}

// What the program did outside of simulated time, as far as it matters.
static void outside_take(const struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_server *server = thread->process->server;
    uint32_t what = atomic_load_explicit(&thread->process->segment->outside, memory_order_relaxed);
    attach_outside_note(server, (what & ATTACH_OUTSIDE_LATE) != 0 ? ATTACH_RUN_OUTSIDE_CLOCK : 0);
    attach_outside_note(server, (what & ATTACH_OUTSIDE_TIMER) != 0 ? ATTACH_RUN_OUTSIDE_TIMER : 0);
    bool sent = false;
    for (uint32_t i = 0; i < request->entry_count && !sent; i++) {
        const struct attach_entry *entry = &thread->slot->entries[i];
        sent = entry->kind == ATTACH_ENTRY_MAY_WAKE && entry->value != 0;
    }
    if (sent) {
        attach_signals_sent(server);
    }
}

static const struct sim_work own = {"library", "declared costs", false};

static void work_pay(struct attach_thread *thread, struct attach_request *request, uint64_t ps,
                     const struct sim_work *work)
{
    struct attach_process *process = thread->process;
    uint64_t paid_ps = ps < work_max_ps ? ps : work_max_ps;
    request->own_ps += paid_ps;
    if (request->own_ps > work_max_ps || sim_now_ps(process->server->sim) > end_ps) {
        (void)syscall(SYS_pidfd_send_signal, process->reach.pidfd, SIGKILL, NULL, 0);
        return;
    }
    uint64_t behind_ps = thread->ahead_ps < paid_ps ? thread->ahead_ps : paid_ps;
    thread->ahead_ps -= behind_ps;
    if (!thread->process->server->options->functional) {
        host_core_spend(thread->core, paid_ps - behind_ps, work);
    }
    if (behind_ps != 0 && behind_ps == paid_ps && thread->ahead_ps == 0) {
        attach_turn_await(thread);
    }
    if (thread->process->server->adversary != NULL) {
        attach_preempt(thread, ADVERSARY_CALL);
    }
}

// Another program has the processor for a while. This is not the thread's own time, and does not count for the cost of
// a loop of polls.
void attach_preempt(struct attach_thread *thread, enum adversary_purpose purpose)
{
    static const struct sim_work away = {"library", "preempted", false};
    uint64_t late_ps = adversary_late_ps(thread->process->server->adversary, purpose);
    if (late_ps != 0) {
        host_core_spend(thread->core, late_ps, &away);
    }
}

// What the last work before a request is for. Calls that find something have notes; an empty poll has none.
static const struct sim_work *work_before(const struct attach_request *request, uint32_t entry)
{
    static const struct sim_work polls = {"library", "polls that find nothing", false},
                                 waits = {"library", "calls that wait", false};
    bool is_last = entry == request->entry_count;
    bool wait =
        request->op == ATTACH_OP_WAIT || request->op == ATTACH_OP_WAIT_WORD || request->op == ATTACH_OP_FUTEX_WAIT;
    return is_last && request->op == ATTACH_OP_POLL ? &polls : is_last && wait ? &waits : &own;
}

static bool write_possible(const struct attach_entry *entry)
{
    unsigned bytes = entry->bytes;
    return bytes != 0 && bytes <= 8 && (bytes & (bytes - 1)) == 0 && entry->offset % bytes == 0;
}

static void entry_replay(struct attach_thread *thread, const struct attach_entry *entry)
{
    struct attach_process *process = thread->process;
    const struct backend_ops *ops = &thread->backend.ops;
    enum backend_bar bar = (enum backend_bar)entry->bar;
    bool allowed = attach_bar_allowed(process, entry->bar, entry->offset, entry->bytes);
    process->stored_bars |= allowed ? UINT64_C(1) << entry->bar : 0;
    switch (entry->kind) {
    case ATTACH_ENTRY_WRITE:
        if (allowed && write_possible(entry)) {
            ops->write(&thread->backend, bar, entry->offset, entry->value, entry->bytes);
        }
        break;
    case ATTACH_ENTRY_COMBINED:
        if (allowed && entry->value <= ATTACH_DATA_BYTES && entry->bytes <= ATTACH_DATA_BYTES - entry->value) {
            ops->write_combined(&thread->backend, bar, entry->offset, thread->slot->data + entry->value, entry->bytes);
        }
        break;
    case ATTACH_ENTRY_FENCE:
        ops->fence(&thread->backend);
        break;
    case ATTACH_ENTRY_MAY_WAKE:
        if (entry->value != 0) {
            attach_killed_await(process->server);
        }
        attach_outside_wake(process->server, entry->value != 0);
        break;
    }
}

// Pays for the work up to a note, from paid_ps on: first what was done before the call that the note describes.
static void noted_pay(struct attach_thread *thread, struct attach_request *request, const struct attach_note *note,
                      uint64_t paid_ps, uint64_t until_ps)
{
    const struct sim_work *call = attach_call_work(note);
    bool begins = call != NULL && note->began_entry == note->entry && note->began_after_ps > paid_ps &&
                  note->began_after_ps < until_ps;
    if (begins) {
        work_pay(thread, request, note->began_after_ps - paid_ps, &own);
        paid_ps = note->began_after_ps;
    }
    work_pay(thread, request, until_ps - paid_ps, call != NULL ? call : &own);
}

// Replays own work of work_ps with its notes. If paths are recorded, the thread pays up to each note separately;
// otherwise it pays for all at once, as without notes.
static void work_replay(struct attach_thread *thread, struct attach_request *request, struct attach_notes *notes,
                        uint32_t entry, uint64_t work_ps)
{
    struct attach_note note;
    uint64_t paid_ps = 0;
    bool exact = thread->process->server->options->explain;
    attach_notes_entry(thread, notes, entry);
    while (attach_notes_next(thread, notes, entry, &note)) {
        uint64_t until_ps = note.after_ps < work_ps ? note.after_ps : work_ps;
        if (exact && until_ps > paid_ps) {
            noted_pay(thread, request, &note, paid_ps, until_ps);
            paid_ps = until_ps;
        }
        attach_note_take(thread, notes, &note, until_ps - paid_ps);
    }
    work_pay(thread, request, work_ps - paid_ps, work_before(request, entry));
}

static void replay(struct attach_thread *thread, struct attach_request *request)
{
    struct attach_notes notes;
    if (!attach_notes_begin(thread, &notes)) {
        for (uint32_t i = 0; i < request->entry_count; i++) {
            const struct attach_entry entry = thread->slot->entries[i];
            work_pay(thread, request, entry.after_ps, &own);
            entry_replay(thread, &entry);
        }
        work_pay(thread, request, request->tail_ps, work_before(request, request->entry_count));
        return;
    }
    for (uint32_t i = 0; i < request->entry_count; i++) {
        const struct attach_entry entry = thread->slot->entries[i];
        work_replay(thread, request, &notes, i, entry.after_ps);
        entry_replay(thread, &entry);
    }
    work_replay(thread, request, &notes, request->entry_count, request->tail_ps);
    attach_notes_end(thread);
}

// --- life -----------------------------------------------------------------------------------------------------------

// Lets the thread end, which has paid for all it did, and waits in real time until the kernel has ended it, or its
// process if it is the last one: who waits for that finds it ended from now on, and not earlier. false: it did not end.
// Bounded, because its number comes from the program: a thread that computes for longer than the wall limit ends the
// run.
static bool end_await(struct attach_thread *thread, bool last)
{
    const struct attach_process *process = thread->process;
    struct attach_server *server = process->server;
    const struct timespec interval = {
        .tv_nsec = (long)attach_real_time(server->real_percent,
                                          last ? ATTACH_REAL_PROCESS_END_LOOK_NS : ATTACH_REAL_THREAD_END_LOOK_NS)};
    const uint64_t sleeps_ms = attach_real_time(server->real_percent, ATTACH_REAL_END_SLEEPS_MS);
    struct pollfd end = {.fd = process->reach.pidfd, .events = POLLIN};
    uint64_t since_ms = attach_silence_ms(server), awake_ms = since_ms, now_ms = since_ms;
    bool over = false, patient = true;
    attach_token_release(thread);
    while (!over && patient && !attach_stopped(server)) {
        bool process_over = ppoll(&end, 1, &interval, NULL) == 1;
        char state = attach_state(process->reach.pid, (pid_t)thread->slot->tid);
        now_ms = attach_silence_ms(server);
        // Z: the first thread, whose number stays with the process
        over = process_over || (!last && (state == 'Z' || state == 'X'));
        awake_ms = attach_state_runs(state) ? now_ms : awake_ms;
        patient = now_ms - awake_ms <= sleeps_ms && now_ms - since_ms <= server->options->wall_limit_ms;
    }
    if (!over && !attach_stopped(server) && now_ms - since_ms > server->options->wall_limit_ms) {
        char title[256];
        attach_thread_title(thread, title, sizeof title);
        attach_fail(server, "%s has said that it ends, and computes on since %llu s of real time", title,
                    (unsigned long long)(now_ms - since_ms) / 1000);
    }
    attach_token_gone(thread);
    server->settling.acts++;
    attach_outside_note(server, over ? 0 : ATTACH_RUN_OUTSIDE_CLOCK);
    return over;
}

// The last thread ends together with the process.
static void process_end_await(struct attach_thread *thread)
{
    struct attach_process *process = thread->process;
    (void)end_await(thread, true);
    (void)attach_process_check(process);
    const struct sim_wait_reason reason = {thread->name, "the process to end", 0, 0};
    while (!process->ended) {
        (void)sim_condition_wait(process->server->sim, &thread->wait.woken, SIM_NEVER_PS, &reason);
    }
}

void attach_thread_leave(struct attach_thread *thread)
{
    struct attach_process *process = thread->process;
    attach_loop_caught_up(thread);
    attach_cores_await(thread);
    if (process->ended && process->thread_count == 1) {
        attach_objects_clear(thread);
    }
    attach_late_tell(thread);
    process->thread_count--;
    process->threads[thread->index] = NULL;
    atomic_store(&thread->slot->holder, ATTACH_HOLDER_SIMULATOR);
    atomic_store(&thread->slot->entry_count, 0);
    attach_notes_end(thread);
    if (!thread->stays) { // else it may still use the slot
        atomic_store(&thread->slot->state, ATTACH_SLOT_FREE);
    }
    attach_thread_destroy(thread);
    if (process->thread_count == 0) {
        attach_process_forget(process);
    }
}

static void thread_end(struct attach_thread *thread)
{
    attach_notes_over(thread);
    struct attach_process *process = thread->process;
    host_core_fence(thread->core);
    if (!process->ended && process->thread_count > 1) {
        thread->stays = !end_await(thread, false);
        attach_futex_recheck(process->server, process);
        attach_outside_wake(process->server, false);
    } else if (!process->ended) {
        process_end_await(thread);
    }
    attach_thread_leave(thread);
}

static bool waits_for_memory(const struct attach_request *request)
{
    return (request->op == ATTACH_OP_WAIT && (request->args.wait.flags & ATTACH_WAIT_MEMORY) != 0) ||
           (request->op == ATTACH_OP_POLL && (request->args.poll.flags & ATTACH_WAIT_MEMORY) != 0);
}

void attach_request_end(struct attach_thread *thread, const struct attach_request *request)
{
    attach_watch_end(thread);
    if (waits_for_memory(request)) {
        thread->seen.waited_writes = thread->process->writes.all;
        thread->seen.waited_pinned = thread->process->writes.pinned;
    }
}

// The thread has checked once more whether others have written to its memory, and they had not.
static bool rechecks_for_others(const struct attach_request *request)
{
    return request->op == ATTACH_OP_WAIT && (request->args.wait.flags & ATTACH_WAIT_OTHERS) != 0 &&
           request->entry_count == 0;
}

static bool call_await(struct attach_thread *thread)
{
    const struct attach_run_options *options = thread->process->server->options;
    bool called = options->functional ? attach_functional_await(thread) : attach_token_await(thread);
    if (options->scheduled != NULL && !options->functional) {
        options->scheduled(options->ctx);
    }
    return called;
}

void attach_request_begin(struct attach_thread *thread, const struct attach_request *request)
{
    thread->exits = request->op == ATTACH_OP_THREAD_EXIT;
    thread->announces = request->op == ATTACH_OP_CHILD ? request->args.child.pid : 0;
    if (request->op == ATTACH_OP_FUTEX_WAIT) {
        attach_futex_begin(thread, request);
    } else if (waits_for_descriptors(request)) {
        attach_watch_begin(thread, request);
    }
    if (request->op == ATTACH_OP_POLL) {
        attach_loop_begin(thread, request);
    } else if (request->op != ATTACH_OP_NOTHING && request->op != ATTACH_OP_FLUSH) {
        attach_loop_left(thread);
    }
    attach_wakes_note(thread, request);
    if (rechecks_for_others(request)) {
        attach_stored_note(thread); // it may have said that it waits
    } else {
        attach_scheduled_note(thread,
                              request->op == ATTACH_OP_POLL && (request->args.poll.what & ATTACH_POLL_GOES_ON) != 0);
    }
}

static void call_count(const struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_server *server = thread->process->server;
    if (request->op == ATTACH_OP_FLUSH) {
        return;
    }
    server->result->calls++;
    attach_hash(server,
                request->op + (request->op == ATTACH_OP_HCA_COMMAND ? request->args.hca_command.command.id : 0));
    attach_hash(server, (uint64_t)thread->process->node << 32 | thread->process->number << 8 | thread->index);
    attach_hash(server, sim_now_ps(server->sim));
    if (server->ipc_trace != NULL) {
        attach_trace_write(server->ipc_trace, thread, request);
    }
}

// One scheduling slot of the thread. false: it was the last one.
static bool schedule_once(struct attach_thread *thread)
{
    struct attach_request request;
    struct attach_server *server = thread->process->server;
    if (thread->process->ended) {
        return false;
    }
    attach_loops_catch_up(thread);
    token_pass(thread);
    bool called = call_await(thread);
    attach_loop_caught_up(thread);
    if (attach_stopped(server)) {
        return false;
    }
    request_take(thread, &request);
    outside_take(thread, &request);
    attach_request_begin(thread, &request);
    thread->process->announced += request.op == ATTACH_OP_THREAD;
    replay(thread, &request); // also if the program was killed: it made these stores
    thread->process->announced -= request.op == ATTACH_OP_THREAD;
    thread->announces = 0;
    atomic_store_explicit(&thread->slot->entry_count, 0, memory_order_relaxed);
    if (!called || thread->process->ended) {
        attach_watch_end(thread);
        return false;
    }
    call_count(thread, &request);
    thread->flushes = request.op == ATTACH_OP_FLUSH;
    if (request.op != ATTACH_OP_POLL && !thread->flushes) {
        thread->ahead_ps = 0;
    }
    thread->process->leaving = false;
    attach_alarm_note(thread->process);
    attach_call_note(thread, &request);
    if (thread->exits) {
        return false;
    }
    bool aside = !thread->flushes && server->result->calls % ASIDE_CALLS == 0;
    uint64_t asked_ps = sim_now_ps(server->sim);
    thread->slot->result = attach_request_do(thread, &request);
    if (server->notes_all) {
        attach_notes_waited(thread, &request, sim_now_ps(server->sim) - asked_ps);
    }
    attach_request_end(thread, &request);
    if (aside) { // not earlier: a thread that this one announces begins there
        attach_accept(server);
        attach_processes_check(server);
        attach_threads_find(server, false);
        // Someone outside may have written, but while a program polls no thread waits for that.
        attach_outside_note(server, attach_watches_of_others_poll(server) ? ATTACH_RUN_OUTSIDE_EVENT : 0);
    }
    return true;
}

void attach_thread_main(void *arg)
{
    struct attach_thread *thread = arg;
    thread->number = sim_thread_take_turns(thread->process->server->sim);
    attach_preempt(thread, ADVERSARY_WAKE);
    while (schedule_once(thread)) {
    }
    if (!thread->process->server->stopped) {
        thread_end(thread);
    }
}

static struct attach_thread *thread_create(struct attach_process *process, uint32_t index)
{
    struct attach_server *server = process->server;
    const struct plat_backend_inproc *node = plat_machine_backend(server->machine, process->node);
    struct attach_thread *thread = calloc(1, sizeof *thread);
    if (thread == NULL) {
        return NULL;
    }
    thread->process = process;
    thread->index = index;
    thread->slot = &process->segment->slots[index];
    thread->token.bell = attach_bell(process->first_bell, index);
    thread->id = index == 0 ? process->id : attach_ids_take(server);
    thread->slot->id = thread->id;
    char image[24] = ""; // after exec, while threads of the earlier program still exist
    if (process->image > 1) {
        snprintf(image, sizeof image, ".program%u", process->image);
    }
    snprintf(thread->name, sizeof thread->name, "%s.process%u%s.thread%u", server->scenario->nodes[process->node].name,
             process->number, image, index);
    sim_condition_init(&thread->wait.woken);
    thread->backend = *node;
    thread->backend.number = process->number;
    if (plat_machine_core_create(server->machine, process->node, thread->name, &thread->core) != SIM_OK) {
        free(thread);
        return NULL;
    }
    thread->backend.core = thread->core;
    (void)plat_backend_inproc(&thread->backend);
    return thread;
}

bool attach_thread_start(struct attach_process *process, uint32_t index, void (*body)(void *thread))
{
    struct attach_thread *thread = thread_create(process, index);
    if (thread == NULL || sim_thread_spawn(process->server->sim, thread->name, body, thread) != SIM_OK) {
        attach_thread_destroy(thread);
        return false;
    }
    process->threads[index] = thread;
    process->thread_count++;
    process->slots = index >= process->slots ? index + 1 : process->slots;
    atomic_store(&thread->slot->state, ATTACH_SLOT_TAKEN);
    return true;
}

void attach_thread_destroy(struct attach_thread *thread)
{
    if (thread != NULL) {
        attach_watch_end(thread);
        attach_shared_destroy(thread);
        host_core_destroy(thread->core);
        free(thread);
    }
}

void attach_threads_find(struct attach_server *server, bool announced)
{
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        uint32_t told = atomic_load(&process->segment->slot_end), end = told < ATTACH_SLOTS ? told : ATTACH_SLOTS;
        for (uint32_t i = 0; !process->ended && process->announced == 0 && i < end; i++) {
            if (atomic_load(&process->segment->slots[i].state) != ATTACH_SLOT_NEW || process->threads[i] != NULL) {
                continue;
            }
            attach_outside_note(server, announced ? 0 : ATTACH_RUN_OUTSIDE_THREAD);
            if (!attach_thread_start(process, i, attach_thread_main)) {
                attach_fail(server, "no memory for a thread");
            }
        }
    }
}

struct attach_thread *attach_thread_next(const struct attach_server *server, struct attach_process **process,
                                         unsigned *index)
{
    for (*process = *process != NULL ? *process : server->processes; *process != NULL; *process = (*process)->next) {
        while (*index < (*process)->slots) {
            struct attach_thread *thread = (*process)->threads[(*index)++];
            if (thread != NULL) {
                return thread;
            }
        }
        *index = 0;
    }
    return NULL;
}
