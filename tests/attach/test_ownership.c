// A random walk over the objects of two processes, checked against a simple reference of docs/ownership.md: who finds
// what, what is busy, and when memory is given to somebody else.
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/kernel/random.h"
#include "tests/shim/test.h"
#include "tests/support/askers.h"

enum { SEEDS = 20, STEPS = 3000, OBJECTS = 400, NAMES = 6, OF_A_KIND = 6, PAGE = 4096, GPUS = 2 };

// --- the reference ---------------------------------------------------------------------------------------------------

struct object {
    enum attach_object_kind kind; // OBJECT_KINDS: none
    const struct attach_process *owner;
    uint32_t gpu;
    uint64_t number, bus_address, bytes;
    bool freed; // out of reach, but still named
    struct object *names[NAMES];
    unsigned name_count;
};

static struct walk {
    struct askers askers;
    struct sim_random random;
    struct object objects[OBJECTS];
    unsigned steps;
    bool busy; // a thread is in its step
} walk;

static uint32_t below(uint32_t bound)
{
    return (uint32_t)sim_random_below(&walk.random, bound);
}

static unsigned users_of(const struct object *object)
{
    unsigned users = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        const struct object *other = &walk.objects[i];
        for (unsigned name = 0; name < other->name_count && other->kind != OBJECT_KINDS; name++) {
            users += other->names[name] == object;
        }
    }
    return users;
}

static void forget(struct object *object)
{
    unsigned count = object->name_count;
    object->kind = OBJECT_KINDS;
    for (unsigned i = 0; i < count; i++) {
        if (object->names[i]->freed && users_of(object->names[i]) == 0) {
            forget(object->names[i]);
        }
    }
}

// An object of that kind, most often one within reach of the process; NULL: there is none.
static struct object *choose(const struct attach_process *process, enum attach_object_kind kind)
{
    bool own = below(8) != 0;
    struct object *found = NULL;
    unsigned count = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *object = &walk.objects[i];
        if (object->kind == kind && (!own || (object->owner == process && !object->freed)) && below(++count) == 0) {
            found = object;
        }
    }
    return found;
}

static unsigned count_of(const struct attach_process *process, enum attach_object_kind kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < OBJECTS; i++) {
        count += walk.objects[i].kind == kind && walk.objects[i].owner == process;
    }
    return count;
}

// A new object and what it will name. `reachable`: so far, the process may name all of that.
struct plan {
    const struct attach_process *process;
    struct object object;
    bool reachable, memory_reachable;
};

static uint32_t name(struct plan *plan, enum attach_object_kind kind)
{
    struct object *object = choose(plan->process, kind);
    if (object == NULL || object->owner != plan->process) {
        plan->reachable = false;
        return object != NULL ? (uint32_t)object->number : 200;
    }
    plan->object.names[plan->object.name_count++] = object;
    return (uint32_t)object->number;
}

// A range in pinned memory; events: of the host alone.
static uint64_t name_memory(struct plan *plan, uint64_t bytes, bool host)
{
    struct object *memory = choose(plan->process, host || below(4) != 0 ? OBJECT_PINNED : OBJECT_GPU_PIN);
    if (memory == NULL || memory->owner != plan->process || memory->freed) {
        plan->memory_reachable = false;
        return memory != NULL ? memory->bus_address : UINT64_C(1) << 40;
    }
    uint64_t room = memory->bytes - bytes + 1, at = below((uint32_t)(room < PAGE ? room : PAGE)) & ~UINT64_C(63);
    plan->object.names[plan->object.name_count++] = memory;
    return memory->bus_address + at;
}

// --- requests --------------------------------------------------------------------------------------------------------

