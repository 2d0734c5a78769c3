// Requests of two hostile processes of one node with two threads each, against a machine with a board, GPUs and an HCA:
// objects of every kind, named by anybody, with waits. Whatever they ask, every thread ends with its process, all that
// they had is given back, and no packet is left.
#include <string.h>

#include "fuzz.h"
#include "models/hca/abi/hca_abi.h"
#include "tests/support/askers.h"

// A longer read of a BAR takes seconds of the processor: more of the same packets.
enum { KNOWN = 32, OPS_MAX = 120, READ_BYTES_MAX = 1024 };
#define EVERY_ACCESS 0xfu

static struct fuzz_input input;
static uint64_t known[KNOWN]; // addresses and offsets that requests returned
static unsigned known_next, ops;

static uint64_t address(void)
{
    uint64_t base = fuzz_below(&input, 4) == 0 ? ASKERS_MEMORY : known[fuzz_below(&input, KNOWN)];
    return base + (fuzz_below(&input, 4) == 0 ? fuzz_take(&input, 2) : fuzz_below(&input, 8) * 512u);
}

static uint64_t number(void)
{
    switch (fuzz_below(&input, 8)) {
    case 0:
        return fuzz_take(&input, 8);
    case 1:
        return UINT64_MAX - fuzz_take(&input, 1);
    case 2:
        return UINT64_C(1) << fuzz_below(&input, 64);
    case 3:
    case 4:
        return address();
    }
    return fuzz_below(&input, 16);
}

// Mostly few: a copy of many takes the time of a hundred cases, and is more of the same packets.
static uint64_t bytes(void)
{
    if (fuzz_below(&input, 4) == 0) {
        return number();
    }
    return UINT64_C(64) << (fuzz_below(&input, 32) == 0 ? 12 : fuzz_below(&input, 8));
}

// --- commands of the HCA ---------------------------------------------------------------------------------------------

static uint32_t small(void)
{
    return fuzz_below(&input, 8);
}

static uint32_t entries(void)
{
    return fuzz_below(&input, 8) == 0 ? (uint32_t)number() : 1u << fuzz_below(&input, 8);
}

static uint32_t stride(void)
{
    return fuzz_below(&input, 8) == 0 ? (uint32_t)number() : 64u << fuzz_below(&input, 3);
}

static struct hca_qp_init qp_init(void)
{
    return (struct hca_qp_init){.type = small(),
                                .eqn = small(),
                                .pdn = small(),
                                .uar = small(),
                                .xrcdn = small(),
                                .send_cqn = small(),
                                .receive_cqn = small(),
                                .srqn = small() / 2,
                                .send_base = address(),
                                .send_entries = entries(),
                                .send_stride_bytes = stride(),
                                .receive_base = address(),
                                .receive_record = address(),
                                .receive_entries = entries(),
                                .receive_stride_bytes = stride()};
}

static struct hca_qp_modify qp_modify(void)
{
    static const uint32_t masks[] = {HCA_QP_STATE | HCA_QP_PORT | HCA_QP_ACCESS,
                                     HCA_QP_STATE | HCA_QP_PATH | HCA_QP_PATH_MTU | HCA_QP_DEST_QPN |
                                         HCA_QP_RECEIVE_PSN | HCA_QP_MAX_DEST_RD | HCA_QP_MIN_RNR_TIMER,
                                     HCA_QP_STATE | HCA_QP_TIMEOUT | HCA_QP_RETRY_COUNT | HCA_QP_RNR_RETRY |
                                         HCA_QP_SEND_PSN | HCA_QP_MAX_RD_ATOMIC,
                                     HCA_QP_STATE};
    uint32_t which = fuzz_below(&input, 5);
    struct hca_qp_modify modify = {.mask = which < 4 ? masks[which] : (uint32_t)fuzz_take(&input, 4),
                                   .attr = {.state = small(),
                                            .access = EVERY_ACCESS,
                                            .dest_qpn = small(),
                                            .path_mtu_bytes = 256u << fuzz_below(&input, 5),
                                            .dlid = (uint16_t)small(),
                                            .port = 1,
                                            .timeout = 1,
                                            .retry_count = 1,
                                            .rnr_retry = 1,
                                            .max_rd_atomic = 1,
                                            .max_dest_rd_atomic = 1}};
    if (fuzz_below(&input, 8) == 0) {
        fuzz_fill(&input, &modify.attr, sizeof modify.attr);
    }
    return modify;
}

