// The requests of programs for accesses, waits, memory and threads. Whatever the table of requests does not check
// (request_table.c) is checked here before a model sees it.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>
#include <unistd.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/attach/internal.h"

// Limits of one streaming read, and of one piece of pinned memory.
static const uint64_t read_max_bytes = 1ull << 30, pinned_max_bytes = 8ull << 30;

// Simulated time that a process takes to end, about as on Linux.
static const uint64_t exit_ps = 100 * SIM_PS_PER_US;

// --- accesses -------------------------------------------------------------------------------------------------------

bool attach_bar_allowed(const struct attach_process *process, uint64_t bar, uint64_t offset, uint64_t bytes)
{
    const struct plat_backend_inproc *node = plat_machine_backend(process->server->machine, process->node);
    if (bar >= BACKEND_BARS || offset >= node->bars[bar].bytes || bytes > node->bars[bar].bytes - offset) {
        return false;
    }
    if (bar == BACKEND_BAR_HCA_UAR) {
        uint64_t page = offset / HCA_UAR_BYTES;
        return offset % HCA_UAR_BYTES + bytes <= HCA_UAR_BYTES &&
               attach_object_find(process, OBJECT_UAR, 0, page) != NULL;
    }
    const struct attach_process *owner = process->server->board_owners[process->node];
    if ((bar == BACKEND_BAR_REGISTERS || bar == BACKEND_BAR_WINDOW) && owner != NULL && owner != process) {
        return false;
    }
    bool gpu = bar >= BACKEND_BAR_GPU0 && bar < BACKEND_BAR_GPU0 + BACKEND_GPUS_MAX;
    return !gpu || attach_memory_owned(process, node->bars[bar].base + offset, bytes);
}

int64_t attach_serve_flush(struct attach_thread *thread, const struct attach_args_flush *args,
                           struct attach_reply_flush *reply)
{
    (void)thread;
    (void)args;
    (void)reply;
    return 0;
}

int64_t attach_serve_nothing(struct attach_thread *thread, const struct attach_args_nothing *args,
                             struct attach_reply_nothing *reply)
{
    (void)thread;
    (void)args;
    (void)reply;
    return 0;
}

// Memory behind a window on a GPU stays as long as a load from it is under way. false: the process has no such window.
static bool window_name(struct attach_process *process, struct attach_object *load, uint64_t bar, uint64_t offset,
                        uint64_t bytes)
{
    const struct plat_backend_inproc *node = plat_machine_backend(process->server->machine, process->node);
    const struct attach_bus_range range = {node->bars[bar].base + offset, bytes};
    bool gpu = bar >= BACKEND_BAR_GPU0 && bar < BACKEND_BAR_GPU0 + BACKEND_GPUS_MAX;
    return !gpu || attach_memory_name(process, load, &range, 1);
}