static const enum hca_command_id creates[OBJECT_KINDS] = {
    [OBJECT_QP] = HCA_CMD_QP_CREATE,  [OBJECT_SRQ] = HCA_CMD_SRQ_CREATE,   [OBJECT_CQ] = HCA_CMD_CQ_CREATE,
    [OBJECT_EQ] = HCA_CMD_EQ_CREATE,  [OBJECT_MR] = HCA_CMD_MR_REGISTER,   [OBJECT_PD] = HCA_CMD_PD_CREATE,
    [OBJECT_UAR] = HCA_CMD_UAR_ALLOC, [OBJECT_XRCD] = HCA_CMD_XRCD_CREATE,
};
static const enum hca_command_id destroys[OBJECT_KINDS] = {
    [OBJECT_QP] = HCA_CMD_QP_DESTROY, [OBJECT_SRQ] = HCA_CMD_SRQ_DESTROY,   [OBJECT_CQ] = HCA_CMD_CQ_DESTROY,
    [OBJECT_EQ] = HCA_CMD_EQ_DESTROY, [OBJECT_MR] = HCA_CMD_MR_DEREGISTER,  [OBJECT_PD] = HCA_CMD_PD_DESTROY,
    [OBJECT_UAR] = HCA_CMD_UAR_FREE,  [OBJECT_XRCD] = HCA_CMD_XRCD_DESTROY,
};

static void command_plan(struct plan *plan, struct hca_command *command)
{
    command->id = creates[plan->object.kind];
    switch (plan->object.kind) {
    case OBJECT_EQ:
        command->eq_create = (struct hca_eq_init){.base = name_memory(plan, 16 * sizeof(struct hca_eqe), true),
                                                  .record = name_memory(plan, 8, true),
                                                  .entries = 16};
        break;
    case OBJECT_CQ:
        command->cq_create = (struct hca_cq_init){.eqn = name(plan, OBJECT_EQ),
                                                  .uar = name(plan, OBJECT_UAR),
                                                  .base = name_memory(plan, 16 * sizeof(struct hca_cqe), false),
                                                  .record = name_memory(plan, 8, false),
                                                  .entries = 16};
        break;
    case OBJECT_SRQ:
        command->srq_create = (struct hca_srq_init){.eqn = name(plan, OBJECT_EQ),
                                                    .pdn = name(plan, OBJECT_PD),
                                                    .xrcdn = HCA_NO_XRCD,
                                                    .base = name_memory(plan, 16 * 64, false),
                                                    .record = name_memory(plan, 8, false),
                                                    .entries = 16,
                                                    .stride_bytes = 64};
        break;
    case OBJECT_QP:
        command->qp_create = (struct hca_qp_init){.type = HCA_RC,
                                                  .eqn = name(plan, OBJECT_EQ),
                                                  .pdn = name(plan, OBJECT_PD),
                                                  .uar = name(plan, OBJECT_UAR),
                                                  .send_cqn = name(plan, OBJECT_CQ),
                                                  .srqn = name(plan, OBJECT_SRQ),
                                                  .send_base = name_memory(plan, 16 * 64, false),
                                                  .send_entries = 16,
                                                  .send_stride_bytes = 64};
        command->qp_create.receive_cqn = command->qp_create.send_cqn;
        break;
    case OBJECT_MR:
        command->mr_register = (struct hca_mr_init){
            .pdn = name(plan, OBJECT_PD), .bytes = 1000, .access = 1, .bus_address = name_memory(plan, 1000, false)};
        command->mr_register.iova = 16 * PAGE + command->mr_register.bus_address % PAGE;
        break;
    default:
        break;
    }
}

// The request that creates an object of that kind; plan: what it names.
static void creation_plan(struct plan *plan, struct attach_request *request)
{
    struct object *object = &plan->object;
    union attach_args *args = &request->args;
    switch (object->kind) {
    case OBJECT_PINNED:
        object->bytes = (1 + below(3)) * PAGE;
        request->op = ATTACH_OP_ALLOC;
        args->alloc.bytes = object->bytes - below(PAGE);
        break;
    case OBJECT_GPU_QUEUE:
        request->op = ATTACH_OP_GPU_QUEUE_CREATE;
        args->gpu_queue_create.gpu = object->gpu = below(GPUS);
        break;
    case OBJECT_GPU_MEMORY:
        object->bytes = (1 + below(2)) * UINT64_C(65536);
        request->op = ATTACH_OP_GPU_ALLOC;
        args->gpu_alloc = (struct attach_args_gpu_alloc){object->gpu = below(GPUS), object->bytes};
        break;
    case OBJECT_GPU_PIN: {
        request->op = ATTACH_OP_GPU_PIN;
        (void)name(plan, OBJECT_GPU_MEMORY);
        const struct object *memory = plan->reachable ? object->names[0] : NULL;
        object->bytes = PAGE;
        object->gpu = memory != NULL ? memory->gpu : 0;
        args->gpu_pin = (struct attach_args_gpu_pin){object->gpu, memory != NULL ? memory->number : 1, PAGE};
        break;
    }
    case OBJECT_BOARD:
        request->op = ATTACH_OP_BOARD_CLAIM;
        break;
    default:
        request->op = ATTACH_OP_HCA_COMMAND;
        command_plan(plan, &args->hca_command.command);
    }
}

