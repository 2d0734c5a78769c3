// What programs ask for: accesses, waits, memory, threads. Every number is checked here before a model sees it.
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "models/hca/abi/hca_abi.h"
#include "sim/attach/internal.h"

// Of one streaming read, and of one piece of pinned memory.
static const uint64_t read_max_bytes = 1ull << 30, pinned_max_bytes = 8ull << 30;

// What a process takes to end, about as on Linux.
static const uint64_t exit_ps = 100 * SIM_PS_PER_US;
// How long a thread that was created may take to come in.
enum { THREAD_MS = 1000 };

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

static int64_t read_register(struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t bar = request->arguments[0], offset = request->arguments[1], bytes = request->arguments[2], value;
    bool whole = (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && offset % bytes == 0;
    if (!whole || !attach_bar_allowed(thread->process, bar, offset, bytes)) {
        return -EINVAL;
    }
    int status = thread->backend.ops.read(&thread->backend, (enum backend_bar)bar, offset, (unsigned)bytes, &value);
    thread->slot->values[0] = value;
    return status;
}

static bool program_write(struct attach_process *process, uint64_t address, const void *data, size_t bytes)
{
    const struct iovec from = {(void *)(uintptr_t)data, bytes}, to = {(void *)(uintptr_t)address, bytes};
    attach_memory_settle(process->server, process->node);
    return process_vm_writev(process->pid, &from, 1, &to, 1, 0) == (ssize_t)bytes;
}

static int64_t read_combined(struct attach_thread *thread, const struct attach_request *request)
{
    uint64_t bar = request->arguments[0], offset = request->arguments[1], bytes = request->arguments[2];
    uint64_t address = request->arguments[3];
    if (bytes > read_max_bytes || (address == 0 && bytes > ATTACH_DATA_BYTES) ||
        !attach_bar_allowed(thread->process, bar, offset, bytes)) {
        return -EINVAL;
    }
    unsigned char *data = malloc(bytes != 0 ? bytes : 1);
    if (data == NULL) {
        return -ENOMEM;
    }
    int64_t status = thread->backend.ops.read_combined(&thread->backend, (enum backend_bar)bar, offset, data, bytes);
    if (address == 0) {
        memcpy(thread->slot->data, data, bytes);
    } else if (!program_write(thread->process, address, data, bytes)) {
        status = -EFAULT;
    }
    free(data);
    return status;
}

static int64_t wait_word(struct attach_thread *thread, const struct attach_request *request)
{
    sim_t *sim = thread->process->server->sim;
    uint64_t bus_address = request->arguments[0], timeout_ns = request->arguments[3];
    const struct attach_process *process = thread->process;
    bool known = bus_address != 0 ? attach_pinned_owned(process, bus_address, sizeof(uint64_t))
                                  : host_memory_pinned_address(thread->backend.memory, &process->owner,
                                                               request->arguments[4], &bus_address);
    if (!known || bus_address % sizeof(uint64_t) != 0) {
        return -EINVAL;
    }
    uint64_t most_ns = (SIM_NEVER_PS / 4 - sim_now_ps(sim)) / SIM_PS_PER_NS;
    uint64_t deadline_ps =
        timeout_ns == 0 || timeout_ns >= most_ns ? SIM_NEVER_PS : sim_now_ps(sim) + timeout_ns * SIM_PS_PER_NS;
    thread->slot->values[0] = deadline_ps;
    bool came = host_core_poll(thread->core, bus_address, request->arguments[1], request->arguments[2],
                               attach_alarm_before(process, deadline_ps));
    return came ? 0 : sim_now_ps(sim) < deadline_ps ? -EINTR : -ETIMEDOUT;
}

// --- pinned memory --------------------------------------------------------------------------------------------------

int attach_sealed_memory(uint64_t bytes)
{
    int fd = memfd_create("tcasim", MFD_CLOEXEC | MFD_ALLOW_SEALING);
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
    attach_ranges_remove(&thread->process->quiet, object->bus_address, object->bytes);
    attach_ranges_remove(&thread->process->news, object->bus_address, object->bytes);
    host_memory_unshare(memory, object->bus_address, object->bytes);
    thread->backend.ops.free_pinned(&thread->backend, &buffer);
}

static int64_t alloc(struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_process *process = thread->process;
    uint64_t bytes = (request->arguments[0] + 4095) & ~UINT64_C(4095);
    struct backend_buffer buffer;
    if (request->arguments[0] == 0) {
        return -EINVAL;
    }
    int status = request->arguments[0] > pinned_max_bytes
                     ? -ENOMEM
                     : thread->backend.ops.alloc_pinned(&thread->backend, bytes, &buffer);
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
        attach_object_remove(process, attach_object_find(process, OBJECT_PINNED, 0, object.number));
        pinned_free(thread, &object);
        good = false;
    }
    if (fd >= 0) {
        close(fd);
    }
    thread->slot->values[0] = buffer.bus_address;
    return good ? 0 : -ENOMEM;
}

