// Tasks: the steps that execute a command.
//
// A copy with one end in the own memory is an RDMA write or read. A copy between other ranks, or an atomic on another
// rank's word, is a command to the rank of the source (morie2016 figure 5): a fetch-and-add on the tail gets a slot in
// its remote command buffer, a read of the head shows whether there is room, an RDMA write delivers the command. That
// rank executes it and writes a status back.
//
// A peer's queue pair has one outstanding request. Tasks that need it wait in order; the first one keeps it until it
// needs it no longer or would have to wait. Replies and words of the library go first, because others wait for them.
#include <string.h>

#include "verbs-shim/acp/internal.h"

// A larger copy is split into pieces; other tasks may run between them.
#define PIECE_BYTES_MAX (UINT64_C(16) << 20)

static union acpb_scratch *scratch_of(struct acpb_process *process, const struct acpb_task *task)
{
    return &process->control->scratch[task->number];
}

static bool is_remote_command(const struct acpb_task *task)
{
    return task->number >= ACPB_TASK_REMOTE && task->number < ACPB_TASK_OWN;
}

// --- selection of the path ------------------------------------------------------------------------------------------

// Inserts after the task whose request is outstanding, or at the front.
static void task_insert(struct acpb_peer *peer, struct acpb_task *task)
{
    struct acpb_task **link = peer->busy ? &peer->first->next : &peer->first;
    task->next = *link;
    *link = task;
    if (task->next == NULL) {
        peer->last = task;
    }
}

static void task_append(struct acpb_peer *peer, struct acpb_task *task)
{
    task->next = NULL;
    if (peer->first == NULL) {
        peer->first = task;
    } else {
        peer->last->next = task;
    }
    peer->last = task;
}

static void task_queue(struct acpb_process *process, struct acpb_task *task, uint32_t rank, enum acpb_step step)
{
    struct acpb_peer *peer = acpb_peer_get(process, rank);
    if (peer == NULL) {
        return; // the process has failed
    }
    task->step = step;
    if (step == ACPB_STEP_REPLY || step == ACPB_STEP_WRITE) {
        task_insert(peer, task);
    } else {
        task_append(peer, task);
    }
    acpb_peer_advance(process, peer);
}

// A command of another rank gets its status; a command of the own program is complete.
static void task_end(struct acpb_process *process, struct acpb_task *task, uint64_t old)
{
    if (is_remote_command(task)) {
        scratch_of(process, task)->status = (struct acpb_status){.value = old, .done = 1};
        task_queue(process, task, task->command.issuer, ACPB_STEP_REPLY);
        return;
    }
    if (task->command.kind != ACPB_COPY) {
        acpb_local_store(process, &task->command, old);
    }
    task->step = ACPB_STEP_DONE;
}

// Data from other ranks is not trusted: it may name only existing ranks and statuses.
static bool remote_command_ok(struct acpb_process *process, const struct acpb_command *command)
{
    bool ok = command->kind <= ACPB_AND && command->issuer < process->ranks && command->slot < ACPB_QUEUE_COMMANDS &&
              acpb_is_address(process, command->src) && acpb_is_own(process, command->src) &&
              acpb_is_address(process, command->dst) &&
              (command->kind == ACPB_COPY || command->bytes == 4 || command->bytes == 8);
    if (!ok) {
        acpb_fail(process, "a command in the remote command buffer that no rank sends");
    }
    return ok;
}

void acpb_task_start(struct acpb_process *process, struct acpb_task *task)
{
    const struct acpb_command *command = &task->command;
    task->moved_bytes = 0;
    task->fresh = false;
    if (is_remote_command(task) && !remote_command_ok(process, command)) {
        return;
    }
    bool from_own = acpb_is_own(process, command->src), to_own = acpb_is_own(process, command->dst);
    if (command->bytes == 0) {
        task_end(process, task, 0);
    } else if (from_own && (to_own || command->kind != ACPB_COPY)) {
        task_end(process, task, acpb_local_run(process, command));
    } else if (from_own) {
        task_queue(process, task, acpb_rank_of(command->dst), ACPB_STEP_TRANSFER);
    } else if (to_own && command->kind == ACPB_COPY) {
        task_queue(process, task, acpb_rank_of(command->src), ACPB_STEP_TRANSFER);
    } else {
        task_queue(process, task, acpb_rank_of(command->src), ACPB_STEP_TICKET);
    }
}

