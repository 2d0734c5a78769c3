// The communication thread, which polls for all kinds of work and sleeps when there is none; and how the program waits
// for the thread.
#include "verbs-shim/acp/internal.h"

enum { PROGRAM_PAUSE_NS = 20, COMPLETIONS = 16, STARTS = 16 };

uint64_t acpb_changes(const struct acpb_process *process)
{
    const struct backend *backend = process->backend;
    return backend->ops->thread->changes(backend->ctx, BACKEND_THREAD_ACP);
}

static bool sleep_for(struct acpb_process *process, uint64_t seen, bool devices, uint64_t max_ns)
{
    const struct backend *backend = process->backend;
    return backend->ops->thread->pause(backend->ctx, BACKEND_THREAD_ACP, seen, devices, max_ns);
}

static void program_wake(struct acpb_process *process)
{
    if (atomic_load(&process->waits)) {
        process->backend->ops->thread->wake(process->backend->ctx, BACKEND_THREAD_ACP);
    }
}

// --- the program ----------------------------------------------------------------------------------------------------

void acpb_program_wait(struct acpb_process *process, uint64_t seen)
{
    if (process->failed) {
        acpb_wait_failed(process);
    }
    (void)sleep_for(process, seen, false, 0);
}

void acpb_program_pause(struct acpb_process *process)
{
    if (process->failed) {
        acpb_wait_failed(process);
    }
    (void)sleep_for(process, acpb_changes(process), false, PROGRAM_PAUSE_NS);
}

int acpb_request_wait(struct acpb_process *process, enum acpb_call call)
{
    struct acpb_request *request = &process->request;
    request->error = 0;
    request->began = false;
    acpb_pay(process, BACKEND_COST_CALL, 1);
    acpb_elapse(process);
    atomic_store(&process->waits, true);
    atomic_store_explicit(&request->call, call, memory_order_release);
    process->backend->ops->thread->wake(process->backend->ctx, BACKEND_THREAD_ACP);
    uint64_t seen = acpb_changes(process);
    while (atomic_load_explicit(&request->call, memory_order_acquire) != ACPB_CALL_NONE) {
        acpb_program_wait(process, seen);
        seen = acpb_changes(process);
    }
    atomic_store(&process->waits, false);
    acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
    return request->error;
}

// --- the thread -----------------------------------------------------------------------------------------------------

static void completion_take(struct acpb_process *process, const struct ibv_wc *wc)
{
    if (wc->wr_id < 2 * ACPB_MEETINGS) {
        acpb_meeting_arrived(process, wc);
        return;
    }
    struct acpb_peer *peer = (struct acpb_peer *)(uintptr_t)wc->wr_id;
    if (wc->status == IBV_WC_SUCCESS) {
        acpb_peer_completed(process, peer);
    } else if (wc->status == IBV_WC_RETRY_EXC_ERR) {
        acpb_fail(process, "rank %u does not answer", peer->rank);
    } else if (wc->status == IBV_WC_REM_ACCESS_ERR && peer->first->step == ACPB_STEP_TRANSFER) {
        acpb_fail(process, "rank %u has unregistered the region of global address 0x%llx", peer->rank,
                  (unsigned long long)acpb_peer_address(process, peer));
    } else if (wc->status == IBV_WC_WR_FLUSH_ERR) {
        acpb_fail(process, "the connection to rank %u is broken: it asked for memory that is not registered here",
                  peer->rank);
    } else {
        acpb_fail(process, "a request to rank %u: %s", peer->rank, ibv_wc_status_str(wc->status));
    }
}

static bool completions_take(struct acpb_process *process)
{
    struct ibv_wc wcs[COMPLETIONS];
    int count = ibv_poll_cq(process->cq, COMPLETIONS, wcs);
    for (int i = 0; i < count && !process->failed; i++) {
        completion_take(process, &wcs[i]);
    }
    return count > 0;
}

