#include "tests/support/askers.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/test.h"

#define PINNED_PROBE_BYTES 4096u

// --- processes that sleep --------------------------------------------------------------------------------------------

static pid_t sleepers[ASKERS];

static void sleeper_main(pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(1);
    }
    for (;;) {
        (void)pause();
    }
}

// A run of attached programs in this process has ended them with all its children.
static bool sleeps(pid_t sleeper)
{
    return sleeper != 0 && waitpid(sleeper, NULL, WNOHANG) == 0;
}

// They inherit their memory, so it is there as soon as they are.
static void sleepers_start(void)
{
    pid_t parent = getpid();
    void *memory = mmap((void *)(uintptr_t)ASKERS_MEMORY, ASKERS_MEMORY_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    ASSERT_NE((uintptr_t)memory, (uintptr_t)MAP_FAILED);
    for (unsigned i = 0; i < ASKERS; i++) {
        if (sleeps(sleepers[i])) {
            continue;
        }
        sleepers[i] = fork();
        if (sleepers[i] == 0) {
            sleeper_main(parent);
        }
        ASSERT_GT(sleepers[i], 0);
    }
    (void)munmap(memory, ASKERS_MEMORY_BYTES);
}

// --- the run ---------------------------------------------------------------------------------------------------------

static const struct plat_backend_inproc *node_of(const struct askers *askers)
{
    return plat_machine_backend(askers->server.machine, 0);
}

// Where the next allocation of pinned memory would be. What is freed is given away again, so this tells whether all was
// freed.
static uint64_t pinned_probe(const struct askers *askers)
{
    uint64_t address = 0;
    EXPECT_EQ(host_memory_alloc(node_of(askers)->memory, PINNED_PROBE_BYTES, &address), SIM_OK);
    host_memory_free(node_of(askers)->memory, address);
    return address;
}

static void process_start(struct askers *askers, unsigned index, void (*body)(void *attach_thread))
{
    int sockets[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, sockets), 0);
    struct attach_reach reach = {.pid = sleepers[index], .pidfd = (int)syscall(SYS_pidfd_open, sleepers[index], 0)};
    attach_reach_note(&reach);
    struct attach_process *process = attach_process_create(&askers->server, 0, &reach, sockets[0]);
    ASSERT_NOT_NULL(process);
    process->expected = true;
    askers->processes[index] = process;
    askers->programs[index] = sockets[1];
    int segment = attach_process_segment(process);
    ASSERT_GE(segment, 0);
    close(segment);
    for (unsigned thread = 0; thread < ASKER_THREADS; thread++) {
        ASSERT_TRUE(attach_thread_start(process, thread, body));
    }
}

// Loaded once: a program has many askers of one scenario.
static struct scn_scenario *scenario_of(const char *path)
{
    static struct scn_scenario *kept;
    static const char *kept_path;
    if (kept == NULL || strcmp(kept_path, path) != 0) {
        const struct scn_load_options options = {.configs_dir = TCASIM_SOURCE_DIR "/configs"};
        struct scn_messages messages = {0};
        scn_free(kept);
        kept = NULL;
        EXPECT_EQ(scn_load(path, &options, &kept, &messages), SIM_OK);
        scn_messages_free(&messages);
        kept_path = path;
    }
    return kept;
}

void askers_init(struct askers *askers, const char *scenario, void (*body)(void *attach_thread))
{
    static char directory[] = "/tmp/tcasim-askers"; // only its last part is used, as a name
    memset(askers, 0, sizeof *askers);
    sleepers_start();
    askers->scenario = scenario_of(scenario);
    ASSERT_NOT_NULL(askers->scenario);
    struct attach_server *server = &askers->server;
    *server = (struct attach_server){.scenario = askers->scenario,
                                     .options = &askers->options,
                                     .result = &askers->result,
                                     .listener = {.fd = -1},
                                     .scratch = {.alive = -1},
                                     .network = {.fd = -1},
                                     .tokens = {.bells_fd = -1},
                                     .watches = -1};
    snprintf(server->scratch.directory, sizeof server->scratch.directory, "%s", directory);
    askers->options.any_cpu = true;
    askers->scenario->time_limit_ps = askers->scenario->silence_limit_ps = 0;
    char why[256] = "";
    const struct plat_options machine = {0};
    ASSERT_EQ(plat_machine_create(askers->scenario, &machine, why, sizeof why, &server->machine), SIM_OK);
    server->sim = plat_machine_sim(server->machine);
    server->observe = observe_create(server->sim, &(struct observe_options){0});
    ASSERT_NOT_NULL(server->observe);
    sim_condition_init(&server->launch.process_ended);
    sim_condition_init(&server->launch.all_external);
    attach_settle_init(server);
    ASSERT_TRUE(attach_watches_init(server));
    ASSERT_TRUE(attach_tokens_init(server));
    askers->first_pinned = pinned_probe(askers);
    for (unsigned i = 0; i < ASKERS; i++) {
        process_start(askers, i, body);
    }
}