static void command_make(struct hca_command *command)
{
    command->id = fuzz_below(&input, HCA_COMMANDS + 1);
    command->number = fuzz_below(&input, 8) == 0 ? (uint32_t)number() : small();
    switch (command->id) {
    case HCA_CMD_MR_REGISTER:
        command->mr_register = (struct hca_mr_init){
            .pdn = small(), .iova = address(), .bytes = bytes(), .access = small() * 2 + 1, .bus_address = address()};
        command->mr_register.bus_address = small() < 4 ? 0 : command->mr_register.bus_address;
        return;
    case HCA_CMD_EQ_CREATE:
        command->eq_create = (struct hca_eq_init){.base = address(), .record = address(), .entries = entries()};
        return;
    case HCA_CMD_CQ_CREATE:
        command->cq_create = (struct hca_cq_init){
            .eqn = small(), .uar = small(), .base = address(), .record = address(), .entries = entries()};
        return;
    case HCA_CMD_CQ_RESIZE:
        command->cq_resize.base = address();
        command->cq_resize.entries = entries();
        return;
    case HCA_CMD_SRQ_CREATE:
        command->srq_create = (struct hca_srq_init){.eqn = small(),
                                                    .pdn = small(),
                                                    .xrcdn = small(),
                                                    .cqn = small(),
                                                    .base = address(),
                                                    .record = address(),
                                                    .entries = entries(),
                                                    .stride_bytes = stride()};
        return;
    case HCA_CMD_QP_CREATE:
        command->qp_create = qp_init();
        return;
    case HCA_CMD_QP_MODIFY:
        command->qp_modify = qp_modify();
        return;
    default:
        fuzz_fill(&input, &command->qp_create, sizeof command->qp_create);
    }
}

// --- requests --------------------------------------------------------------------------------------------------------

static void work_make(struct backend_gpu_work *work)
{
    *work = (struct backend_gpu_work){.kind = fuzz_below(&input, 10),
                                      .device_address = address(),
                                      .other_address = address(),
                                      .peer = fuzz_below(&input, 4),
                                      .bytes = bytes(),
                                      .rows = fuzz_below(&input, 4) == 0 ? number() : 1 + small(),
                                      .device_pitch = bytes(),
                                      .other_pitch = bytes(),
                                      .value = 1,
                                      .duration_ns = fuzz_below(&input, 65536),
                                      .queue = small(),
                                      .ticket = small()};
    work->memory_bytes = fuzz_below(&input, 16) == 0 ? number() : 0;
    work->flops = fuzz_below(&input, 16) == 0 ? number() : 0;
}

// Requests of the program's side alone: they would take real time here.
static bool is_of_programs(uint32_t op)
{
    return op == ATTACH_OP_THREAD || op == ATTACH_OP_THREAD_EXIT || op == ATTACH_OP_EXEC || op == ATTACH_OP_CHILD ||
           op == ATTACH_OP_PROCESS_EXIT;
}

static void words_make(struct attach_request *request)
{
    uint64_t words[8];
    for (unsigned i = 0; i < 8; i++) {
        words[i] = number();
    }
    memcpy(&request->args, words, sizeof words);
}

// Values at which a request is likely to do something.
static void likely_make(union attach_args *args, uint32_t op)
{
    switch (op) {
    case ATTACH_OP_ALLOC:
        args->alloc.bytes = bytes();
        break;
    case ATTACH_OP_FREE:
        args->free.bus_address = address();
        break;
    case ATTACH_OP_GPU_ALLOC:
        args->gpu_alloc = (struct attach_args_gpu_alloc){fuzz_below(&input, 2), bytes()};
        break;
    case ATTACH_OP_GPU_FREE:
        args->gpu_free = (struct attach_args_gpu_free){fuzz_below(&input, 2), address()};
        break;
    case ATTACH_OP_GPU_PIN:
        args->gpu_pin = (struct attach_args_gpu_pin){fuzz_below(&input, 2), address(), bytes()};
        break;
    case ATTACH_OP_GPU_UNPIN:
        args->gpu_unpin = (struct attach_args_gpu_unpin){fuzz_below(&input, 2), address()};
        break;
    case ATTACH_OP_GPU_QUEUE_CREATE:
        args->gpu_queue_create.gpu = fuzz_below(&input, 2);
        break;
    case ATTACH_OP_GPU_QUEUE_DESTROY:
        args->gpu_queue_destroy = (struct attach_args_gpu_queue_destroy){fuzz_below(&input, 2), small()};
        break;
    case ATTACH_OP_GPU_POLL:
    case ATTACH_OP_GPU_WAIT:
        args->gpu_poll = (struct attach_args_gpu_poll){fuzz_below(&input, 2), small(), small(), fuzz_below(&input, 2)};
        break;
    }
}

