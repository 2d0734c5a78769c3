// What the user is shown about programs: how they ended, and what the remaining ones wait for.
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/attach/internal.h"

ssize_t attach_proc_read(pid_t pid, const char *name, char *text, size_t bytes)
{
    char path[128];
    snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, bytes - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    text[got > 0 ? got : 0] = '\0';
    return got;
}

char attach_state(pid_t pid, pid_t tid)
{
    char name[64], line[1024];
    snprintf(name, sizeof name, "task/%d/stat", (int)tid);
    const char *name_end = attach_proc_read(pid, name, line, sizeof line) > 0 ? strrchr(line, ')') : NULL;
    return name_end != NULL && name_end[1] == ' ' ? name_end[2] : 'X';
}

bool attach_state_runs(char state)
{
    return state == 'R' || state == 'D' || state == 't';
}

bool attach_runs(pid_t pid, pid_t tid)
{
    return attach_state_runs(attach_state(pid, tid));
}

// The last part of the path. The text goes to a terminal and was chosen by the program, so it is cleaned.
static void name_keep(char *name, size_t bytes, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *last = slash != NULL && slash[1] != '\0' ? slash + 1 : path;
    size_t length = strnlen(last, bytes - 1);
    memcpy(name, last, length);
    name[length] = '\0';
    for (char *at = name; *at != '\0'; at++) {
        *at = *at > ' ' && *at < 0x7f ? *at : '?';
    }
}

void attach_name_read(struct attach_process *process)
{
    char line[4096];
    attach_reach_begin(process);
    (void)attach_proc_read(process->reach.pid, "cmdline", line, sizeof line); // each argument ends with NUL
    attach_reach_end(process);
    name_keep(process->name, sizeof process->name, line);
}

bool attach_stat_read(pid_t pid, unsigned field, unsigned count, unsigned long long *values_out)
{
    char line[1024];
    char *at = attach_proc_read(pid, "stat", line, sizeof line) > 0 ? strrchr(line, ')') : NULL;
    at = at != NULL && strlen(at) > 3 ? at + 3 : NULL; // ") R"
    for (unsigned i = 4; at != NULL && i < field + count; i++) {
        char *end;
        unsigned long long value = strtoull(at, &end, 10);
        at = end != at ? end : NULL;
        if (i >= field) {
            values_out[i - field] = value;
        }
    }
    return at != NULL;
}

unsigned long attach_processor_ticks(pid_t pid)
{
    unsigned long long ticks[2];
    return attach_stat_read(pid, 14, 2, ticks) ? (unsigned long)(ticks[0] + ticks[1]) : 0;
}

// --- how it ended ---------------------------------------------------------------------------------------------------

// As wait(2) reports it, for a process that its parent has not waited for yet. -1: the parent was faster.
static int status_read(pid_t pid)
{
    char line[1024];
    if (attach_proc_read(pid, "stat", line, sizeof line) <= 0) {
        return -1;
    }
    const char *name_end = strrchr(line, ')'), *last = strrchr(line, ' ');
    bool over = name_end != NULL && (name_end[1] == ' ' && (name_end[2] == 'Z' || name_end[2] == 'X'));
    int status;
    return over && last != NULL && sscanf(last, "%d", &status) == 1 ? status : -1;
}

static bool was_killed(const struct attach_end *end)
{
    return end->status >= 0 && WIFSIGNALED(end->status);
}

static void end_add(struct attach_server *server, const struct attach_end *end)
{
    bool failed = end->program >= 0 && end->status > 0; // for a child, only its parent knows what the status means
    if (!was_killed(end) && !failed && !end->left_pairs) {
        return;
    }
    server->ends.badly = true;
    if (server->ends.count < ATTACH_ENDS) {
        server->ends.list[server->ends.count++] = *end;
    }
}

void attach_end_note(struct attach_process *process)
{
    struct attach_end end = {.node = process->node,
                             .pid = process->reach.pid,
                             .program = process->program,
                             .status = status_read(process->reach.pid),
                             .at_ps = sim_now_ps(process->server->sim)};
    for (size_t i = 0; i < process->owns.count; i++) {
        end.left_pairs = end.left_pairs || process->owns.list[i].kind == OBJECT_QP;
    }
    snprintf(end.name, sizeof end.name, "%s", process->name);
    attach_progress_note(process->server);
    end_add(process->server, &end);
}

void attach_start_failed(struct attach_server *server, uint32_t program, pid_t pid)
{
    const struct attach_program *options = &server->options->programs[program];
    struct attach_end end = {.node = options->node,
                             .pid = pid,
                             .program = (int)program,
                             .status = status_read(pid),
                             .at_ps = sim_now_ps(server->sim)};
    name_keep(end.name, sizeof end.name, options->argv[0]);
    end_add(server, &end);
}

// --- messages -------------------------------------------------------------------------------------------------------

__attribute__((format(printf, 3, 4))) static void append(char *text, size_t room, const char *format, ...)
{
    size_t used = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, room - used, format, args);
    va_end(args);
}

// Signals that a program raises by its own actions.
static bool is_crash(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE || number == SIGABRT ||
           number == SIGTRAP || number == SIGSYS;
}

