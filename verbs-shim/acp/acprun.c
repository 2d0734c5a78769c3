// acprun: starts the ranks of an ACP program.
//
// Each rank is a child process: the program itself on this host, a remote shell for another host. The library's
// arguments give a rank its number and the address of acprun.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs-shim/acp/acprun.h"
#include "verbs-shim/acp/boot_wire.h"

enum { NAME_BYTES = 256, ARGUMENTS = 14, FAILED = 1, NOT_FOUND = 127, SIGNALLED = 128, LOST_MS = 100 };

static struct {
    struct acprun_options options;
    struct acprun_meeting meeting;
    pid_t *children; // 0: it has ended
    uint32_t running;
    int status; // of acprun itself
    int wake[2];
    char host[NAME_BYTES];
} run;

static volatile sig_atomic_t interrupted; // the number of the signal

// --- starting -------------------------------------------------------------------------------------------------------

static const char *host_of(uint32_t rank)
{
    return run.options.host_count != 0 ? run.options.hosts[rank % run.options.host_count] : run.host;
}

static bool is_here(const char *host)
{
    return strcmp(host, run.host) == 0 || strcmp(host, "localhost") == 0;
}

// The program, its arguments, and then the library's arguments. The texts remain valid until exec.
static char **arguments_of(uint32_t rank)
{
    static char numbers[4][24];
    size_t count = 0;
    while (run.options.program[count] != NULL) {
        count++;
    }
    char **list = calloc(count + ARGUMENTS + 1, sizeof *list);
    if (list == NULL) {
        return NULL;
    }
    memcpy(list, run.options.program, count * sizeof *list);
    snprintf(numbers[0], sizeof numbers[0], "%u", rank);
    snprintf(numbers[1], sizeof numbers[1], "%u", run.options.ranks);
    snprintf(numbers[2], sizeof numbers[2], "%u", run.meeting.port);
    snprintf(numbers[3], sizeof numbers[3], "%llu", (unsigned long long)run.options.starter_bytes);
    const char *const pairs[ARGUMENTS] = {ACP_ARGUMENT_RANK,    numbers[0],
                                          ACP_ARGUMENT_RANKS,   numbers[1],
                                          ACP_ARGUMENT_HOST,    run.host,
                                          ACP_ARGUMENT_PORT,    numbers[2],
                                          ACP_ARGUMENT_STARTER, run.options.starter_bytes != 0 ? numbers[3] : NULL,
                                          ACP_ARGUMENT_DEVICE,  run.options.device,
                                          ACP_ARGUMENT_CONNECT, run.options.connect_at_start ? "start" : NULL};
    for (size_t i = 0; i < ARGUMENTS; i += 2) {
        if (pairs[i + 1] != NULL) {
            list[count++] = (char *)(uintptr_t)pairs[i];
            list[count++] = (char *)(uintptr_t)pairs[i + 1];
        }
    }
    return list;
}

// Quotes a word for the shell.
static void quoted_put(FILE *out, const char *word)
{
    (void)fputc('\'', out);
    for (; *word != '\0'; word++) {
        if (*word == '\'') {
            (void)fputs("'\\''", out);
        } else {
            (void)fputc(*word, out);
        }
    }
    (void)fputc('\'', out);
}

// A shell command that changes to acprun's current directory first.
static char *command_of(char *const *arguments)
{
    char *text = NULL, directory[4096];
    size_t bytes;
    FILE *out = getcwd(directory, sizeof directory) != NULL ? open_memstream(&text, &bytes) : NULL;
    if (out == NULL) {
        return NULL;
    }
    (void)fputs("cd ", out);
    quoted_put(out, directory);
    (void)fputs(" && exec", out);
    for (; *arguments != NULL; arguments++) {
        (void)fputc(' ', out);
        quoted_put(out, *arguments);
    }
    (void)fclose(out);
    return text;
}

__attribute__((noreturn)) static void child_run(uint32_t rank)
{
    const char *host = host_of(rank);
    char **arguments = arguments_of(rank);
    if (rank != 0) { // only the first rank reads standard input
        int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        (void)dup2(nothing, 0);
    }
    if (arguments != NULL && is_here(host)) {
        (void)execvp(arguments[0], arguments);
        fprintf(stderr, "acprun: %s: %s\n", arguments[0], strerror(errno));
    } else if (arguments != NULL) {
        const char *command = command_of(arguments);
        if (command != NULL) {
            (void)execlp(run.options.shell, run.options.shell, "--", host, command, (char *)NULL);
        }
        fprintf(stderr, "acprun: %s: %s\n", run.options.shell, strerror(errno));
    }
    _exit(NOT_FOUND);
}