void acpb_word_write(struct acpb_process *process, struct acpb_peer *peer, uint64_t offset, uint64_t value,
                     uint32_t bytes)
{
    struct acpb_task *task = &process->tasks[ACPB_TASK_OWN];
    if (peer == NULL) {
        return; // the process has failed
    }
    scratch_of(process, task)->word = value;
    task->offset = offset;
    task->piece_bytes = bytes;
    task_queue(process, task, peer->rank, ACPB_STEP_WRITE);
}

// --- requests -------------------------------------------------------------------------------------------------------

// A transfer between memory of this process and memory of the peer.
struct transfer {
    enum ibv_wr_opcode opcode;
    const void *local;
    uint32_t lkey;
    uint64_t bytes;
    uint64_t remote;
    uint32_t rkey;
};

static void transfer_post(struct acpb_process *process, struct acpb_peer *peer, const struct transfer *transfer)
{
    struct ibv_sge sge = {(uintptr_t)transfer->local, (uint32_t)transfer->bytes, transfer->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = (uintptr_t)peer,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = transfer->opcode,
                                   .send_flags = IBV_SEND_SIGNALED};
    if (transfer->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
        wr.wr.atomic.remote_addr = transfer->remote;
        wr.wr.atomic.rkey = transfer->rkey;
        wr.wr.atomic.compare_add = 1;
    } else {
        wr.wr.rdma.remote_addr = transfer->remote;
        wr.wr.rdma.rkey = transfer->rkey;
    }
    int error = ibv_post_send(peer->qp, &wr, &bad);
    peer->busy = error == 0;
    process->busy += peer->busy;
    if (error != 0) {
        acpb_fail(process, "a request to rank %u: %s", peer->rank, strerror(error));
    }
}

// A transfer between a task's scratch memory and this offset of the peer's control block.
static void control_post(struct acpb_process *process, struct acpb_peer *peer, enum ibv_wr_opcode opcode,
                         const void *local, uint64_t offset, uint64_t bytes)
{
    const struct transfer transfer = {.opcode = opcode,
                                      .local = local,
                                      .lkey = process->control_mr->lkey,
                                      .bytes = bytes,
                                      .remote = process->starters[peer->rank].base + offset,
                                      .rkey = process->starters[peer->rank].rkey};
    transfer_post(process, peer, &transfer);
}

// --- steps: posting, and the next step after the completion ---------------------------------------------------------

static void table_post(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    struct acpb_table *table = acpb_table_fill(process, peer);
    (void)task;
    if (table == NULL) {
        return; // all entries are being read: the task waits for one of them
    }
    const struct transfer transfer = {.opcode = IBV_WR_RDMA_READ,
                                      .local = table->regions,
                                      .lkey = table->slab->mr->lkey,
                                      .bytes = sizeof(struct acpb_region[ACPB_REGIONS]),
                                      .remote =
                                          process->starters[peer->rank].base + offsetof(struct acpb_control, regions),
                                      .rkey = process->starters[peer->rank].rkey};
    transfer_post(process, peer, &transfer);
}

static enum acpb_step table_done(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
    (void)peer;
    task->fresh = true;
    return ACPB_STEP_TRANSFER;
}