static void end_report(const struct attach_server *server, const struct attach_end *end, char *text, size_t room)
{
    append(text, room, "%s's %s (process %d) ", server->scenario->nodes[end->node].name, end->name, (int)end->pid);
    if (was_killed(end)) {
        const char *name = sigabbrev_np(WTERMSIG(end->status));
        append(text, room, "was killed by signal %d (SIG%s)", WTERMSIG(end->status), name != NULL ? name : "RT");
    } else if (end->status > 0) {
        append(text, room, "ended with status %d", WEXITSTATUS(end->status));
    } else {
        append(text, room, "ended, and left queue pairs,");
    }
    char at[48];
    observe_time_print(end->at_ps, at, sizeof at);
    append(text, room, " at %s of simulated time\n", at);
}

// all: include programs whose exit status says enough; for runs that did not end well.
void attach_ends_report(struct attach_server *server, bool all)
{
    char *text = server->result->ends;
    const size_t room = sizeof server->result->ends;
    for (const struct attach_process *p = server->processes; p != NULL && server->left; p = p->next) {
        append(text, room, "%s's %s (process %d) %s, and was ended\n", server->scenario->nodes[p->node].name, p->name,
               (int)p->reach.pid,
               p->program >= 0 ? "waited for more when the others had ended" : "was left waiting by the programs");
    }
    for (unsigned i = 0; i < server->ends.count; i++) {
        const struct attach_end *end = &server->ends.list[i];
        bool killed = was_killed(end) && (end->program >= 0 || is_crash(WTERMSIG(end->status)));
        if (all || killed) {
            end_report(server, end, text, room);
        }
    }
}

void attach_servers_hint(const struct attach_server *server, char *text, size_t room)
{
    bool ended = false, waits = false;
    for (uint32_t i = 0; i < server->launch.started; i++) {
        ended = ended || (server->launch.pids[i] == 0 && server->result->statuses[i] == 0);
        waits = waits || server->launch.pids[i] != 0;
    }
    if (ended && waits) {
        append(text, room,
               "%sprograms that serve others without end are ended with them by --servers, or ends: with-others",
               text[0] != '\0' && text[strlen(text) - 1] != '\n' ? "\n" : "");
    }
}

void attach_thread_title(const struct attach_thread *thread, char *text, size_t room)
{
    snprintf(text, room, "%s (%s, process %d)", thread->name, thread->process->name, (int)thread->process->reach.pid);
}

// At most so many threads are located in their programs, as each one takes real time.
enum { WHERE_MAX = 16 };

static void thread_print(const struct attach_thread *thread, bool located, FILE *out)
{
    char title[256], where[512], since[48];
    attach_thread_title(thread, title, sizeof title);
    observe_time_print(thread->asks.since_ps, since, sizeof since);
    fprintf(out, "%s %s%s (since %s)", title, thread->token.free ? "runs" : "waits for ",
            thread->token.free          ? ""
            : thread->asks.what != NULL ? thread->asks.what
                                        : "its first turn",
            since);
    if (located && attach_where(&thread->process->reach, (pid_t)thread->slot->tid, where, sizeof where)) {
        fprintf(out, " in %s", where);
    }
    fputc('\n', out);
}

void attach_waiters_print(struct attach_server *server, char *text, size_t room)
{
    FILE *out = fmemopen(text, room, "w");
    unsigned located = 0;
    text[0] = '\0';
    for (struct attach_process *process = server->processes; process != NULL && out != NULL; process = process->next) {
        unsigned count;
        for (unsigned i = 0; i < process->slots; i++) {
            if (process->threads[i] != NULL) {
                thread_print(process->threads[i], located++ < WHERE_MAX, out);
            }
        }
        struct journal_state *states = attach_ask(process, &count);
        observe_states_print(process->observed, states, count, out);
        free(states);
    }
    for (uint32_t i = server->launch.started; i < server->options->program_count && out != NULL; i++) {
        fprintf(out, "%s was not started\n", server->options->programs[i].argv[0]);
    }
    if (out != NULL) {
        (void)fclose(out);
    }
}

// --- waits that are not exact -------------------------------------------------------------------------------------------

void attach_late_note(struct attach_thread *thread, uint64_t skipped_ps)
{
    struct attach_late *late = &thread->late;
    late->waits += skipped_ps != 0;
    late->longest_ps = skipped_ps > late->longest_ps ? skipped_ps : late->longest_ps;
}

void attach_late_tell(struct attach_thread *thread)
{
    struct attach_run_result *result = thread->process->server->result;
    size_t used = strlen(result->late);
    char line[256];
    attach_late_note(thread, thread->slot->late_ps);
    thread->slot->late_ps = 0; // another thread may get the slot
    int bytes = snprintf(line, sizeof line, "  - {thread: %s, waits: %" PRIu64 ", late_at_most_ps: %" PRIu64 "}\n",
                         thread->name, thread->late.waits, thread->late.longest_ps);
    if (thread->late.waits != 0 && used + (size_t)bytes < sizeof result->late) {
        memcpy(result->late + used, line, (size_t)bytes + 1);
    }
}