// The board has no notion of processes: channels, descriptors and the places where nodes meet are there once. So one
// process a node has it at a time, as TCA Verbs is made for.
static int64_t board_claim(struct attach_thread *thread)
{
    struct attach_process *process = thread->process;
    const struct attach_process **owner = &process->server->board_owners[process->node];
    if (!process->server->scenario->nodes[process->node].board.given) {
        return -ENODEV;
    }
    const struct sim_wait_reason reason = {thread->name, "the end of the process that has the board", 0, 0};
    while (*owner != NULL && (*owner)->ended && !process->ended) {
        (void)sim_condition_wait(process->server->sim, &process->server->process_ended, SIM_NEVER_PS, &reason);
    }
    if (*owner != NULL) {
        thread->slot->values[0] = (*owner)->id;
        return *owner == process ? 0 : -EBUSY;
    }
    *owner = process;
    return attach_object_keep(thread, &(struct attach_object){.kind = OBJECT_BOARD});
}

static int64_t memory_check(const struct attach_process *process, const uint64_t *arguments)
{
    uint64_t address = arguments[0], bytes = arguments[1];
    bool there = bytes == 0 || (address + bytes > address &&
                                plat_process_memory_exists(process->pid, address, bytes, arguments[2] != 0));
    return there ? 0 : -EFAULT;
}

// --- what a process has, by kind ------------------------------------------------------------------------------------

