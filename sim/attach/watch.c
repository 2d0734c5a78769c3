// Descriptors that threads wait for. A program sends copies of them with its wait. Whenever a program has done
// something, the simulator asks the kernel for all copies at once which of them are ready. So a write wakes only the
// threads that wait for what was written. The copies are closed when the wait is over. Until then a descriptor that the
// program closes stays open, as under a real blocking call.
#include <errno.h>
#include <fcntl.h>
#include <linux/major.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sim/attach/internal.h"

enum { READY_MAX = 256, TERMINALS_MAX = 256 }; // at once
// Descriptors that copies leave to the simulator itself: files, processes, the next message. LEAST: what each process may
// have copies of.
enum { RESERVED = 640, LEAST = ATTACH_WATCHES_MAX, SHARES = 4 };

// The kernel's number of the file system that has this path; 0: there is none.
static unsigned device_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? major(about.st_dev) << 20 | minor(about.st_dev) : 0;
}

bool attach_watches_init(struct attach_server *server)
{
    server->terminal_devices[0] = device_of("/dev/ptmx");
    server->terminal_devices[1] = device_of("/dev/pts");
    server->watches = epoll_create1(EPOLL_CLOEXEC);
    return server->watches >= 0;
}

// How many more copies of its descriptors the simulator may have of a process: a quarter of what it may have at all, so
// that no process takes them all, nor a few of them.
static unsigned share_left(const struct attach_process *process)
{
    const struct attach_server *server = process->server;
    struct rlimit files;
    unsigned all = 0;
    uint64_t room = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur > RESERVED ? files.rlim_cur - RESERVED : 0;
    for (const struct attach_process *other = server->processes; other != NULL; other = other->next) {
        all += other->copies;
    }
    uint64_t share = room / SHARES > LEAST ? room / SHARES : LEAST;
    uint64_t left = all < room ? room - all : 0, own = process->copies < share ? share - process->copies : 0;
    return (unsigned)(left < own ? left : own);
}

// Takes the descriptors of the wait's message.
static unsigned descriptors_take(const struct attach_process *process, int fds[ATTACH_WATCHES_MAX])
{
    char byte[16];
    unsigned count = ATTACH_WATCHES_MAX;
    (void)attach_message_receive(process->server, &process->reach, process->socket, (struct iovec){byte, sizeof byte},
                                 fds, &count);
    return count;
}

static void copy_close(const struct attach_process *process, int fd)
{
    attach_copy_close(process->server, process->reach.pidfd, process->name, fd);
}

// --- terminals ------------------------------------------------------------------------------------------------------
// What was written to one end of a pseudo-terminal reaches the other end when a worker of the kernel has time. Asking
// the other end for itself, not as a member of a set (epoll), does that work at once.

static void member_add(struct attach_thread *thread, int fd)
{
    struct attach_watching *watch = &thread->watch;
    int copy = (int)syscall(SYS_pidfd_getfd, thread->process->reach.pidfd, fd, 0);
    if (copy < 0 || watch->copies == ATTACH_WATCHES_MAX || isatty(copy) != 1) {
        (void)close(copy);
        return;
    }
    watch->fds[watch->copies] = copy;
    watch->events[watch->copies] = 0;
    watch->terminal[watch->copies++] = true;
    watch->terminals++;
}

