// Starts programs on nodes, and notes how they ended.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/attach/internal.h"
#include "verbs-shim/attach/identity.h"

// Status codes as of a shell: the program cannot be executed, it does not exist, or its files cannot be opened.
enum { NOT_EXECUTABLE = 126, NOT_FOUND = 127, NO_FILE = 1 };
#define START_LATEST_PS (100 * SIM_PS_PER_MS)
// Without simulated time: covers what takes some 100 ms of real time while the others run.
#define FREE_START_PS (5 * SIM_PS_PER_MS)

bool attach_over(int pidfd)
{
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return poll(&end, 1, 0) == 1;
}

// --- the child ------------------------------------------------------------------------------------------------------

static bool descriptor_open(int fd, const char *path, int flags)
{
    int opened = path != NULL ? open(path, flags | O_CLOEXEC, 0666) : fd;
    if (opened < 0) {
        fprintf(stderr, "tcasim: %s: %s\n", path, strerror(errno));
        return false;
    }
    return opened == fd || dup2(opened, fd) == fd;
}

// Puts `own` in front of the variable's value, or behind it.
static void path_add(const char *name, const char *own, bool in_front)
{
    const char *others = getenv(name);
    char *value;
    bool alone = others == NULL || others[0] == '\0';
    others = alone ? "" : others;
    if (asprintf(&value, "%s%s%s", in_front ? own : others, alone ? "" : ":", in_front ? others : own) >= 0) {
        (void)setenv(name, value, 1);
    }
}

// Preloads tcasim-attach, or with --check the check library, which loads it. Both paths have the same length, because a
// program's stack begins behind its environment. The world library, if built, also loads tcasim-attach and must come
// before it. The user's libraries come first: what they call is ours.
static void preload(const char *directory, bool gpu_mpi, bool check)
{
    const struct {
        const char *name;
        bool wanted;
    } libraries[] = {{"libtcasim-world.so", true},
                     {"libtcasim-mpi-gpu.so", gpu_mpi},
                     {check ? "/libtcasim-check.so" : "libtcasim-attach.so", true}};
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", directory, libraries[i].name);
        if (libraries[i].wanted && access(path, R_OK) == 0) {
            path_add("LD_PRELOAD", path, false);
        }
    }
}

// What an administrator of the node would have set. What the user has set stays.
static const struct {
    const char *name, *value;
} node_defaults[] = {
    // hwloc takes the node's topology from a file, and loads no plugins: which ones are installed depends on the machine,
    // and some look for displays.
    {"HWLOC_XMLFILE", "/sys/" ATTACH_TOPOLOGY_FILE},
    {"HWLOC_THISSYSTEM", "0"},
    {"HWLOC_PLUGINS_PATH", ""},
    // Debian's Open MPI uses no InfiniBand by itself, and its TCP leaves out the nodes' addresses, since 127.0.0.0/8 is
    // the machine's own elsewhere.
    {"OMPI_MCA_btl", "^uct,ofi"},
    {"OMPI_MCA_btl_openib_allow_ib", "1"},
    {"OMPI_MCA_btl_openib_warn_no_device_params_found", "0"},
    {"OMPI_MCA_btl_tcp_if_include", "eth0"},
    // Computing takes no simulated time: threads that wait actively take the machine's alone, 5 ms for each wait.
    {"OMP_WAIT_POLICY", "passive"},
};

static void defaults_set(const struct attach_server *server, uint32_t node)
{
    for (size_t i = 0; i < sizeof node_defaults / sizeof node_defaults[0]; i++) {
        (void)setenv(node_defaults[i].name, node_defaults[i].value, 0);
    }
    // On the machine MPI has InfiniBand, and the board is for tca.h.
    if (plat_machine_backend(server->machine, node)->hca != NULL) {
        (void)setenv("OMPI_MCA_btl_openib_if_include", "ibsim0", 0);
    }
}