static int creation_expected(const struct plan *plan)
{
    if (plan->object.kind == OBJECT_BOARD) {
        return count_of(walk.askers.processes[0], OBJECT_BOARD) + count_of(walk.askers.processes[1], OBJECT_BOARD) >
                       count_of(plan->process, OBJECT_BOARD)
                   ? -EBUSY
                   : 0;
    }
    if (!plan->reachable) {
        return -EINVAL;
    }
    return plan->memory_reachable ? 0 : plan->object.kind == OBJECT_MR ? -EFAULT : -EINVAL;
}

// Numbers and addresses of the new object; memory that anybody has, or that something names, is not given out.
static void creation_note(struct plan *plan, const union attach_reply *reply)
{
    struct object *object = &plan->object;
    object->number = reply->hca_command.command.number;
    if (object->kind == OBJECT_PINNED) {
        object->number = object->bus_address = reply->alloc.bus_address;
        for (unsigned i = 0; i < OBJECTS; i++) {
            const struct object *other = &walk.objects[i];
            if (other->kind == OBJECT_PINNED) {
                EXPECT_GE(other->bus_address - object->bus_address, object->bytes);
                EXPECT_GE(object->bus_address - other->bus_address, other->bytes);
            }
        }
    } else if (object->kind == OBJECT_GPU_QUEUE) {
        object->number = reply->gpu_queue_create.queue;
    } else if (object->kind == OBJECT_GPU_MEMORY) {
        object->number = reply->gpu_alloc.address;
    } else if (object->kind == OBJECT_GPU_PIN) {
        object->number = reply->gpu_pin.offset;
        object->bus_address = reply->gpu_pin.bus_address;
    } else if (object->kind == OBJECT_BOARD) {
        object->number = 0;
        if (count_of(plan->process, OBJECT_BOARD) > 0) {
            return; // it had it already
        }
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (walk.objects[i].kind == OBJECT_KINDS) {
            walk.objects[i] = *object;
            return;
        }
    }
    FAIL("more than %d objects", OBJECTS);
}

static void create(struct attach_thread *thread, enum attach_object_kind kind)
{
    struct plan plan = {.process = thread->process,
                        .object = {.kind = kind, .owner = thread->process},
                        .reachable = true,
                        .memory_reachable = true};
    struct attach_request request;
    memset(&request, 0, sizeof request);
    creation_plan(&plan, &request);
    int expected = creation_expected(&plan);
    TEST_TRACE("%s creates an object of kind %d", thread->name, (int)kind);
    if (EXPECT_EQ(askers_request(thread, &request), expected) && expected == 0) {
        creation_note(&plan, &thread->slot->reply);
    }
}