// The terminals of a set of descriptors (epoll), as copies that nobody waits for. The kernel names the members of a set
// with their file systems.
static void members_add(struct attach_thread *thread, int set)
{
    const unsigned *terminals = thread->process->server->terminal_devices;
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/self/fdinfo/%d", set);
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned fd, device;
        if (sscanf(line, "tfd: %u events: %*x data: %*x pos:%*d ino:%*x sdev:%x", &fd, &device) == 2 &&
            (device == terminals[0] || device == terminals[1])) {
            member_add(thread, (int)fd);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static void terminals_flush(struct attach_server *server)
{
    struct pollfd terminals[TERMINALS_MAX];
    struct attach_process *process = NULL;
    const struct attach_thread *thread;
    unsigned index = 0, count = 0;
    while (server->terminals > 0 && (thread = attach_thread_next(server, &process, &index)) != NULL) {
        for (unsigned i = 0; i < thread->watch.copies && thread->watch.terminals > 0; i++) {
            if (count == TERMINALS_MAX) {
                (void)poll(terminals, count, 0);
                count = 0;
            }
            terminals[count] = (struct pollfd){.fd = thread->watch.fds[i], .events = (short)thread->watch.events[i]};
            count += thread->watch.terminal[i];
        }
    }
    if (count > 0) {
        (void)poll(terminals, count, 0);
    }
}

// --- descriptors that the outside can make ready --------------------------------------------------------------------

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

// Programs of the run use pseudo-terminals between each other (mpirun). Only that of the user who started the run is a
// user's terminal.
static bool is_users_terminal(int terminal, const struct stat *about)
{
    unsigned kind = major(about->st_rdev);
    bool pseudo = (kind >= UNIX98_PTY_MASTER_MAJOR && kind < UNIX98_PTY_SLAVE_MAJOR + UNIX98_PTY_MAJOR_COUNT) ||
                  about->st_rdev == makedev(TTYAUX_MAJOR, 2); // /dev/ptmx
    bool users = !pseudo && isatty(terminal) == 1;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && !users; fd++) {
        struct stat own;
        users = fstat(fd, &own) == 0 && S_ISCHR(own.st_mode) && own.st_rdev == about->st_rdev && isatty(fd) == 1;
    }
    return users;
}

// A terminal, a pipe that has a path, or the simulator's own input: someone outside of the run may write there.
static bool is_of_others(int fd, const struct stat *about, const struct stat *input, const struct stat *pipe)
{
    bool named = S_ISFIFO(about->st_mode) && about->st_dev != pipe->st_dev;
    return named || (S_ISCHR(about->st_mode) && is_users_terminal(fd, about)) ||
           (same_file(about, input) && !S_ISREG(about->st_mode));
}

// As fstat, without asking the server of a file of FUSE.
static bool about_read(int fd, struct stat *about)
{
    struct statx known;
    if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &known) != 0) {
        return false;
    }
    *about = (struct stat){.st_mode = known.stx_mode,
                           .st_ino = known.stx_ino,
                           .st_dev = makedev(known.stx_dev_major, known.stx_dev_minor),
                           .st_rdev = makedev(known.stx_rdev_major, known.stx_rdev_minor)};
    return true;
}

// Files and folders are always ready (epoll_ctl gives EPERM); those of FUSE as well, though a few of them can be waited
// for: the kernel would ask their server in the simulator's call.
static bool is_always_ready(const struct stat *about)
{
    return S_ISREG(about->st_mode) || S_ISDIR(about->st_mode);
}

static void descriptor_add(struct attach_thread *thread, unsigned i, const struct stat *about)
{
    struct attach_watching *watch = &thread->watch;
    struct epoll_event event = {.events = watch->events[i], .data.ptr = thread};
    bool added = !is_always_ready(about) &&
                 epoll_ctl(thread->process->server->watches, EPOLL_CTL_ADD, watch->fds[i], &event) == 0;
    bool file = !added && (is_always_ready(about) || errno == EPERM);
    watch->ready = watch->ready || file;
    watch->blind = watch->blind || (!added && !file);
}

static void descriptors_judge(struct attach_thread *thread)
{
    struct attach_watching *watch = &thread->watch;
    struct attach_server *server = thread->process->server;
    struct stat input = {0}, pipe = {0};
    (void)fstat(STDIN_FILENO, &input);
    (void)fstat(server->scratch.alive, &pipe); // a pipe without a path
    for (unsigned i = 0; i < watch->count; i++) {
        struct stat about = {0};
        bool known = about_read(watch->fds[i], &about);
        if (known) {
            descriptor_add(thread, i, &about);
        }
        watch->blind = watch->blind || !known;
        watch->terminal[i] = S_ISCHR(about.st_mode);
        watch->terminals += watch->terminal[i];
        watch->of_others[i] = known && is_of_others(watch->fds[i], &about, &input, &pipe);
        watch->others += watch->of_others[i];
        if ((about.st_mode & S_IFMT) == 0) { // one of the kernel's own kinds
            members_add(thread, watch->fds[i]);
        }
    }
    server->terminals += watch->terminals;
    server->others_watches += watch->others;
}