static void environment_set(const struct attach_server *server, const struct attach_program *program)
{
    char folder[ATTACH_SYSFS_BYTES];
    attach_scratch_path(server, folder, sizeof folder);
    (void)setenv("TMPDIR", folder, 1); // mpirun names its folders there after process numbers, the same in each run
    for (size_t i = 0; program->env != NULL && program->env[i] != NULL; i++) {
        (void)putenv(program->env[i]);
    }
    (void)setenv("TCASIM_ATTACH", server->scratch.path, 1);
    (void)unsetenv(ATTACH_REAL_PERCENT_NAME); // a program sees the same environment in each run
    (void)setenv("TCASIM_NODE", server->scenario->nodes[program->node].name, 1);
    (void)setenv("TCASIM_HOME", server->scenario->nodes[program->node].name, 1);
    char sysfs[ATTACH_SYSFS_BYTES];
    attach_sysfs_path(server, program->node, sysfs, sizeof sysfs);
    (void)setenv("TCASIM_SYSFS", sysfs, 1);
    defaults_set(server, program->node);
    if (server->options->library_directory != NULL) {
        char libraries[ATTACH_SYSFS_BYTES];
        attach_libraries_path(server, libraries, sizeof libraries);
        path_add("LD_LIBRARY_PATH", libraries, true);
        path_add("PATH", libraries, true); // for tcasim-rsh
        preload(libraries, program->gpu_mpi, server->options->check);
    }
}

// The same addresses in each run, also for all programs that this one starts. If the machine does not allow it (a
// container may not), results that depend on addresses differ between runs.
static void addresses_fix(void)
{
    int now = personality(0xffffffff);
    if (now != -1) {
        (void)personality((unsigned long)now | ADDR_NO_RANDOMIZE);
    }
}

__attribute__((noreturn)) static void child(const struct attach_server *server, const struct attach_program *program,
                                            pid_t parent)
{
    attach_timestamps_trap(false); // the dynamic linker reads the time stamp counter
    (void)setrlimit(RLIMIT_NOFILE, &server->launch.files);
    attach_processors_of_programs(server);
    attach_network_enter(&server->network); // which undoes what is set for the parent's end
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (getppid() != parent) { // the parent ended before the line above
        _exit(NOT_FOUND);
    }
    for (int signal_number = 1; signal_number < NSIG; signal_number++) {
        struct sigaction now;
        bool own = signal_number == SIGXFSZ; // the simulator ignores it for itself
        if (sigaction(signal_number, NULL, &now) == 0 && (own || now.sa_handler != SIG_IGN)) {
            (void)signal(signal_number, SIG_DFL);
        }
    }
    bool open = descriptor_open(STDIN_FILENO, program->stdin_path, O_RDONLY) &&
                descriptor_open(STDOUT_FILENO, program->stdout_path, O_WRONLY | O_CREAT | O_TRUNC);
    environment_set(server, program);
    if (!open) {
        _exit(NO_FILE);
    }
    addresses_fix();
    (void)execvp(program->argv[0], program->argv);
    int error = errno;
    fprintf(stderr, "tcasim: %s: %s\n", program->argv[0], strerror(error));
    _exit(error == ENOENT ? NOT_FOUND : NOT_EXECUTABLE);
}

// --- the parent -----------------------------------------------------------------------------------------------------

// NULL: it has not connected.
static struct attach_process *connected(const struct attach_server *server, pid_t pid)
{
    struct attach_process *process = server->processes;
    while (process != NULL && (process->reach.pid != pid || process->ended)) {
        process = process->next;
    }
    return process;
}

pid_t attach_parent_of(pid_t pid)
{
    unsigned long long parent;
    return attach_stat_read(pid, 4, 1, &parent) ? (pid_t)parent : 0;
}

bool attach_is_child(const struct attach_process *process, uint64_t pid)
{
    return pid != 0 && pid <= INT32_MAX && attach_parent_of((pid_t)pid) == process->reach.pid;
}