static void destruction_plan(const struct object *object, struct attach_request *request)
{
    union attach_args *args = &request->args;
    memset(request, 0, sizeof *request);
    switch (object->kind) {
    case OBJECT_PINNED:
        request->op = ATTACH_OP_FREE;
        args->free.bus_address = object->number;
        break;
    case OBJECT_GPU_QUEUE:
        request->op = ATTACH_OP_GPU_QUEUE_DESTROY;
        args->gpu_queue_destroy = (struct attach_args_gpu_queue_destroy){object->gpu, (uint32_t)object->number};
        break;
    case OBJECT_GPU_MEMORY:
        request->op = ATTACH_OP_GPU_FREE;
        args->gpu_free = (struct attach_args_gpu_free){object->gpu, object->number};
        break;
    case OBJECT_GPU_PIN:
        request->op = ATTACH_OP_GPU_UNPIN;
        args->gpu_unpin = (struct attach_args_gpu_unpin){object->gpu, object->number};
        break;
    case OBJECT_BOARD:
        request->op = ATTACH_OP_BOARD_RELEASE;
        break;
    default:
        request->op = ATTACH_OP_HCA_COMMAND;
        args->hca_command.command =
            (struct hca_command){.id = destroys[object->kind], .number = (uint32_t)object->number};
    }
}

// The object that the process destroys when it names the same numbers; NULL: it has none.
static struct object *counterpart(const struct attach_process *process, const struct object *object)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        struct object *own = &walk.objects[i];
        if (own->kind == object->kind && own->owner == process && !own->freed && own->gpu == object->gpu &&
            own->number == object->number) {
            return own;
        }
    }
    return NULL;
}

static void destroy(struct attach_thread *thread, enum attach_object_kind kind)
{
    struct object *chosen = choose(thread->process, kind);
    if (chosen == NULL) {
        return;
    }
    struct attach_request request;
    destruction_plan(chosen, &request);
    struct object *object = counterpart(thread->process, chosen);
    bool stays = object != NULL && users_of(object) > 0;
    int expected = object == NULL ? -EINVAL : stays && kind != OBJECT_PINNED ? -EBUSY : 0;
    TEST_TRACE("%s destroys number 0x%llx of kind %d", thread->name, (unsigned long long)chosen->number, (int)kind);
    if (!EXPECT_EQ(askers_request(thread, &request), expected) || expected != 0) {
        return;
    }
    object->freed = stays;
    if (!stays) {
        forget(object);
    }
}

// --- the walk --------------------------------------------------------------------------------------------------------

static void step(struct attach_thread *thread)
{
    enum attach_object_kind kind = below(OBJECT_KINDS);
    if (below(5) < 3 && count_of(thread->process, kind) < OF_A_KIND) {
        create(thread, kind);
    } else {
        destroy(thread, kind);
    }
}

static void process_forget(const struct attach_process *process)
{
    for (unsigned i = 0; i < OBJECTS; i++) {
        if (walk.objects[i].owner == process) {
            walk.objects[i].kind = OBJECT_KINDS;
        }
    }
}

// The second process ends half way, with all that it has.
static void walker_run(void *arg)
{
    struct attach_thread *thread = arg;
    struct attach_process *process = thread->process;
    bool second = process == walk.askers.processes[1];
    while (walk.steps < (second ? STEPS / 2 : STEPS)) {
        sim_thread_sleep(process->server->sim, (1 + below(20)) * SIM_PS_PER_US);
        if (!walk.busy) {
            TEST_TRACE("step %u", walk.steps);
            walk.busy = true;
            walk.steps++;
            step(thread);
            walk.busy = false;
        }
    }
    while (walk.busy) {
        sim_thread_sleep(process->server->sim, SIM_PS_PER_US);
    }
    bool last = process->thread_count == 1;
    walk.busy = last;
    askers_leave(thread);
    if (last) {
        process_forget(process);
        walk.busy = false;
    }
}

TEST(Ownership, HoldsOnARandomWalkOverTheObjectsOfTwoProcesses)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        TEST_TRACE("seed %llu", (unsigned long long)seed);
        char why[4096] = "";
        memset(&walk, 0, sizeof walk);
        for (unsigned i = 0; i < OBJECTS; i++) {
            walk.objects[i].kind = OBJECT_KINDS;
        }
        sim_random_init(&walk.random, seed, "walk");
        askers_init(&walk.askers, TCASIM_SOURCE_DIR "/tests/support/pair.yaml", walker_run);
        EXPECT_TRUE(askers_run(&walk.askers, why, sizeof why));
        EXPECT_STREQ(why, "");
        askers_fini(&walk.askers);
    }
}