// --- waiting --------------------------------------------------------------------------------------------------------

void attach_watch_begin(struct attach_thread *thread, const struct attach_request *request)
{
    thread->watch.count = descriptors_take(thread->process, thread->watch.fds);
    for (unsigned share = share_left(thread->process); thread->watch.count > share;) {
        copy_close(thread->process, thread->watch.fds[--thread->watch.count]);
    }
    thread->watch.ready = false;
    thread->watch.blind = thread->watch.count != request->args.wait.watches;
    for (unsigned i = 0; i < thread->watch.count; i++) {
        thread->watch.events[i] = request->args.wait.events.list[i];
    }
    thread->watch.copies = thread->watch.count;
    descriptors_judge(thread);
    thread->process->copies += thread->watch.copies;
}

void attach_watch_end(struct attach_thread *thread)
{
    for (unsigned i = 0; i < thread->watch.copies; i++) {
        (void)epoll_ctl(thread->process->server->watches, EPOLL_CTL_DEL, thread->watch.fds[i], NULL);
        copy_close(thread->process, thread->watch.fds[i]);
    }
    thread->process->copies -= thread->watch.copies;
    thread->process->server->terminals -= thread->watch.terminals;
    thread->process->server->others_watches -= thread->watch.others;
    thread->watch.count = thread->watch.copies = thread->watch.terminals = thread->watch.others = 0;
}

bool attach_watches_poll(struct attach_server *server)
{
    struct epoll_event ready[READY_MAX];
    terminals_flush(server);
    int count = epoll_wait(server->watches, ready, READY_MAX, 0);
    bool late = false; // became ready although no program has acted since the last poll
    for (int i = 0; i < count; i++) {
        struct attach_watching *watch = &((struct attach_thread *)ready[i].data.ptr)->watch;
        late = late || (!watch->ready && server->settling.polled_acts == server->settling.acts);
        watch->ready = true;
    }
    server->settling.polled_acts = server->settling.acts;
    attach_outside_note(server, late ? ATTACH_RUN_OUTSIDE_EVENT : 0);
    // In the order of all threads, not in the kernel's order.
    struct attach_process *process = NULL;
    struct attach_thread *thread;
    unsigned index = 0;
    while (count > 0 && (thread = attach_thread_next(server, &process, &index)) != NULL) {
        if (thread->watch.ready && (thread->wait.flags & ATTACH_WAIT_DESCRIPTORS) != 0) {
            sim_condition_signal(server->sim, &thread->wait.woken);
            attach_notified_note(server);
        }
    }
    return count > 0;
}

// --- what comes from outside ----------------------------------------------------------------------------------------

// Asks the kernel only for this descriptor: attach calls announce what programs of the run write to the others.
static bool is_ready(struct attach_thread *thread, unsigned index)
{
    struct pollfd watch = {.fd = thread->watch.fds[index], .events = (short)thread->watch.events[index]};
    if (thread->watch.ready || poll(&watch, 1, 0) != 1) {
        return false;
    }
    thread->watch.ready = true;
    sim_condition_signal(thread->process->server->sim, &thread->wait.woken);
    return true;
}

bool attach_watches_of_others(const struct attach_server *server)
{
    return server->others_watches > 0;
}

bool attach_watches_of_others_poll(struct attach_server *server)
{
    struct attach_process *process = NULL;
    struct attach_thread *thread;
    unsigned index = 0;
    bool any = false;
    while (server->others_watches > 0 && (thread = attach_thread_next(server, &process, &index)) != NULL) {
        for (unsigned i = 0; i < thread->watch.count && thread->watch.others > 0; i++) {
            any = (thread->watch.of_others[i] && is_ready(thread, i)) || any;
        }
    }
    if (any) {
        attach_notified_note(server);
    }
    return any;
}