// Starts commands of the program in order; a command that waits for earlier ones also delays those after it.
static bool commands_start(struct acpb_process *process)
{
    uint64_t tail = atomic_load_explicit(&process->tail, memory_order_acquire);
    bool found = false;
    for (unsigned i = 0; i < STARTS && process->start < tail && !process->failed; i++) {
        struct acpb_task *task = &process->tasks[process->start % ACPB_QUEUE_COMMANDS];
        if (task->order > atomic_load_explicit(&process->head, memory_order_relaxed)) {
            break;
        }
        acpb_pay(process, BACKEND_COST_DEVICE_LINE, 2); // the tail and the command, written by the program's core
        process->start++;
        acpb_task_start(process, task);
        found = true;
    }
    return found;
}

static bool commands_end(struct acpb_process *process)
{
    uint64_t head = atomic_load_explicit(&process->head, memory_order_relaxed), before = head;
    while (head < process->start && process->tasks[head % ACPB_QUEUE_COMMANDS].step == ACPB_STEP_DONE) {
        process->tasks[head % ACPB_QUEUE_COMMANDS].step = ACPB_STEP_IDLE;
        head++;
    }
    if (head == before) {
        return false;
    }
    acpb_pay(process, BACKEND_COST_LOAD_STORE, 1);
    acpb_elapse(process);
    atomic_store(&process->head, head); // before `waits` is read
    program_wake(process);
    return true;
}

// Starts commands of other ranks in the order of their tickets. A slot is free again when its task and all before it
// are done.
static bool remote_commands_start(struct acpb_process *process)
{
    struct acpb_control *control = process->control;
    bool found = false;
    for (unsigned i = 0; i < STARTS && process->taken - process->served < ACPB_REMOTE_COMMANDS; i++) {
        const struct acpb_command *command = &control->commands[process->taken % ACPB_REMOTE_COMMANDS];
        if (__atomic_load_n(&command->ticket, __ATOMIC_ACQUIRE) != process->taken + 1 || process->failed) {
            break;
        }
        struct acpb_task *task = &process->tasks[ACPB_TASK_REMOTE + process->taken % ACPB_REMOTE_COMMANDS];
        acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
        task->command = *command;
        process->taken++;
        acpb_task_start(process, task);
        found = true;
    }
    return found;
}

static void remote_commands_end(struct acpb_process *process)
{
    struct acpb_task *tasks = process->tasks + ACPB_TASK_REMOTE;
    while (process->served < process->taken && tasks[process->served % ACPB_REMOTE_COMMANDS].step == ACPB_STEP_DONE) {
        tasks[process->served % ACPB_REMOTE_COMMANDS].step = ACPB_STEP_IDLE;
        process->served++;
        __atomic_store_n(&process->control->head, process->served, __ATOMIC_RELEASE);
    }
}

static bool request_take(struct acpb_process *process)
{
    struct acpb_request *request = &process->request;
    if (atomic_load_explicit(&request->call, memory_order_acquire) == ACPB_CALL_NONE || process->failed ||
        !acpb_request_advance(process)) {
        return false;
    }
    acpb_elapse(process);
    atomic_store(&request->call, ACPB_CALL_NONE); // before `waits` is read
    program_wake(process);
    return true;
}

static bool pass(struct acpb_process *process)
{
    acpb_pay(process, BACKEND_COST_LOAD_STORE, 4); // the words that are polled for work
    bool found = completions_take(process);
    found = remote_commands_start(process) || found;
    found = acpb_statuses_poll(process) || found;
    found = commands_start(process) || found;
    found = request_take(process) || found;
    found = acpb_peers_ask_again(process) || found;
    remote_commands_end(process);
    return commands_end(process) || found;
}

static void run(void *arg)
{
    struct acpb_process *process = arg;
    bool goes_on = true;
    while (goes_on) {
        uint64_t seen = acpb_changes(process);
        goes_on = (!process->failed && pass(process)) ||
                  sleep_for(process, seen, !process->failed, process->failed ? 0 : acpb_peers_pause_ns(process));
    }
}

int acpb_thread_start(struct acpb_process *process)
{
    const struct backend *backend = process->backend;
    int error = backend->ops->thread->start(backend->ctx, BACKEND_THREAD_ACP, run, process);
    process->threaded = error == 0;
    return error;
}

void acpb_thread_stop(struct acpb_process *process)
{
    if (process->threaded) {
        process->backend->ops->thread->stop(process->backend->ctx, BACKEND_THREAD_ACP);
        process->threaded = false;
    }
}