int64_t attach_serve_read(struct attach_thread *thread, const struct attach_args_read *args,
                          struct attach_reply_read *reply)
{
    uint32_t bytes = args->bytes;
    bool whole = (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && args->offset % bytes == 0;
    if (!whole || !attach_bar_allowed(thread->process, args->bar, args->offset, bytes)) {
        return -EINVAL;
    }
    struct attach_object load = {.kind = OBJECT_KINDS};
    if (!window_name(thread->process, &load, args->bar, args->offset, bytes)) {
        return -EINVAL;
    }
    int status =
        thread->backend.ops.read(&thread->backend, (enum backend_bar)args->bar, args->offset, bytes, &reply->value);
    attach_memory_unname(thread, &load);
    return status;
}

static bool program_write(struct attach_process *process, uint64_t address, const void *data, size_t bytes)
{
    const struct iovec from = {(void *)(uintptr_t)data, bytes}, to = {(void *)(uintptr_t)address, bytes};
    attach_memory_settle(process->server, process->node);
    return attach_reach_write(process, &from, 1, &to, 1) == (ssize_t)bytes;
}

int64_t attach_serve_read_combined(struct attach_thread *thread, const struct attach_args_read_combined *args,
                                   struct attach_reply_read_combined *reply)
{
    uint64_t bytes = args->bytes;
    (void)reply;
    if (bytes > read_max_bytes || (args->address == 0 && bytes > ATTACH_DATA_BYTES) ||
        !attach_bar_allowed(thread->process, args->bar, args->offset, bytes)) {
        return -EINVAL;
    }
    struct attach_object load = {.kind = OBJECT_KINDS};
    unsigned char *data = calloc(1, bytes != 0 ? bytes : 1);
    if (data == NULL || !window_name(thread->process, &load, args->bar, args->offset, bytes)) {
        int64_t refused = data == NULL ? -ENOMEM : -EINVAL;
        free(data);
        return refused;
    }
    int64_t status =
        thread->backend.ops.read_combined(&thread->backend, (enum backend_bar)args->bar, args->offset, data, bytes);
    attach_memory_unname(thread, &load);
    if (thread->process->ended) {
        status = -EIO; // it has become another program, or is over: not all was loaded
    } else if (args->address == 0) {
        memcpy(thread->slot->data, data, bytes);
    } else if (!program_write(thread->process, args->address, data, bytes)) {
        status = -EFAULT;
    }
    free(data);
    return status;
}

int64_t attach_serve_wait_word(struct attach_thread *thread, const struct attach_args_wait_word *args,
                               struct attach_reply_wait_word *reply)
{
    sim_t *sim = thread->process->server->sim;
    uint64_t bus_address = args->bus_address, timeout_ns = args->timeout_ns;
    struct attach_process *process = thread->process;
    struct attach_object wait = {.kind = OBJECT_KINDS};
    const struct attach_bus_range word = {bus_address, sizeof(uint64_t)};
    bool known = bus_address != 0
                     ? attach_memory_name(process, &wait, &word, 1)
                     : host_memory_pinned_address(thread->backend.memory, &process->owner, args->address, &bus_address);
    if (!known || bus_address % sizeof(uint64_t) != 0) {
        attach_memory_unname(thread, &wait);
        return -EINVAL;
    }
    uint64_t most_ns = (SIM_NEVER_PS / 4 - sim_now_ps(sim)) / SIM_PS_PER_NS;
    uint64_t deadline_ps =
        timeout_ns == 0 || timeout_ns >= most_ns ? SIM_NEVER_PS : sim_now_ps(sim) + timeout_ns * SIM_PS_PER_NS;
    reply->deadline_ps = deadline_ps;
    bool came =
        host_core_poll(thread->core, bus_address, args->mask, args->value, attach_alarm_before(process, deadline_ps));
    attach_memory_unname(thread, &wait);
    bool there = args->bus_address != 0 ||
                 host_memory_pinned_address(thread->backend.memory, &process->owner, args->address, &bus_address);
    return !there ? -EFAULT : came ? 0 : sim_now_ps(sim) < deadline_ps ? -EINTR : -ETIMEDOUT;
}

int64_t attach_serve_wait(struct attach_thread *thread, const struct attach_args_wait *args,
                          struct attach_reply_wait *reply)
{
    (void)reply;
    bool works = args->work_ps != 0 && args->work_ps < args->deadline_ps;
    enum attach_woken woken = attach_thread_wait(thread, args->flags, works ? args->work_ps : args->deadline_ps);
    return works && woken == ATTACH_WOKEN_DEADLINE ? ATTACH_WOKEN_OUTSIDE : woken;
}

// --- pinned memory --------------------------------------------------------------------------------------------------

// Growing a file beyond the user's limit (ulimit -f) would end the simulator by a signal.
static bool file_may_have(uint64_t bytes)
{
    struct rlimit most;
    return getrlimit(RLIMIT_FSIZE, &most) != 0 || bytes <= most.rlim_cur;
}

int attach_sealed_memory(uint64_t bytes)
{
    int fd = file_may_have(bytes) ? memfd_create("tcasim", MFD_CLOEXEC | MFD_ALLOW_SEALING) : -1;
    if (fd >= 0 &&
        (ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void pinned_free(struct attach_thread *thread, const struct attach_object *object)
{
    struct backend_buffer buffer = {NULL, object->bus_address, object->bytes};
    host_memory_t *memory = thread->backend.memory;
    (void)host_memory_watch(memory, object->bus_address, object->bytes, NULL);
    attach_ranges_remove(&thread->process->writes.ignored, object->bus_address, object->bytes);
    attach_ranges_remove(&thread->process->writes.event_ranges, object->bus_address, object->bytes);
    host_memory_unshare(memory, object->bus_address, object->bytes);
    thread->backend.ops.free_pinned(&thread->backend, &buffer);
}

int64_t attach_serve_alloc(struct attach_thread *thread, const struct attach_args_alloc *args,
                           struct attach_reply_alloc *reply)
{
    struct attach_process *process = thread->process;
    uint64_t bytes = (args->bytes + 4095) & ~UINT64_C(4095);
    struct backend_buffer buffer;
    if (args->bytes == 0) {
        return -EINVAL;
    }
    int status =
        args->bytes > pinned_max_bytes ? -ENOMEM : thread->backend.ops.alloc_pinned(&thread->backend, bytes, &buffer);
    if (status != 0) {
        return status;
    }
    const struct attach_object object = {
        .kind = OBJECT_PINNED, .number = buffer.bus_address, .bus_address = buffer.bus_address, .bytes = bytes};
    int fd = attach_sealed_memory(bytes);
    bool good = fd >= 0 && host_memory_share(thread->backend.memory, buffer.bus_address, bytes, fd) == SIM_OK &&
                host_memory_watch(thread->backend.memory, buffer.bus_address, bytes, &process->watch) == SIM_OK &&
                attach_object_add(process, &object) == 0;
    if (!good) {
        pinned_free(thread, &object);
    } else if (!attach_descriptor_send(process, fd)) {
        (void)attach_object_release(thread, OBJECT_PINNED, 0, object.number);
        good = false;
    }
    if (fd >= 0) {
        close(fd);
    }
    reply->bus_address = buffer.bus_address;
    return good ? 0 : -ENOMEM;
}

int64_t attach_serve_free(struct attach_thread *thread, const struct attach_args_free *args,
                          struct attach_reply_free *reply)
{
    (void)reply;
    return attach_object_release(thread, OBJECT_PINNED, 0, args->bus_address);
}

int64_t attach_serve_ignore_writes(struct attach_thread *thread, const struct attach_args_ignore_writes *args,
                                   struct attach_reply_ignore_writes *reply)
{
    (void)reply;
    return attach_ranges_add(thread->process, &thread->process->writes.ignored, args->bus_address, args->bytes);
}

int64_t attach_serve_event_writes(struct attach_thread *thread, const struct attach_args_event_writes *args,
                                  struct attach_reply_event_writes *reply)
{
    (void)reply;
    return attach_ranges_add(thread->process, &thread->process->writes.event_ranges, args->bus_address, args->bytes);
}

// The board does not know of processes: channels, descriptors and the words by which nodes synchronise exist once. So
// one process of a node has the board at a time, as TCA Verbs expects.
int64_t attach_serve_board_claim(struct attach_thread *thread, const struct attach_args_board_claim *args,
                                 struct attach_reply_board_claim *reply)
{
    struct attach_process *process = thread->process;
    (void)args;
    const struct attach_process **owner = &process->server->board_owners[process->node];
    if (!process->server->scenario->nodes[process->node].board.given) {
        return -ENODEV;
    }
    const struct sim_wait_reason reason = {thread->name, "the end of the process that has the board", 0, 0};
    while (*owner != NULL && (*owner)->ended && !process->ended) {
        (void)sim_condition_wait(process->server->sim, &process->server->launch.process_ended, SIM_NEVER_PS, &reason);
    }
    if (*owner != NULL) {
        reply->owner = (*owner)->id;
        return *owner == process ? 0 : -EBUSY;
    }
    *owner = process;
    return attach_object_keep(thread, &(struct attach_object){.kind = OBJECT_BOARD});
}

int64_t attach_serve_board_release(struct attach_thread *thread, const struct attach_args_board_release *args,
                                   struct attach_reply_board_release *reply)
{
    (void)args;
    (void)reply;
    return attach_object_release(thread, OBJECT_BOARD, 0, 0);
}

int64_t attach_serve_memory_check(struct attach_thread *thread, const struct attach_args_memory_check *args,
                                  struct attach_reply_memory_check *reply)
{
    uint64_t address = args->address, bytes = args->bytes;
    (void)reply;
    bool there = bytes == 0 ||
                 (address + bytes > address && attach_reach_has(thread->process, address, bytes, args->writable != 0));
    return there ? 0 : -EFAULT;
}

// --- objects of a process, by kind ----------------------------------------------------------------------------------

int attach_object_destroy(struct attach_thread *thread, const struct attach_object *object)
{
    struct plat_backend_inproc *backend = &thread->backend;
    const struct backend_gpu_ops *gpu = backend->ops.gpu;
    switch (object->kind) {
    case OBJECT_QP:
    case OBJECT_SRQ:
    case OBJECT_CQ:
    case OBJECT_EQ:
    case OBJECT_MR:
    case OBJECT_PD:
    case OBJECT_XRCD:
    case OBJECT_UAR:
        return attach_hca_object_destroy(thread, object);
    case OBJECT_GPU_QUEUE:
        return gpu->queue_destroy(backend, object->gpu, (uint32_t)object->number);
    case OBJECT_GPU_PIN:
        return gpu->unpin(backend, object->gpu, object->number);
    case OBJECT_GPU_MEMORY:
        return gpu->free(backend, object->gpu, object->number);
    case OBJECT_PINNED:
        pinned_free(thread, object);
        break;
    case OBJECT_BOARD:
        thread->process->server->board_owners[thread->process->node] = NULL;
        break;
    case OBJECT_KINDS:
        break;
    }
    return 0;
}

// --- threads and processes ------------------------------------------------------------------------------------------

static bool has_slot(const struct attach_process *process, pid_t tid)
{
    bool has = false;
    for (unsigned i = 0; i < process->slots && !has; i++) {
        has = process->threads[i] != NULL && process->segment->slots[i].tid == (uint32_t)tid;
    }
    return has;
}

// Does a thread run that has not attached itself? It only needs a processor to do so.
static bool new_thread_runs(const struct attach_process *process)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)process->reach.pid);
    DIR *tasks = opendir(path);
    bool runs = false;
    for (const struct dirent *task; tasks != NULL && !runs && (task = readdir(tasks)) != NULL;) {
        pid_t tid = (pid_t)strtol(task->d_name, NULL, 10);
        runs = tid > 0 && !has_slot(process, tid) && attach_runs(process->reach.pid, tid);
    }
    if (tasks != NULL) {
        (void)closedir(tasks);
    }
    return runs;
}

// Simulated time stops until the new thread has attached.
int64_t attach_serve_thread(struct attach_thread *thread, const struct attach_args_thread *args,
                            struct attach_reply_thread *reply)
{
    struct attach_process *process = thread->process;
    (void)args;
    (void)reply;
    struct attach_server *server = process->server;
    const uint64_t silent_ms = attach_real_time(server->real_percent, ATTACH_REAL_THREAD_STARTS_MS);
    unsigned before = process->thread_count;
    uint64_t since_ms = attach_silence_ms(server), began_ms = since_ms;
    while (process->thread_count == before) {
        attach_threads_find(server, true);
        (void)attach_process_check(process);
        bool late = attach_silence_ms(server) - since_ms > silent_ms;
        if (late && new_thread_runs(process)) {
            since_ms = attach_silence_ms(server);
            late = false;
        }
        if (!process->ended && (late || since_ms - began_ms > server->options->wall_limit_ms)) {
            attach_stranger_note(thread, late ? silent_ms : since_ms - began_ms);
        }
        if (process->ended || attach_stopped(server) || late) {
            attach_outside_note(server, late && !process->ended ? ATTACH_RUN_OUTSIDE_CLOCK : 0);
            return -ETIMEDOUT;
        }
        (void)sched_yield();
    }
    return 0;
}

int64_t attach_serve_thread_exit(struct attach_thread *thread, const struct attach_args_thread_exit *args,
                                 struct attach_reply_thread_exit *reply)
{
    (void)thread; // the thread ends before this request is served (thread.c)
    (void)args;
    (void)reply;
    return 0;
}

int64_t attach_serve_child(struct attach_thread *thread, const struct attach_args_child *args,
                           struct attach_reply_child *reply)
{
    struct attach_process *process = thread->process;
    (void)reply;
    return attach_is_child(process, args->pid) && attach_child_await(process, (pid_t)args->pid)
               ? attach_ids_of(process->server, args->pid)
               : -ECHILD;
}

int64_t attach_serve_id(struct attach_thread *thread, const struct attach_args_id *args, struct attach_reply_id *reply)
{
    (void)reply;
    return args->of_run != 0 ? attach_ids_real(thread->process, args->number)
                             : attach_ids_of(thread->process->server, args->number);
}

int64_t attach_serve_exec(struct attach_thread *thread, const struct attach_args_exec *args,
                          struct attach_reply_exec *reply)
{
    (void)args;
    (void)reply;
    thread->process->leaving = true;
    return 0;
}

// The last actions of the process are seen before its end: programs run in no simulated time, and the parent may notice
// both.
int64_t attach_serve_process_exit(struct attach_thread *thread, const struct attach_args_process_exit *args,
                                  struct attach_reply_process_exit *reply)
{
    (void)args;
    (void)reply;
    sim_thread_sleep(thread->process->server->sim, exit_ps);
    observe_process_exits(thread->process->observed);
    attach_fingerprint_note(thread->process);
    thread->process->leaving = true;
    return 0;
}