static bool children_start(void)
{
    for (uint32_t rank = 0; rank < run.options.ranks; rank++) {
        if (run.options.verbose) {
            fprintf(stderr, "acprun: rank %u on %s\n", rank, host_of(rank));
        }
        pid_t child = fork();
        if (child == 0) {
            child_run(rank);
        }
        if (child < 0) {
            fprintf(stderr, "acprun: rank %u: %s\n", rank, strerror(errno));
            return false;
        }
        run.children[rank] = child;
        run.running++;
    }
    return true;
}

// --- ending ---------------------------------------------------------------------------------------------------------

static void children_end(void)
{
    for (uint32_t rank = 0; rank < run.options.ranks; rank++) {
        if (run.children[rank] != 0) {
            (void)kill(run.children[rank], SIGKILL);
        }
    }
}

static void fail(int status)
{
    if (run.status == 0) {
        run.status = status;
        children_end();
    }
}

static void child_ended(uint32_t rank, int how)
{
    run.children[rank] = 0;
    run.running--;
    if (run.status != 0 || (WIFEXITED(how) && WEXITSTATUS(how) == 0)) {
        return; // successfully, or ended by children_end
    }
    if (WIFSIGNALED(how)) {
        fprintf(stderr, "acprun: rank %u on %s was killed by signal %d (%s)\n", rank, host_of(rank), WTERMSIG(how),
                strsignal(WTERMSIG(how)));
        fail(SIGNALLED + WTERMSIG(how));
    } else {
        fprintf(stderr, "acprun: rank %u on %s ended with %d\n", rank, host_of(rank), WEXITSTATUS(how));
        fail(WEXITSTATUS(how));
    }
}

static void children_reap(void)
{
    char bytes[64];
    int how;
    pid_t child;
    while (read(run.wake[0], bytes, sizeof bytes) > 0) {
    }
    while ((child = waitpid(-1, &how, WNOHANG)) > 0) {
        for (uint32_t rank = 0; rank < run.options.ranks; rank++) {
            if (run.children[rank] == child) {
                child_ended(rank, how);
            }
        }
    }
}

static void signal_take(int number)
{
    int error = errno;
    if (number != SIGCHLD) {
        interrupted = number;
    }
    (void)!write(run.wake[1], "", 1);
    errno = error;
}

static bool signals_take(void)
{
    static const int numbers[] = {SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = signal_take}, before;
    bool taken = pipe2(run.wake, O_CLOEXEC | O_NONBLOCK) == 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0] && taken; i++) {
        taken = sigaction(numbers[i], NULL, &before) == 0;
        if (taken && (numbers[i] == SIGCHLD || before.sa_handler != SIG_IGN)) { // nohup's SIG_IGN stays
            taken = sigaction(numbers[i], &action, NULL) == 0;
        }
    }
    return taken;
}

// An exit status other than 0 was already reported. acprun also does not wait for a rank that continues without the
// library.
static void lost_report(uint32_t rank)
{
    fprintf(stderr, "acprun: rank %u on %s %s without acp_finalize\n", rank, host_of(rank),
            run.children[rank] == 0 ? "has ended" : "has left the others");
    fail(FAILED);
}

static void wait_for_all(void)
{
    while (run.running != 0) {
        bool silent = acprun_meeting_wait(&run.meeting, run.wake[0], run.meeting.lost ? LOST_MS : -1);
        children_reap();
        if (interrupted != 0) {
            fail(SIGNALLED + interrupted);
        }
        if (run.meeting.aborted) {
            fail(FAILED);
        }
        if (run.status == 0 && run.meeting.lost && (silent || run.children[run.meeting.lost_process] == 0)) {
            lost_report(run.meeting.lost_process);
        }
        if (run.meeting.gathered != 0 && run.running < run.options.ranks && run.meeting.failure == NULL) {
            run.meeting.failure = "a rank has ended that the others wait for";
        }
        if (run.meeting.failure != NULL && run.status == 0) {
            fprintf(stderr, "acprun: %s\n", run.meeting.failure);
            fail(FAILED);
        }
    }
}

// Each rank needs a connection.
static void descriptors_raise(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int main(int argc, char **argv)
{
    descriptors_raise();
    acprun_options_read(argc, argv, &run.options);
    run.children = calloc(run.options.ranks, sizeof *run.children);
    if (run.children == NULL || gethostname(run.host, sizeof run.host) != 0 || !signals_take() ||
        acprun_meeting_open(&run.meeting, run.options.ranks) != 0) {
        fprintf(stderr, "acprun: %s\n", strerror(errno));
        return FAILED;
    }
    if (!children_start()) {
        fail(FAILED);
    }
    wait_for_all();
    acprun_meeting_close(&run.meeting);
    free(run.children);
    return run.status;
}