int attach_object_destroy(struct attach_thread *thread, const struct attach_object *object)
{
    struct plat_backend_inproc *backend = &thread->backend;
    const struct backend_hca_ops *hca = backend->ops.hca;
    const struct backend_gpu_ops *gpu = backend->ops.gpu;
    uint32_t number = (uint32_t)object->number;
    switch (object->kind) {
    case OBJECT_QP:
        return hca->qp_destroy(backend, number);
    case OBJECT_SRQ:
        return hca->srq_destroy(backend, number);
    case OBJECT_CQ:
        return hca->cq_destroy(backend, number);
    case OBJECT_EQ:
        return hca->eq_destroy(backend, number);
    case OBJECT_MR:
        return attach_region_destroy(thread, object);
    case OBJECT_PD:
        return hca->pd_destroy(backend, number);
    case OBJECT_XRCD:
        return hca->xrcd_destroy(backend, number);
    case OBJECT_UAR:
        hca->uar_free(backend, number);
        break;
    case OBJECT_GPU_QUEUE:
        return gpu->queue_destroy(backend, object->gpu, number);
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

int64_t attach_object_keep(struct attach_thread *thread, const struct attach_object *object)
{
    int status = attach_object_add(thread->process, object);
    if (status != 0) {
        (void)attach_object_destroy(thread, object);
    }
    return status;
}

int64_t attach_object_release(struct attach_thread *thread, enum attach_object_kind kind, uint32_t gpu, uint64_t number)
{
    const struct attach_object *object = attach_object_find(thread->process, kind, gpu, number);
    if (object == NULL) {
        return -EINVAL;
    }
    const struct attach_object copy = *object; // others may come and go while a driver waits
    int status = attach_object_destroy(thread, &copy);
    struct attach_object *now = attach_object_find(thread->process, kind, gpu, number);
    if (status == 0 && now != NULL) {
        attach_object_remove(thread->process, now);
    }
    return status;
}

// --- threads --------------------------------------------------------------------------------------------------------

// Simulated time stands still until the new thread has come in.
static int64_t thread_await(struct attach_process *process)
{
    struct attach_server *server = process->server;
    unsigned before = process->thread_count;
    uint64_t since_ms = attach_real_ms();
    for (unsigned i = 0; process->thread_count == before; i++) {
        attach_threads_find(server, true);
        attach_processes_check(server);
        bool late = attach_real_ms() - since_ms > THREAD_MS;
        if (process->ended || attach_stopped(server) || late) {
            attach_outside_note(server, late && !process->ended ? ATTACH_RUN_OUTSIDE_CLOCK : 0);
            return -ETIMEDOUT;
        }
        (void)sched_yield();
    }
    return 0;
}

// --- dispatch -------------------------------------------------------------------------------------------------------

int64_t attach_request_do(struct attach_thread *thread, const struct attach_request *request)
{
    struct attach_server *server = thread->process->server;
    const uint64_t *arguments = request->arguments;
    if (request->op >= ATTACH_OPS) {
        return -ENOSYS;
    }
    if (request->op >= ATTACH_OP_HCA_UAR_ALLOC) {
        return attach_request_hca(thread, request);
    }
    if (request->op >= ATTACH_OP_GPU_INFO) {
        return attach_request_gpu(thread, request);
    }
    switch (request->op) {
    case ATTACH_OP_READ:
        return read_register(thread, request);
    case ATTACH_OP_READ_COMBINED:
        return read_combined(thread, request);
    case ATTACH_OP_WAIT_WORD:
        return wait_word(thread, request);
    case ATTACH_OP_WAIT:
        return attach_thread_wait(thread, (unsigned)arguments[0], arguments[1]);
    case ATTACH_OP_POLL:
        return attach_thread_poll(thread, request);
    case ATTACH_OP_FUTEX_WAIT:
        return attach_futex_sleep(thread, arguments[3]);
    case ATTACH_OP_FUTEX_WAKE:
        return attach_futex_release(thread->process, request);
    case ATTACH_OP_FUTEX_REQUEUE:
        return attach_futex_move(thread, request);
    case ATTACH_OP_CHILD:
        return attach_is_child(thread->process, arguments[0]) && attach_await(server, (pid_t)arguments[0])
                   ? attach_ids_of(server, arguments[0])
                   : -ECHILD;
    case ATTACH_OP_ID:
        return arguments[1] != 0 ? attach_ids_real(thread->process, arguments[0]) : attach_ids_of(server, arguments[0]);
    case ATTACH_OP_THREAD:
        return thread_await(thread->process);
    case ATTACH_OP_PROCESS_EXIT:
        // What it said last is heard before its end is: programs run in no time, and its parent may know it by both.
        sim_thread_sleep(thread->process->server->sim, exit_ps);
        observe_process_exits(thread->process->observed);
        thread->process->leaving = true;
        return 0;
    case ATTACH_OP_EXEC:
        thread->process->leaving = true;
        return 0;
    case ATTACH_OP_ALLOC:
        return alloc(thread, request);
    case ATTACH_OP_BOARD_CLAIM:
        return board_claim(thread);
    case ATTACH_OP_BOARD_RELEASE:
        return attach_object_release(thread, OBJECT_BOARD, 0, 0);
    case ATTACH_OP_MEMORY_CHECK:
        return memory_check(thread->process, arguments);
    case ATTACH_OP_FREE:
        return attach_object_release(thread, OBJECT_PINNED, 0, arguments[0]);
    case ATTACH_OP_QUIET:
        return attach_ranges_add(thread->process, &thread->process->quiet, arguments[0], arguments[1]);
    case ATTACH_OP_NEWS:
        return attach_ranges_add(thread->process, &thread->process->news, arguments[0], arguments[1]);
    }
    return 0; // NOTHING
}