static bool all_ended(const struct askers *askers)
{
    return askers->server.processes == NULL;
}

bool askers_run(struct askers *askers, char *why, size_t why_bytes)
{
    struct attach_server *server = &askers->server;
    enum sim_run_outcome outcome = sim_run(server->sim);
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        attach_process_ended(process);
    }
    if (!all_ended(askers)) {
        outcome = sim_run(server->sim);
    }
    if (outcome != SIM_RUN_DONE || !all_ended(askers)) {
        size_t begun = (size_t)snprintf(why, why_bytes, "outcome %d, ", (int)outcome);
        (void)sim_describe_waiters(server->sim, why + begun, why_bytes - begun);
        return false;
    }
    unsigned packets = plat_machine_live_packets(server->machine);
    uint64_t probe = pinned_probe(askers);
    bool clean = packets == 0 && probe == askers->first_pinned;
    if (!clean) {
        snprintf(why, why_bytes, "%u packets are left; the first free memory is 0x%llx, not 0x%llx", packets,
                 (unsigned long long)probe, (unsigned long long)askers->first_pinned);
    }
    return clean;
}

void askers_fini(struct askers *askers)
{
    struct attach_server *server = &askers->server;
    while (server->processes != NULL) {
        struct attach_process *process = server->processes;
        server->processes = process->next;
        attach_process_destroy(process);
    }
    for (unsigned i = 0; i < ASKERS; i++) {
        close(askers->programs[i]);
    }
    attach_tokens_fini(server);
    close(server->watches);
    sim_event_cancel(server->sim, &server->settling.event);
    observe_destroy(server->observe);
    plat_machine_destroy(server->machine);
    free(server->ids.list);
}

// --- requests --------------------------------------------------------------------------------------------------------

static void descriptors_close(int socket)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * ATTACH_WATCHES_MAX)];
    } control;
    char byte[16];
    struct iovec vector = {byte, sizeof byte};
    struct msghdr header = {.msg_iov = &vector, .msg_iovlen = 1};
    do {
        header.msg_control = &control;
        header.msg_controllen = sizeof control;
        if (recvmsg(socket, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) <= 0) {
            return;
        }
        const struct cmsghdr *part = CMSG_FIRSTHDR(&header);
        for (size_t i = 0; part != NULL && CMSG_LEN(i * sizeof(int)) < part->cmsg_len; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            close(fd);
        }
    } while (true);
}

static struct askers *askers_of(const struct attach_thread *thread)
{
    return (struct askers *)((char *)thread->process->server - offsetof(struct askers, server));
}

int64_t askers_request(struct attach_thread *thread, const struct attach_request *request)
{
    const struct askers *askers = askers_of(thread);
    attach_request_begin(thread, request);
    int64_t result = attach_request_do(thread, request);
    attach_request_end(thread, request);
    for (unsigned i = 0; i < ASKERS; i++) {
        if (askers->processes[i] == thread->process) {
            descriptors_close(askers->programs[i]);
        }
    }
    return result;
}

void askers_leave(struct attach_thread *thread)
{
    struct askers *askers = askers_of(thread);
    struct attach_process *process = thread->process;
    if (process->thread_count == 1) {
        attach_process_ended(process);
        for (unsigned i = 0; i < ASKERS; i++) {
            askers->processes[i] = askers->processes[i] == process ? NULL : askers->processes[i];
        }
    }
    attach_thread_leave(thread);
}