// Times that the requests of all cases together can wait for: SystemC's clock goes on from one case to the next.
static void deadline_limit(struct attach_request *request, uint64_t now_ps)
{
    bool never = fuzz_below(&input, 4) == 0;
    uint64_t deadline_ps = never ? SIM_NEVER_PS : now_ps + fuzz_take(&input, 4);
    if (request->op == ATTACH_OP_WAIT) {
        request->args.wait.deadline_ps = deadline_ps;
    } else if (request->op == ATTACH_OP_FUTEX_WAIT) {
        request->args.futex_wait.deadline_ps = deadline_ps;
    } else if (request->op == ATTACH_OP_WAIT_WORD) {
        request->args.wait_word.timeout_ns = never ? 0 : 1 + fuzz_take(&input, 3);
    }
}

static void request_make(struct attach_request *request, uint64_t now_ps)
{
    memset(request, 0, sizeof *request);
    request->op = fuzz_below(&input, 3) == 0 ? ATTACH_OP_HCA_COMMAND : fuzz_below(&input, ATTACH_OPS + 1);
    if (is_of_programs(request->op)) {
        request->op = ATTACH_OP_NOTHING;
    }
    if (request->op == ATTACH_OP_HCA_COMMAND) {
        command_make(&request->args.hca_command.command);
    } else if (request->op == ATTACH_OP_GPU_SUBMIT) {
        request->args.gpu_submit.gpu = fuzz_below(&input, 2);
        request->args.gpu_submit.queue = small();
        work_make(&request->args.gpu_submit.work);
    } else {
        words_make(request);
        if (fuzz_below(&input, 8) != 0) {
            likely_make(&request->args, request->op);
        }
    }
    deadline_limit(request, now_ps);
    if (request->op == ATTACH_OP_READ_COMBINED && request->args.read_combined.bytes < UINT32_MAX) {
        request->args.read_combined.bytes %= READ_BYTES_MAX + 1;
    }
    if (request->op == ATTACH_OP_POLL) {
        request->args.poll.polled = (struct attach_polled){0};
    }
}

static void known_add(uint64_t value)
{
    known[known_next++ % KNOWN] = value;
}

static void reply_note(const struct attach_thread *thread, const struct attach_request *request)
{
    const union attach_reply *reply = &thread->slot->reply;
    switch (request->op) {
    case ATTACH_OP_ALLOC:
        known_add(reply->alloc.bus_address);
        break;
    case ATTACH_OP_GPU_ALLOC:
        known_add(reply->gpu_alloc.address);
        break;
    case ATTACH_OP_GPU_PIN:
        known_add(reply->gpu_pin.offset);
        known_add(reply->gpu_pin.bus_address);
        break;
    }
}

static void asker_run(void *arg)
{
    struct attach_thread *thread = arg;
    struct attach_request request;
    while (input.size > 0 && ops < OPS_MAX && !thread->process->ended) {
        ops++;
        request_make(&request, sim_now_ps(thread->process->server->sim));
        if (askers_request(thread, &request) >= 0) {
            reply_note(thread, &request);
        }
        sim_thread_sleep(thread->process->server->sim, fuzz_below(&input, 64) * SIM_PS_PER_NS * 100);
    }
    askers_leave(thread);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct askers askers;
    char why[4096] = "";
    input = (struct fuzz_input){data, size};
    memset(known, 0, sizeof known);
    known_next = ops = 0;
    askers_init(&askers, TCASIM_SOURCE_DIR "/tests/support/pair.yaml", asker_run);
    bool clean = askers_run(&askers, why, sizeof why);
    FUZZ_HOLDS(clean, "%s", why);
    askers_fini(&askers);
    return 0;
}
