// Ends of objects beside what is in flight (docs/ownership.md). Two threads of one process create, use and end objects of
// every kind: queues of GPUs with kernels and copies, windows with stores, rings that are resized, regions, doorbell
// pages; the process may end at any point. Another process only allocates memory and pins it, whenever the first one has
// given something back. Whatever the first one does: nothing lands in memory that the other one has, and in the end everything is given back.
#include <string.h>

#include "fuzz.h"
#include "models/gpu/gpu.h"
#include "models/hca/abi/hca_abi.h"
#include "sim/platform/gpus.h"
#include "tests/support/askers.h"

enum { SLOTS = 4, STEPS_MAX = 200, PAGE = 4096, DEVICE_PAGE = 65536, GPUS = 2, HELD = 6 };
enum { OWN = 0x41, OTHERS = 0x5a };

static struct fuzz_input input;

// What the first process has; 0: nothing.
static struct {
    uint64_t host[SLOTS], device[GPUS][SLOTS], offset[GPUS][SLOTS];
    uint64_t queue[GPUS][SLOTS]; // counted from 1
    uint32_t eq, pd, uar, cq, region[SLOTS];
    unsigned steps, threads;
    sim_condition_t gave; // it has given something back, or a thread has ended
} evil;

static unsigned slot(void)
{
    return fuzz_below(&input, SLOTS);
}

// One of the slots that are in use, if any is.
static uint64_t any_of(const uint64_t slots[SLOTS])
{
    unsigned first = slot();
    for (unsigned i = 0; i < SLOTS; i++) {
        if (slots[(first + i) % SLOTS] != 0) {
            return slots[(first + i) % SLOTS];
        }
    }
    return 0;
}

static int64_t ask(struct attach_thread *thread, enum attach_op op, const union attach_args *args)
{
    const struct attach_request request = {.op = op, .args = *args};
    return askers_request(thread, &request);
}

static int64_t command(struct attach_thread *thread, struct hca_command command)
{
    return ask(thread, ATTACH_OP_HCA_COMMAND, &(union attach_args){.hca_command.command = command});
}

static uint32_t created(const struct attach_thread *thread, int64_t status)
{
    return status == 0 ? thread->slot->reply.hca_command.command.number : 0;
}

static gpu_t *gpu_of(const struct attach_thread *thread, unsigned gpu)
{
    return thread->backend.gpus->list[gpu]->gpu;
}

// --- memory ----------------------------------------------------------------------------------------------------------

static uint64_t host_take(struct attach_thread *thread, int fill)
{
    if (ask(thread, ATTACH_OP_ALLOC, &(union attach_args){.alloc.bytes = PAGE}) != 0) {
        return 0;
    }
    uint64_t bus = thread->slot->reply.alloc.bus_address;
    memset(host_memory_at(thread->backend.memory, bus), fill, PAGE);
    return bus;
}

static uint64_t device_take(struct attach_thread *thread, unsigned gpu, int fill)
{
    if (ask(thread, ATTACH_OP_GPU_ALLOC, &(union attach_args){.gpu_alloc = {gpu, DEVICE_PAGE}}) != 0) {
        return 0;
    }
    uint64_t address = thread->slot->reply.gpu_alloc.address;
    memset(gpu_memory_at(gpu_of(thread, gpu), address, DEVICE_PAGE), fill, DEVICE_PAGE);
    return address;
}

static void host_step(struct attach_thread *thread)
{
    uint64_t *host = &evil.host[slot()];
    uint64_t freed = *host;
    if (freed == 0) {
        *host = host_take(thread, OWN);
    } else {
        *host = 0; // who waits for it must not find another one in its place
        (void)ask(thread, ATTACH_OP_FREE, &(union attach_args){.free.bus_address = freed});
    }
}

static void device_step(struct attach_thread *thread)
{
    unsigned gpu = fuzz_below(&input, GPUS);
    uint64_t *device = &evil.device[gpu][slot()], freed = *device;
    if (freed == 0) {
        *device = device_take(thread, gpu, OWN);
    } else if (ask(thread, ATTACH_OP_GPU_FREE, &(union attach_args){.gpu_free = {gpu, freed}}) == 0 &&
               *device == freed) {
        *device = 0;
    }
}

static void window_step(struct attach_thread *thread)
{
    unsigned gpu = fuzz_below(&input, GPUS), i = slot();
    uint64_t *offset = &evil.offset[gpu][i], pinned = *offset;
    if (pinned != 0) {
        *offset = 0;
        (void)ask(thread, ATTACH_OP_GPU_UNPIN, &(union attach_args){.gpu_unpin = {gpu, pinned - 1}});
    } else if (ask(thread, ATTACH_OP_GPU_PIN,
                   &(union attach_args){.gpu_pin = {gpu, evil.device[gpu][i], DEVICE_PAGE}}) == 0) {
        *offset = thread->slot->reply.gpu_pin.offset + 1;
    }
}