struct arrival {
    pid_t pid;
    int pidfd;
    uint64_t since_ms, awake_ms;
};

// A child attaches itself before its own code begins. It is taken for a stranger that never will if it sleeps in the
// kernel for too long, or has computed for too long.
static bool is_stranger(const struct attach_server *server, struct arrival *arrival, uint64_t now_ms)
{
    uint64_t computes_ticks =
        attach_real_time(server->real_percent, ATTACH_REAL_CHILD_COMPUTES_S * (uint64_t)sysconf(_SC_CLK_TCK));
    if (attach_runs(arrival->pid, arrival->pid)) {
        arrival->awake_ms = now_ms;
    }
    return now_ms - arrival->awake_ms > attach_real_time(server->real_percent, ATTACH_REAL_CHILD_SLEEPS_MS) ||
           attach_processor_ticks(arrival->pid) > computes_ticks;
}

enum awaited { AWAITED_HERE, AWAITED_OVER, AWAITED_MISSING };

static enum awaited await(struct attach_server *server, pid_t pid, bool is_child)
{
    struct arrival arrival = {
        .pid = pid, .pidfd = (int)syscall(SYS_pidfd_open, pid, 0), .since_ms = attach_silence_ms(server)};
    bool over = arrival.pidfd < 0, missing = false;
    arrival.awake_ms = arrival.since_ms;
    attach_accept(server);
    while (!over && !missing && connected(server, pid) == NULL && !attach_stopped(server)) {
        struct pollfd ready[] = {{.fd = server->listener.fd, .events = POLLIN},
                                 {.fd = arrival.pidfd, .events = POLLIN}};
        (void)poll(ready, 2, (int)attach_real_time(server->real_percent, ATTACH_REAL_START_LOOK_MS));
        uint64_t now_ms = attach_silence_ms(server);
        over = ready[1].revents != 0;
        missing = now_ms - arrival.since_ms > server->options->wall_limit_ms ||
                  (is_child && is_stranger(server, &arrival, now_ms));
        attach_accept(server);
    }
    if (arrival.pidfd >= 0) {
        close(arrival.pidfd);
    }
    struct attach_process *process = connected(server, pid);
    if (process != NULL) {
        process->expected = true;
    }
    return process != NULL ? AWAITED_HERE : over ? AWAITED_OVER : AWAITED_MISSING;
}

// Strangers of a process for which the others wait.
enum { STRANGERS_MAX = 3 };

bool attach_child_await(struct attach_process *parent, pid_t pid)
{
    struct attach_server *server = parent->server;
    if (parent->strangers == STRANGERS_MAX) {
        attach_accept(server);
        return connected(server, pid) != NULL;
    }
    enum awaited child = await(server, pid, true);
    if (child == AWAITED_MISSING) {
        parent->strangers++;
        attach_outside_note(server, ATTACH_RUN_OUTSIDE_CLOCK);
    }
    return child != AWAITED_MISSING;
}

