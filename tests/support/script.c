#include "tests/support/script.h"

#include "tests/shim/test.h"

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