// As if the program had made the stores.
static void store_step(struct attach_thread *thread)
{
    static uint8_t data[DEVICE_PAGE];
    unsigned gpu = fuzz_below(&input, GPUS);
    enum backend_bar bar = (enum backend_bar)(BACKEND_BAR_GPU0 + gpu);
    uint64_t offset = any_of(evil.offset[gpu]);
    size_t bytes = 8 + fuzz_below(&input, PAGE);
    memset(data, OWN, sizeof data);
    if (offset != 0 && attach_bar_allowed(thread->process, bar, offset - 1, bytes)) {
        thread->process->stored_bars |= UINT64_C(1) << bar;
        thread->backend.ops.write_combined(&thread->backend, bar, offset - 1, data, bytes);
    }
}

// --- GPU queues ------------------------------------------------------------------------------------------------------

static void queue_step(struct attach_thread *thread)
{
    unsigned gpu = fuzz_below(&input, GPUS);
    uint64_t *queue = &evil.queue[gpu][slot()], ended = *queue;
    if (ended != 0) {
        *queue = 0;
        (void)ask(thread, ATTACH_OP_GPU_QUEUE_DESTROY,
                  &(union attach_args){.gpu_queue_destroy = {gpu, (uint32_t)ended - 1}});
    } else if (ask(thread, ATTACH_OP_GPU_QUEUE_CREATE, &(union attach_args){.gpu_queue_create.gpu = gpu}) == 0) {
        *queue = thread->slot->reply.gpu_queue_create.queue + 1;
    }
}

static void work_step(struct attach_thread *thread)
{
    unsigned gpu = fuzz_below(&input, GPUS), peer = 1 - gpu;
    uint32_t queue = (uint32_t)any_of(evil.queue[gpu]);
    struct backend_gpu_work work = {.device_address = any_of(evil.device[gpu]), .bytes = PAGE, .rows = 1};
    switch (fuzz_below(&input, 4)) {
    case 0:
        work = (struct backend_gpu_work){.kind = BACKEND_GPU_KERNEL, .duration_ns = fuzz_below(&input, 20000)};
        break;
    case 1:
        work.kind = BACKEND_GPU_TO_HOST;
        work.other_address = any_of(evil.host);
        break;
    case 2:
        work.kind = BACKEND_GPU_TO_PEER;
        work.peer = peer;
        work.other_address = any_of(evil.device[peer]);
        break;
    case 3:
        work.kind = BACKEND_GPU_TO_HOST; // into a window of the other GPU
        work.other_address = gpu_bar_base(gpu_of(thread, peer)) + any_of(evil.offset[peer]) - 1;
        break;
    }
    if (queue != 0) {
        (void)ask(thread, ATTACH_OP_GPU_SUBMIT, &(union attach_args){.gpu_submit = {gpu, queue - 1, work}});
    }
}

// --- the HCA ---------------------------------------------------------------------------------------------------------

static void cq_step(struct attach_thread *thread)
{
    uint64_t ring = any_of(evil.host), record = any_of(evil.host) + PAGE - 8;
    uint32_t cq = evil.cq;
    if (cq == 0) {
        const struct hca_cq_init init = {
            .eqn = evil.eq, .uar = evil.uar, .base = ring, .record = record, .entries = 16};
        evil.cq = created(thread, command(thread, (struct hca_command){.id = HCA_CMD_CQ_CREATE, .cq_create = init}));
    } else if (fuzz_below(&input, 4) != 0) {
        (void)command(thread,
                      (struct hca_command){.id = HCA_CMD_CQ_RESIZE,
                                           .number = cq,
                                           .cq_resize = {.base = ring, .entries = 16u << fuzz_below(&input, 3)}});
    } else {
        evil.cq = 0;
        (void)command(thread, (struct hca_command){.id = HCA_CMD_CQ_DESTROY, .number = cq});
    }
}

static void region_step(struct attach_thread *thread)
{
    unsigned i = slot();
    uint32_t region = evil.region[i];
    if (region != 0) {
        evil.region[i] = 0;
        (void)command(thread, (struct hca_command){.id = HCA_CMD_MR_DEREGISTER, .number = region});
        return;
    }
    const struct hca_mr_init init = {
        .pdn = evil.pd, .iova = 16 * PAGE, .bytes = PAGE, .access = HCA_LOCAL_WRITE, .bus_address = evil.host[i]};
    evil.region[i] =
        created(thread, command(thread, (struct hca_command){.id = HCA_CMD_MR_REGISTER, .mr_register = init}));
}

static void page_step(struct attach_thread *thread)
{
    if (command(thread, (struct hca_command){.id = HCA_CMD_UAR_ALLOC}) == 0) {
        uint32_t page = thread->slot->reply.hca_command.command.number;
        thread->process->stored_bars |= UINT64_C(1) << BACKEND_BAR_HCA_UAR;
        thread->backend.ops.write(&thread->backend, BACKEND_BAR_HCA_UAR, page * HCA_UAR_BYTES + HCA_UAR_SEND_DOORBELL,
                                  hca_doorbell_send(1, 1), 8);
        (void)command(thread, (struct hca_command){.id = HCA_CMD_UAR_FREE, .number = page});
    }
}

// --- the processes ---------------------------------------------------------------------------------------------------