void attach_reap(struct attach_server *server, int program)
{
    int status;
    pid_t pid = server->launch.pids[program];
    if (pid > 0 && waitpid(pid, &status, 0) == pid) {
        server->result->statuses[program] =
            WIFEXITED(status) ? WEXITSTATUS(status) : 128 + (WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        server->launch.pids[program] = 0;
        server->launch.ended_ps = sim_now_ps(server->sim);
    }
}

// The program ended without having loaded the libraries of LD_PRELOAD. If exec failed, the child has another status.
static bool ran_detached(const struct attach_server *server, uint32_t index)
{
    const struct attach_program *program = &server->options->programs[index];
    bool redirected = program->stdin_path != NULL || program->stdout_path != NULL;
    int status = server->result->statuses[index];
    return status >= 0 && status < NOT_EXECUTABLE && !(redirected && status == NO_FILE);
}

static void program_start(struct attach_server *server, uint32_t index)
{
    const struct attach_program *program = &server->options->programs[index];
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        child(server, program, parent);
    }
    if (pid < 0) {
        attach_fail(server, "%s cannot be started: %s", program->argv[0], strerror(errno));
        return;
    }
    server->launch.pids[index] = pid;
    if (await(server, pid, false) == AWAITED_MISSING) {
        attach_outside_note(server, ATTACH_RUN_OUTSIDE_CLOCK);
        attach_fail(server, "%s (process %d) has not attached itself in %llu s of real time", program->argv[0],
                    (int)pid, (unsigned long long)server->options->wall_limit_ms / 1000);
    } else if (connected(server, pid) == NULL) {
        attach_start_failed(server, index, pid);
        attach_reap(server, (int)index);
        if (ran_detached(server, index)) {
            attach_fail(
                server,
                "%s (process %d) ended with %d and never attached itself: tcasim's libraries were not loaded into "
                "it (LD_PRELOAD)",
                program->argv[0], (int)pid, server->result->statuses[index]);
        }
    }
}

// Waits for the program's position in the start order of the run.
static void start_await(struct attach_server *server, uint32_t index)
{
    const struct sim_wait_reason reason = {"exec", "program %llu to be started", index, 0};
    while (server->launch.started < index) {
        (void)sim_condition_wait(server->sim, &server->launch.all_external, SIM_NEVER_PS, &reason);
    }
    if (server->options->functional) {
        sim_thread_sleep(server->sim, index > 0 ? FREE_START_PS : 0);
        return;
    }
    uint64_t latest_ps = sim_now_ps(server->sim) + START_LATEST_PS;
    bool in_time = index > 0 && !server->options->together;
    while (in_time && !attach_all_blocked_outside(server)) {
        in_time = sim_condition_wait(server->sim, &server->launch.all_external, latest_ps, &reason);
    }
}

void attach_node_main(void *arg, peach2_handle_t *board)
{
    struct attach_node *node = arg;
    struct attach_server *server = node->server;
    (void)board;
    for (uint32_t i = 0; i < server->options->program_count && !attach_stopped(server); i++) {
        if (server->options->programs[i].node == node->node) {
            start_await(server, i);
            program_start(server, i);
            server->launch.started++;
            sim_condition_signal(server->sim, &server->launch.all_external);
        }
    }
    const struct sim_wait_reason reason = {server->scenario->nodes[node->node].name, "its %llu processes to end",
                                           server->launch.node_processes[node->node], 0};
    while (server->launch.node_processes[node->node] > 0) {
        (void)sim_condition_wait(server->sim, &server->launch.process_ended, SIM_NEVER_PS, &reason);
    }
}

// --- the end --------------------------------------------------------------------------------------------------------

// Orphans become children of the simulator, so the list of its children is complete. false: none but the janitor is left.
static bool children_kill(pid_t janitor)
{
    char name[64], line[4096];
    snprintf(name, sizeof name, "task/%d/children", (int)getpid());
    if (attach_proc_read(getpid(), name, line, sizeof line) < 0) {
        return false;
    }
    bool any = false;
    char *at = line, *end;
    for (long pid = strtol(at, &end, 10); end != at; pid = strtol(at, &end, 10)) {
        if (pid != janitor) {
            any = true;
            (void)kill((pid_t)pid, SIGKILL);
        }
        at = end;
    }
    return any;
}

void attach_kill_all(struct attach_server *server)
{
    while (children_kill(server->scratch.janitor)) {
        int status;
        pid_t pid = waitpid(-1, &status, 0);
        for (uint32_t i = 0; pid > 0 && i < server->options->program_count; i++) {
            if (server->launch.pids[i] == pid) {
                int ended = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
                server->result->statuses[i] = server->left ? 0 : ended;
                server->launch.pids[i] = 0;
            }
        }
        if (pid < 0 && errno != EINTR) {
            return;
        }
    }
}
