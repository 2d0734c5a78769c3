// An attached process: what it sees of the machine, and its end.
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "sim/attach/internal.h"
#include "sim/attach/node_files.h"
#include "sim/attach/processor.h"
#include "sim/kernel/random.h"
#include "sim/platform/routes.h"

// The clocks begin at fixed times, so that nothing of the real machine affects a result.
static const uint64_t epoch_realtime_ns = 1388534400u * 1000000000ull; // 2014-01-01
static const uint64_t epoch_monotonic_ns = 1000u * 1000000000ull;      // up for 1000 s

// --- life -----------------------------------------------------------------------------------------------------------

// Of the process, and of the program that it executes.
static uint64_t random_seed(const struct attach_process *process)
{
    const struct attach_server *server = process->server;
    struct sim_random stream;
    char name[64];
    snprintf(name, sizeof name, "process %u program %u under %" PRIu64, process->id, process->image,
             server->options->adversarial ? server->options->adversarial_seed : 0);
    sim_random_init(&stream, server->scenario->seed, name);
    return sim_random_u64(&stream);
}

static void greeting_fill(const struct attach_process *process, struct attach_greeting *greeting)
{
    const struct attach_server *server = process->server;
    const struct plat_backend_inproc *node = plat_machine_backend(server->machine, process->node);
    const struct host_core_config *core = host_core_config(node->core);
    const struct scn_node *config = &server->scenario->nodes[process->node];
    const struct attach_processor *processor = attach_processor_of(config->host.processor);
    *greeting = (struct attach_greeting){
        .mode = server->options->functional ? ATTACH_FUNCTIONAL : ATTACH_TIMED,
        .node_index = process->node,
        .node_count = server->scenario->node_count,
        .process = process->number,
        .simulator = (uint32_t)getpid(),
        .real_percent = server->real_percent,
        .first_bell = process->first_bell,
        .id = process->id,
        .random_seed = random_seed(process),
        .address_base = server->network.address_base,
        .tsc_hz = (uint64_t)processor->mhz * 1000000,
        .epoch_realtime_ns = epoch_realtime_ns,
        .epoch_monotonic_ns = epoch_monotonic_ns,
        .call_ps = core->call_ps,
        .load_ps = core->load_ps,
        .device_line_ps = core->device_line_ps,
        .lock_ps = core->lock_ps,
        .poll_ps = core->poll_ps,
        .copy_bytes_per_us = core->copy_bytes_per_us,
        .interrupt_ps = node->interrupt_ps,
        .timestamp_ps = core->timestamp_ps,
        .compute_scale = config->host.compute == SCN_COMPUTE_SCALED ? config->host.compute_scale : 0,
        .has_board = config->board.given,
        .verbs_chain = config->board.verbs_chain,
        .verbs_completion = config->board.verbs_completion,
        .journal_all = server->notes_all,
        .journal_polls = server->options->explain || server->options->trace_causes,
        .checks = server->options->check,
        .every_poll = server->options->every_poll,
        .has_hca = node->hca != NULL,
        .gpu_count = node->gpus != NULL ? node->gpus->count : 0,
        .routing = plat_routing_of(plat_machine_routes(server->machine), process->node),
    };
    snprintf(greeting->processor, sizeof greeting->processor, "%s", processor->title);
    greeting->processor_signature = attach_processor_signature(processor);
    snprintf(greeting->node, sizeof greeting->node, "%s", config->name);
    for (uint32_t i = 0; i < server->scenario->node_count; i++) {
        snprintf(greeting->hosts[i], sizeof greeting->hosts[i], "%s", server->scenario->nodes[i].name);
    }
    greeting->routing.gpus = (uint8_t)(greeting->gpu_count < PEACH2_GPUS_MAX ? greeting->gpu_count : PEACH2_GPUS_MAX);
    for (unsigned i = 0; i < processor->cores; i++) {
        greeting->processors[i / 8] |= (unsigned char)(1u << i % 8);
    }
    for (int fd = 0; fd < ATTACH_STANDARD_FILES; fd++) {
        struct stat about;
        if (fstat(fd, &about) == 0) {
            greeting->standard_files[fd] = (struct attach_file){about.st_dev, about.st_ino};
        }
    }
    greeting->cache_bytes = (uint64_t)processor->cache_kib * 1024;
    greeting->memory_bytes = config->host.memory_bytes;
    greeting->memory_free_bytes = attach_memory_free_kib(&config->host) * 1024;
    for (unsigned i = 0; i < BACKEND_BARS; i++) {
        greeting->bar_base[i] = node->bars[i].base;
        greeting->bar_bytes[i] = node->bars[i].bytes;
    }
}

// After exec the new program is the same process. NULL: there was no earlier program. A process that has the number of
// an earlier one is another one; that one is over.
static const struct attach_process *predecessor_end(struct attach_server *server, const struct attach_reach *reach)
{
    const struct attach_process *found = NULL;
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        if (process->reach.pid == reach->pid && !process->ended) {
            found = attach_reach_same(&process->reach, reach) ? process : NULL;
            attach_process_ended(process);
        }
    }
    return found;
}