static void evil_begin(struct attach_thread *thread)
{
    uint64_t memory = host_take(thread, OWN); // of the event queue, as long as the process lives
    const struct hca_eq_init init = {.base = memory, .record = memory + PAGE - 8, .entries = 16};
    evil.pd = created(thread, command(thread, (struct hca_command){.id = HCA_CMD_PD_CREATE}));
    evil.uar = created(thread, command(thread, (struct hca_command){.id = HCA_CMD_UAR_ALLOC}));
    evil.eq = created(thread, command(thread, (struct hca_command){.id = HCA_CMD_EQ_CREATE, .eq_create = init}));
}

static void evil_run(struct attach_thread *thread)
{
    static void (*const steps[])(struct attach_thread *) = {host_step,  host_step, device_step, window_step,
                                                            store_step, work_step, work_step,   queue_step,
                                                            cq_step,    cq_step,   region_step, page_step};
    if (thread->index == 0) {
        evil_begin(thread);
    }
    while (input.size > 0 && evil.steps < STEPS_MAX && !thread->process->ended) {
        evil.steps++;
        steps[fuzz_below(&input, sizeof steps / sizeof steps[0])](thread);
        sim_condition_signal(thread->process->server->sim, &evil.gave);
        if (fuzz_below(&input, 4) == 0) {
            sim_thread_sleep(thread->process->server->sim, fuzz_below(&input, 64) * SIM_PS_PER_NS * 50);
        }
    }
}

static void check(const uint8_t *memory, size_t bytes, const char *of, const struct attach_thread *thread)
{
    for (size_t i = 0; i < bytes; i++) {
        FUZZ_HOLDS(memory[i] == OTHERS, "byte %zu of %s is 0x%02x at %llu ps", i, of, memory[i],
                   (unsigned long long)sim_now_ps(thread->process->server->sim));
    }
}

// What the other process holds: a page of the host, and one of each GPU with a window on it.
struct held {
    uint64_t host, device[GPUS], offset[GPUS];
};

static void held_take(struct attach_thread *thread, struct held *held)
{
    held->host = host_take(thread, OTHERS);
    for (unsigned gpu = 0; gpu < GPUS; gpu++) {
        held->device[gpu] = device_take(thread, gpu, OTHERS);
        held->offset[gpu] = UINT64_MAX;
        if (ask(thread, ATTACH_OP_GPU_PIN, &(union attach_args){.gpu_pin = {gpu, held->device[gpu], DEVICE_PAGE}}) ==
            0) {
            held->offset[gpu] = thread->slot->reply.gpu_pin.offset;
        }
    }
}

static void held_give(struct attach_thread *thread, struct held *held)
{
    if (held->host != 0) {
        check(host_memory_at(thread->backend.memory, held->host), PAGE, "host memory", thread);
        (void)ask(thread, ATTACH_OP_FREE, &(union attach_args){.free.bus_address = held->host});
    }
    for (unsigned gpu = 0; gpu < GPUS && held->device[gpu] != 0; gpu++) {
        check(gpu_memory_at(gpu_of(thread, gpu), held->device[gpu], DEVICE_PAGE), DEVICE_PAGE, "device memory", thread);
        (void)ask(thread, ATTACH_OP_GPU_UNPIN, &(union attach_args){.gpu_unpin = {gpu, held->offset[gpu]}});
        (void)ask(thread, ATTACH_OP_GPU_FREE, &(union attach_args){.gpu_free = {gpu, held->device[gpu]}});
    }
    *held = (struct held){0};
}

// Takes at once what the other process has given back, and holds it for a while.
static void victim_run(struct attach_thread *thread)
{
    static const struct sim_wait_reason reason = {"evil", "something to be given back", 0, 0};
    struct held held[HELD] = {{0}};
    for (unsigned turn = 0; evil.threads > 0; turn++) {
        (void)sim_condition_wait(thread->process->server->sim, &evil.gave, SIM_NEVER_PS, &reason);
        held_take(thread, &held[turn % HELD]); // before it makes other gaps itself
        held_give(thread, &held[(turn + 1) % HELD]);
    }
    sim_thread_sleep(thread->process->server->sim, 100 * SIM_PS_PER_US);
    for (unsigned i = 0; i < HELD; i++) {
        held_give(thread, &held[i]);
    }
}

static void asker_run(void *arg)
{
    struct attach_thread *thread = arg;
    bool victim = thread->process != thread->process->server->processes->next;
    if (victim && thread->index == 0) {
        victim_run(thread);
    } else if (!victim) {
        evil_run(thread);
    }
    sim_t *sim = thread->process->server->sim;
    askers_leave(thread); // and what the process had is given back
    evil.threads -= !victim;
    sim_condition_signal(sim, &evil.gave);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct askers askers;
    char why[4096] = "";
    input = (struct fuzz_input){data, size};
    memset(&evil, 0, sizeof evil);
    evil.threads = ASKER_THREADS;
    sim_condition_init(&evil.gave);
    askers_init(&askers, TCASIM_SOURCE_DIR "/tests/support/pair.yaml", asker_run);
    bool clean = askers_run(&askers, why, sizeof why);
    FUZZ_HOLDS(clean, "%s", why);
    askers_fini(&askers);
    return 0;
}
