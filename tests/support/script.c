#include "tests/support/script.h"

#include "tests/shim/test.h"

enum { PAGE_BYTES = 4096 };

static struct {
    struct askers askers;
    const struct script *script;
} running;

static void thread_run(void *arg)
{
    struct attach_thread *thread = arg;
    const struct script *script = running.script;
    bool first = thread->process == running.askers.processes[0];
    void (*part)(struct attach_thread *) = !first                 ? (thread->index == 0 ? script->second : NULL)
                                           : (thread->index == 0) ? script->first
                                                                  : script->first_too;
    if (part != NULL) {
        part(thread);
    }
    askers_leave(thread);
}

void script_run(const struct script *script)
{
    char why[4096] = "";
    running.script = script;
    askers_init(&running.askers, TCASIM_SOURCE_DIR "/tests/support/pair.yaml", thread_run);
    EXPECT_TRUE(askers_run(&running.askers, why, sizeof why));
    EXPECT_STREQ(why, "");
    askers_fini(&running.askers);
}

void script_sleep_until_us(const struct attach_thread *thread, uint64_t us)
{
    sim_t *sim = thread->process->server->sim;
    sim_thread_sleep(sim, us * SIM_PS_PER_US - sim_now_ps(sim));
}

uint64_t script_now_us(const struct attach_thread *thread)
{
    return sim_now_ps(thread->process->server->sim) / SIM_PS_PER_US;
}

int64_t script_request(struct attach_thread *thread, enum attach_op op, const union attach_args *args)
{
    const struct attach_request request = {.op = op, .args = *args};
    return askers_request(thread, &request);
}

uint64_t script_pinned(struct attach_thread *thread, uint64_t bytes)
{
    EXPECT_EQ(script_request(thread, ATTACH_OP_ALLOC, &(union attach_args){.alloc.bytes = bytes}), 0);
    return thread->slot->reply.alloc.bus_address;
}

int64_t script_free(struct attach_thread *thread, uint64_t bus_address)
{
    return script_request(thread, ATTACH_OP_FREE, &(union attach_args){.free.bus_address = bus_address});
}

int64_t script_command(struct attach_thread *thread, struct hca_command *command)
{
    int64_t status =
        script_request(thread, ATTACH_OP_HCA_COMMAND, &(union attach_args){.hca_command.command = *command});
    *command = thread->slot->reply.hca_command.command;
    return status;
}

uint32_t script_create(struct attach_thread *thread, struct hca_command command)
{
    EXPECT_EQ(script_command(thread, &command), 0);
    return command.number;
}

void script_device_writes(const struct attach_thread *thread, uint64_t bus_address, uint32_t bytes)
{
    static const unsigned char zeros[256];
    EXPECT_LE(bytes, sizeof zeros);
    EXPECT_TRUE(host_memory_pcie_ops.write(thread->backend.memory, bus_address, zeros, bytes));
}

// --- objects ---------------------------------------------------------------------------------------------------------

struct script_queues script_queues(struct attach_thread *thread)
{
    struct script_queues queues = {.memory = script_pinned(thread, 2 * PAGE_BYTES)};
    queues.pd = script_create(thread, (struct hca_command){.id = HCA_CMD_PD_CREATE});
    queues.uar = script_create(thread, (struct hca_command){.id = HCA_CMD_UAR_ALLOC});
    queues.eq = script_create(
        thread,
        (struct hca_command){.id = HCA_CMD_EQ_CREATE,
                             .eq_create = {.base = queues.memory, .record = queues.memory + 1024, .entries = 16}});
    queues.cq = script_create(thread, (struct hca_command){.id = HCA_CMD_CQ_CREATE,
                                                           .cq_create = {.eqn = queues.eq,
                                                                         .uar = queues.uar,
                                                                         .base = queues.memory + 2048,
                                                                         .record = queues.memory + 1032,
                                                                         .entries = 16}});
    return queues;
}

int64_t script_pair(struct attach_thread *thread, const struct script_queues *own, uint32_t send_cq,
                    uint32_t receive_cq)
{
    struct hca_command command = {.id = HCA_CMD_QP_CREATE,
                                  .qp_create = {.type = HCA_RC,
                                                .eqn = own->eq,
                                                .pdn = own->pd,
                                                .uar = own->uar,
                                                .send_cqn = send_cq,
                                                .receive_cqn = receive_cq,
                                                .srqn = HCA_NO_SRQ,
                                                .send_base = own->memory + PAGE_BYTES,
                                                .send_entries = 16,
                                                .send_stride_bytes = 64,
                                                .receive_base = own->memory + PAGE_BYTES + 2048,
                                                .receive_record = own->memory + 1040,
                                                .receive_entries = 16,
                                                .receive_stride_bytes = 64}};
    return script_command(thread, &command);
}

uint64_t script_device_memory(struct attach_thread *thread, uint32_t gpu, uint64_t bytes)
{
    const union attach_args args = {.gpu_alloc = {gpu, bytes}};
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_ALLOC, &args), 0);
    return thread->slot->reply.gpu_alloc.address;
}

uint32_t script_gpu_queue(struct attach_thread *thread, uint32_t gpu)
{
    EXPECT_EQ(script_request(thread, ATTACH_OP_GPU_QUEUE_CREATE, &(union attach_args){.gpu_queue_create.gpu = gpu}), 0);
    return thread->slot->reply.gpu_queue_create.queue;
}

int64_t script_submit(struct attach_thread *thread, uint32_t gpu, uint32_t queue, const struct backend_gpu_work *work)
{
    return script_request(thread, ATTACH_OP_GPU_SUBMIT, &(union attach_args){.gpu_submit = {gpu, queue, *work}});
}