static int program_of(const struct attach_server *server, pid_t pid)
{
    for (uint32_t i = 0; i < server->options->program_count; i++) {
        if (server->launch.pids[i] == pid) {
            return (int)i;
        }
    }
    return -1;
}

struct attach_process *attach_process_create(struct attach_server *server, uint32_t node,
                                             const struct attach_reach *reach, int socket)
{
    struct attach_process *process = calloc(1, sizeof *process);
    if (process == NULL) {
        return NULL;
    }
    const struct attach_process *before = predecessor_end(server, reach);
    uint32_t id = before != NULL ? before->id : attach_ids_take(server);
    if (!attach_ids_note(server, id, reach->pid)) {
        free(process);
        return NULL;
    }
    *process = (struct attach_process){
        .server = server,
        .next = server->processes,
        .node = node,
        .number = before != NULL && before->node == node ? before->number : ++server->launch.numbers[node],
        .id = id,
        .expected = before != NULL && before->expected,
        .image = before != NULL ? before->image + 1 : 1,
        .reach = *reach,
        .socket = socket,
        .program = program_of(server, reach->pid),
        .watch = {attach_memory_written, process},
        .owner = {&attach_memory_ops, process},
        .alarm_ps = SIM_NEVER_PS,
        .first_bell = server->tokens.bells_given,
    };
    attach_owned_init(&process->owns);
    sim_condition_init(&process->caught_up);
    attach_name_read(process);
    process->observed =
        observe_process_begin(server->observe, &(struct observe_identity){.node = server->scenario->nodes[node].name,
                                                                          .number = process->number,
                                                                          .name = process->name,
                                                                          .began_ps = sim_now_ps(server->sim),
                                                                          .tag = process});
    server->tokens.bells_given += ATTACH_SLOTS;
    server->processes = process;
    server->launch.node_processes[node]++;
    return process;
}

int attach_process_segment(struct attach_process *process)
{
    int fd = memfd_create(strrchr(process->server->scratch.directory, '/') + 1, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    // The size is sealed, so that no process can shrink the segment while the simulator uses it.
    if (fd >= 0 && (ftruncate(fd, sizeof *process->segment) != 0 ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        return -1;
    }
    void *segment = mmap(NULL, sizeof *process->segment, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (segment == MAP_FAILED) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    process->segment = segment;
    greeting_fill(process, &process->segment->greeting);
    atomic_store(&process->segment->alarm_ps, SIM_NEVER_PS);
    return fd;
}

void attach_process_destroy(struct attach_process *process)
{
    for (unsigned i = 0; i < ATTACH_SLOTS; i++) {
        attach_thread_destroy(process->threads[i]);
    }
    if (process->segment != NULL) {
        munmap(process->segment, sizeof *process->segment);
    }
    if (process->socket >= 0) {
        attach_connection_close(process->server, &process->reach, process->socket);
    }
    if (process->reach.pidfd >= 0) {
        close(process->reach.pidfd);
    }
    attach_owned_fini(&process->owns);
    attach_memory_destroy(process->memory);
    free(process);
}

// --- its end --------------------------------------------------------------------------------------------------------

void attach_process_ended(struct attach_process *process)
{
    struct attach_server *server = process->server;
    if (process->ended) {
        return;
    }
    process->ended = true;
    server->settling.acts++;
    observe_process_end(process->observed, sim_now_ps(server->sim));
    bool over = attach_over(process->reach.pidfd); // or the process has become another program
    if (over) {
        attach_end_note(process);
    }
    if (over && process->program >= 0) {
        attach_reap(server, process->program);
    }
    host_memory_owner_gone(plat_machine_backend(server->machine, process->node)->memory, &process->owner);
    for (unsigned i = 0; i < ATTACH_SLOTS; i++) {
        struct attach_thread *thread = process->threads[i];
        if (thread != NULL) {
            host_core_abandon(thread->core);
            sim_condition_signal(server->sim, &thread->wait.woken);
        }
    }
}

void attach_process_forget(struct attach_process *process)
{
    struct attach_process **link = &process->server->processes;
    while (*link != process) {
        link = &(*link)->next;
    }
    *link = process->next;
    process->server->launch.node_processes[process->node]--;
    process->server->settling.idle_since_ms = 0; // programs may have waited for this end
    attach_killed_await(process->server);        // the kernel may have ended its children (PR_SET_PDEATHSIG)
    attach_signals_sent(process->server);
    attach_outside_note(process->server, process->expected ? 0 : ATTACH_RUN_OUTSIDE_CHILD);
    attach_outside_wake(process->server, true);
    sim_condition_signal(process->server->sim, &process->server->launch.process_ended);
    attach_process_destroy(process);
}

bool attach_process_check(struct attach_process *process)
{
    bool ends = !process->ended && attach_over(process->reach.pidfd);
    if (ends) {
        attach_process_ended(process);
    }
    return ends;
}

void attach_processes_check(struct attach_server *server)
{
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        attach_outside_note(server, attach_process_check(process) ? ATTACH_RUN_OUTSIDE_EVENT : 0);
    }
}