// Finds the peer's end of a copy. false: its table must be read first.
static bool remote_find(struct acpb_process *process, struct acpb_peer *peer, const struct acpb_task *task,
                        struct transfer *transfer_out)
{
    const struct acpb_command *command = &task->command;
    acp_ga_t ga = acpb_is_own(process, command->src) ? command->dst : command->src;
    uint64_t offset = acpb_offset_of(ga), end = offset + command->bytes;
    if (acpb_tag_of(ga) == ACPB_TAG_STARTER) {
        transfer_out->remote =
            process->starters[peer->rank].base + (uint64_t)(process->starter - (uint8_t *)process->control) + offset;
        transfer_out->rkey = process->starters[peer->rank].rkey;
        if (end > process->starter_bytes) {
            acpb_fail(process, "global address 0x%llx + %llu is beyond the starter memory of rank %u",
                      (unsigned long long)ga, (unsigned long long)command->bytes, peer->rank);
        }
        return true;
    }
    const struct acpb_table *table = acpb_table_valid(process, peer);
    const struct acpb_region *region = table != NULL ? &table->regions[acpb_tag_of(ga)] : NULL;
    acpb_pay(process, BACKEND_COST_LOAD_STORE, 4);
    if (region != NULL && acpb_region_is_whole(region) && end <= region->bytes && region->color == acpb_color_of(ga)) {
        transfer_out->remote = region->address + offset;
        transfer_out->rkey = region->rkey;
        return true;
    }
    if (region != NULL && task->fresh) {
        acpb_fail(process, "rank %u has no region for the %llu bytes at global address 0x%llx", peer->rank,
                  (unsigned long long)command->bytes, (unsigned long long)ga);
        return true;
    }
    return false;
}

static void transfer_step_post(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    const struct acpb_command *command = &task->command;
    struct transfer transfer = {0};
    if (!remote_find(process, peer, task, &transfer)) {
        task->step = ACPB_STEP_TABLE;
        table_post(process, peer, task);
        return;
    }
    bool put = acpb_is_own(process, command->src);
    acp_ga_t own = put ? command->src : command->dst;
    const struct acpb_region *region = acpb_region_find(process, own, command->bytes);
    if (region == NULL && !process->failed) {
        acpb_fail(process, "global address 0x%llx of a copy that rank %u started is not registered (any more)",
                  (unsigned long long)own, command->issuer);
    }
    if (process->failed) {
        return;
    }
    uint64_t left = command->bytes - task->moved_bytes;
    task->piece_bytes = left < PIECE_BYTES_MAX ? left : PIECE_BYTES_MAX;
    transfer.opcode = put ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    transfer.local = (const void *)(uintptr_t)(region->address + acpb_offset_of(own) + task->moved_bytes);
    transfer.lkey = region->lkey;
    transfer.remote += task->moved_bytes;
    transfer.bytes = task->piece_bytes;
    transfer_post(process, peer, &transfer);
}

static enum acpb_step transfer_done(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    (void)process;
    (void)peer;
    task->moved_bytes += task->piece_bytes;
    return task->moved_bytes < task->command.bytes ? ACPB_STEP_TRANSFER : ACPB_STEP_DONE;
}

static void ticket_post(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    control_post(process, peer, IBV_WR_ATOMIC_FETCH_AND_ADD, &scratch_of(process, task)->ticket,
                 offsetof(struct acpb_control, tail), sizeof(uint64_t));
}

static enum acpb_step ticket_done(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    (void)peer;
    acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
    task->command.ticket = scratch_of(process, task)->ticket + 1;
    return ACPB_STEP_HEAD;
}

static void head_post(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    control_post(process, peer, IBV_WR_RDMA_READ, &scratch_of(process, task)->head, offsetof(struct acpb_control, head),
                 sizeof(uint64_t));
}

// If the buffer is full, the head is read again after the other tasks that wait for the peer.
static enum acpb_step head_done(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    (void)peer;
    acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
    uint64_t before = task->command.ticket - 1 - scratch_of(process, task)->head;
    return before < ACPB_REMOTE_COMMANDS ? ACPB_STEP_DELIVER : ACPB_STEP_HEAD;
}

static void deliver_post(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    uint64_t slot = (task->command.ticket - 1) % ACPB_REMOTE_COMMANDS;
    process->control->statuses[task->number].done = 0;
    scratch_of(process, task)->command = task->command;
    acpb_pay(process, BACKEND_COST_LOAD_STORE, sizeof task->command / sizeof(uint64_t));
    control_post(process, peer, IBV_WR_RDMA_WRITE, &scratch_of(process, task)->command,
                 offsetof(struct acpb_control, commands) + slot * sizeof(struct acpb_command),
                 sizeof(struct acpb_command));
}

