// The program's side of the command queue: GMAs become commands; handles are their numbers, from 1.
#include "verbs-shim/acp/internal.h"

enum { COMMAND_WORDS = sizeof(struct acpb_command) / sizeof(uint64_t) };

static uint64_t head(const struct acpb_process *process)
{
    return atomic_load(&process->head); // must not be read before `waits` is stored (head_wait)
}

// Waits until `count` commands are complete.
static void head_wait(struct acpb_process *process, uint64_t count)
{
    uint64_t seen = acpb_changes(process);
    if (head(process) >= count) {
        return;
    }
    atomic_store(&process->waits, true);
    while (head(process) < count) {
        acpb_program_wait(process, seen);
        seen = acpb_changes(process);
    }
    atomic_store(&process->waits, false);
    acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1); // the head, written by the communication thread's core
}

// How many commands must be complete before it starts; UINT64_MAX: no such handle.
static uint64_t order_of(acp_handle_t order, uint64_t tail)
{
    if (order == ACP_HANDLE_ALL || order == ACP_HANDLE_CONT) {
        return tail;
    }
    return order >= 0 && (uint64_t)order <= tail ? (uint64_t)order : UINT64_MAX;
}

static acp_handle_t command_put(struct acpb_process *process, const struct acpb_command *command, acp_handle_t order)
{
    uint64_t tail = atomic_load_explicit(&process->tail, memory_order_relaxed), before = order_of(order, tail);
    if (before == UINT64_MAX) {
        return ACP_HANDLE_NULL;
    }
    if (tail >= ACPB_QUEUE_COMMANDS) {
        head_wait(process, tail - ACPB_QUEUE_COMMANDS + 1);
    }
    struct acpb_task *task = &process->tasks[tail % ACPB_QUEUE_COMMANDS];
    task->command = *command;
    task->command.issuer = process->rank;
    task->command.slot = task->number;
    task->order = before;
    acpb_pay(process, BACKEND_COST_CALL, 1);
    acpb_pay(process, BACKEND_COST_LOAD_STORE, COMMAND_WORDS);
    acpb_elapse(process);
    atomic_store_explicit(&process->tail, tail + 1, memory_order_release);
    process->backend->ops->thread->wake(process->backend->ctx, BACKEND_THREAD_ACP);
    return (acp_handle_t)(tail + 1);
}

acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t bytes, acp_handle_t order)
{
    struct acpb_process *process = acpb_current();
    const struct acpb_command command = {.dst = dst, .src = src, .bytes = bytes, .kind = ACPB_COPY};
    if (process == NULL || !acpb_is_address(process, dst) || !acpb_is_address(process, src) ||
        bytes > ACPB_OFFSET_MASK + 1 || (acpb_is_own(process, dst) && acpb_region_find(process, dst, bytes) == NULL) ||
        (acpb_is_own(process, src) && acpb_region_find(process, src, bytes) == NULL)) {
        return ACP_HANDLE_NULL;
    }
    return command_put(process, &command, order);
}

static acp_handle_t atomic_put(const struct acpb_command *command, acp_handle_t order)
{
    struct acpb_process *process = acpb_current();
    uint64_t mask = command->bytes - 1;
    if (process == NULL || !acpb_is_address(process, command->src) || (command->src & mask) != 0 ||
        (command->dst & mask) != 0 || acpb_region_find(process, command->dst, command->bytes) == NULL ||
        (acpb_is_own(process, command->src) && acpb_region_find(process, command->src, command->bytes) == NULL)) {
        return ACP_HANDLE_NULL;
    }
    return command_put(process, command, order);
}

static acp_handle_t word_put(enum acpb_kind kind, uint64_t bytes, acp_ga_t dst, acp_ga_t src, uint64_t value,
                             acp_handle_t order)
{
    const struct acpb_command command = {.kind = kind, .bytes = bytes, .dst = dst, .src = src, .value = value};
    return atomic_put(&command, order);
}

acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t old_value, uint32_t new_value, acp_handle_t order)
{
    const struct acpb_command command = {
        .kind = ACPB_CAS, .bytes = 4, .dst = dst, .src = src, .compare = old_value, .value = new_value};
    return atomic_put(&command, order);
}

acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t old_value, uint64_t new_value, acp_handle_t order)
{
    const struct acpb_command command = {
        .kind = ACPB_CAS, .bytes = 8, .dst = dst, .src = src, .compare = old_value, .value = new_value};
    return atomic_put(&command, order);
}

acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
    return word_put(ACPB_SWAP, 4, dst, src, value, order);
}

acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
    return word_put(ACPB_SWAP, 8, dst, src, value, order);
}

acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
    return word_put(ACPB_ADD, 4, dst, src, value, order);
}

acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
    return word_put(ACPB_ADD, 8, dst, src, value, order);
}

acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
    return word_put(ACPB_XOR, 4, dst, src, value, order);
}

acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
    return word_put(ACPB_XOR, 8, dst, src, value, order);
}

acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
    return word_put(ACPB_OR, 4, dst, src, value, order);
}

acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
    return word_put(ACPB_OR, 8, dst, src, value, order);
}

acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order)
{
    return word_put(ACPB_AND, 4, dst, src, value, order);
}

acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order)
{
    return word_put(ACPB_AND, 8, dst, src, value, order);
}

// The number of commands that a handle waits for; 0: none of them can be incomplete.
static uint64_t count_of(const struct acpb_process *process, acp_handle_t handle)
{
    uint64_t tail = atomic_load_explicit(&process->tail, memory_order_relaxed), count = order_of(handle, tail);
    return count == UINT64_MAX ? 0 : count;
}

void acp_complete(acp_handle_t handle)
{
    struct acpb_process *process = acpb_current();
    if (process != NULL) {
        acpb_pay(process, BACKEND_COST_CALL, 1);
        head_wait(process, count_of(process, handle));
    }
}

int acp_inquire(acp_handle_t handle)
{
    struct acpb_process *process = acpb_current();
    if (process == NULL) {
        return 0;
    }
    acpb_pay(process, BACKEND_COST_CALL, 1);
    if (head(process) >= count_of(process, handle)) {
        return 0;
    }
    acpb_program_pause(process);
    return 1;
}