static void reply_post(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    control_post(process, peer, IBV_WR_RDMA_WRITE, &scratch_of(process, task)->status,
                 offsetof(struct acpb_control, statuses) + task->command.slot * sizeof(struct acpb_status),
                 sizeof(struct acpb_status));
}

static void write_post(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task)
{
    control_post(process, peer, IBV_WR_RDMA_WRITE, &scratch_of(process, task)->word, task->offset, task->piece_bytes);
}

// done: returns the next step; NULL: it is always `next`.
static const struct {
    void (*post)(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task);
    enum acpb_step (*done)(struct acpb_process *process, struct acpb_peer *peer, struct acpb_task *task);
    enum acpb_step next;
} steps[] = {
    [ACPB_STEP_TABLE] = {table_post, .done = table_done},
    [ACPB_STEP_TRANSFER] = {transfer_step_post, .done = transfer_done},
    [ACPB_STEP_TICKET] = {ticket_post, .done = ticket_done},
    [ACPB_STEP_HEAD] = {head_post, .done = head_done},
    [ACPB_STEP_DELIVER] = {deliver_post, .next = ACPB_STEP_STATUS},
    [ACPB_STEP_REPLY] = {reply_post, .next = ACPB_STEP_DONE},
    [ACPB_STEP_WRITE] = {write_post, .next = ACPB_STEP_DONE},
};

// --- driving the tasks ----------------------------------------------------------------------------------------------

void acpb_peer_advance(struct acpb_process *process, struct acpb_peer *peer)
{
    if (peer->first == NULL || peer->busy || process->failed) {
        return;
    }
    if (peer->link != ACPB_LINK_USABLE) {
        acpb_peer_ask(process, peer);
        return;
    }
    steps[peer->first->step].post(process, peer, peer->first);
}

static void status_wait(struct acpb_process *process, struct acpb_task *task)
{
    task->next = NULL;
    if (process->statuses_first == NULL) {
        process->statuses_first = task;
    } else {
        process->statuses_last->next = task;
    }
    process->statuses_last = task;
}

// Called when the first task's request is complete.
void acpb_peer_completed(struct acpb_process *process, struct acpb_peer *peer)
{
    struct acpb_task *task = peer->first;
    enum acpb_step step = task->step;
    enum acpb_step next = steps[step].done != NULL ? steps[step].done(process, peer, task) : steps[step].next;
    peer->busy = false;
    process->busy--;
    task->step = next;
    if (next == step) {
        peer->first = task->next;
        task_append(peer, task);
    } else if (next == ACPB_STEP_DONE || next == ACPB_STEP_STATUS) {
        peer->first = task->next;
        if (next == ACPB_STEP_STATUS) {
            status_wait(process, task);
        } else if (step == ACPB_STEP_TRANSFER) {
            task_end(process, task, 0);
        }
    }
    acpb_peer_advance(process, peer);
    if (step == ACPB_STEP_TABLE && process->tables_wanted) {
        process->tables_wanted = false;
        for (struct acpb_peer *other = process->peers_first; other != NULL; other = other->next) {
            acpb_peer_advance(process, other);
        }
    }
}

acp_ga_t acpb_peer_address(const struct acpb_process *process, const struct acpb_peer *peer)
{
    const struct acpb_command *command = &peer->first->command;
    return acpb_is_own(process, command->src) ? command->dst : command->src;
}

bool acpb_statuses_poll(struct acpb_process *process)
{
    struct acpb_task **link = &process->statuses_first, *last = NULL;
    bool found = false;
    while (*link != NULL) {
        struct acpb_task *task = *link;
        const struct acpb_status *status = &process->control->statuses[task->number];
        acpb_pay(process, BACKEND_COST_LOAD_STORE, 1);
        if (__atomic_load_n(&status->done, __ATOMIC_ACQUIRE) == 0) {
            last = task;
            link = &task->next;
            continue;
        }
        *link = task->next;
        acpb_pay(process, BACKEND_COST_DEVICE_LINE, 1);
        task_end(process, task, status->value);
        found = true;
    }
    process->statuses_last = last;
    return found;
}
