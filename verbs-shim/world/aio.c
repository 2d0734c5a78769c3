// Asynchronous input and output, and lookups of names (aio_read, lio_listio, getaddrinfo_a and their relatives). The C library
// carries them out in threads that it makes for itself, with all signals blocked: the simulator would not know them, and
// the filter for system calls ends a thread that blocks SIGSYS.
//
// Files are read and written, and names looked up, in the call itself, since that takes no simulated time. What may have to wait
// (pipes, sockets, terminals) has a thread of the program for each request; requests of one descriptor are carried out one
// after another, in their order. The error and the result stand where the C library's aio_error, aio_return, gai_error and
// gai_suspend look for them: in the control block.
//
// Leaves out: priorities (aio_reqprio), which order nothing here; aio_init, which is the C library's and changes nothing.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/world.h"

// Requests of a list, which is notified of as a whole.
struct list {
    unsigned left; // under `lock`
    struct sigevent event;
};

struct request {
    struct aiocb *block;
    struct list *list;
    struct request *next;
    bool begun, cancelled;
};

// The requests that have threads, in their order.
static struct request *in_flight;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint32_t finished; // counts requests; who waits for one waits for a change of it

// --- notifications --------------------------------------------------------------------------------------------------

static void *function_call(void *arg)
{
    const struct sigevent event = *(struct sigevent *)arg;
    free(arg);
    event.sigev_notify_function(event.sigev_value);
    return NULL;
}

static void thread_notify(const struct sigevent *event)
{
    struct sigevent *copy = malloc(sizeof *copy);
    pthread_attr_t detached;
    pthread_t thread;
    if (copy == NULL) {
        return; // as in the C library: there is nobody to tell
    }
    *copy = *event;
    (void)pthread_attr_init(&detached);
    (void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    const pthread_attr_t *attributes = event->sigev_notify_attributes;
    if (pthread_create(&thread, attributes != NULL ? attributes : &detached, function_call, copy) != 0) {
        free(copy);
    }
    (void)pthread_attr_destroy(&detached);
}

static void notify(const struct sigevent *event)
{
    if (event->sigev_notify == SIGEV_THREAD) {
        thread_notify(event);
    } else if (event->sigev_notify == SIGEV_SIGNAL) {
        siginfo_t info = {.si_signo = event->sigev_signo, .si_code = SI_ASYNCIO};
        info.si_pid = getpid();
        info.si_uid = getuid();
        info.si_value = event->sigev_value;
        attach_may_interrupt();
        world_signal_queue(0, &info);
    }
}

static bool event_is_valid(const struct sigevent *event)
{
    return event->sigev_notify == SIGEV_SIGNAL || event->sigev_notify == SIGEV_NONE ||
           event->sigev_notify == SIGEV_THREAD;
}

// --- requests -------------------------------------------------------------------------------------------------------

static ssize_t transfer(const struct aiocb *block)
{
    void *data = (void *)(uintptr_t)block->aio_buf; // volatile in aiocb
    bool writes = block->aio_lio_opcode == LIO_WRITE;
    ssize_t result = writes ? pwrite(block->aio_fildes, data, block->aio_nbytes, block->aio_offset)
                            : pread(block->aio_fildes, data, block->aio_nbytes, block->aio_offset);
    if (result < 0 && errno == ESPIPE) {
        result = writes ? write(block->aio_fildes, data, block->aio_nbytes)
                        : read(block->aio_fildes, data, block->aio_nbytes);
    }
    return result;
}

static int error_of(const struct aiocb *block)
{
    return __atomic_load_n(&block->__error_code, __ATOMIC_ACQUIRE);
}

static void finished_tell(void)
{
    (void)atomic_fetch_add(&finished, 1);
    (void)syscall(SYS_futex, &finished, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void block_finish(struct aiocb *block, ssize_t result, int error)
{
    block->__return_value = result;
    __atomic_store_n(&block->__error_code, result < 0 ? error : 0, __ATOMIC_RELEASE);
    finished_tell();
}

// Counts a request of the list as done; the last one notifies.
static void list_count(struct list *list)
{
    (void)pthread_mutex_lock(&lock);
    bool last = list != NULL && --list->left == 0;
    (void)pthread_mutex_unlock(&lock);
    if (last) {
        notify(&list->event);
        free(list);
    }
}

static void request_end(const struct sigevent *event, struct list *list)
{
    notify(event);
    list_count(list);
}

// Waits for the end of a request after `seen`. The result is that of futex(2).
static long finished_await(uint32_t seen, const struct timespec *deadline)
{
    long status =
        syscall(SYS_futex, &finished, FUTEX_WAIT_BITSET_PRIVATE, seen, deadline, NULL, FUTEX_BITSET_MATCH_ANY);
    return status == 0 ? 0 : -errno;
}

static bool is_turn_of(const struct request *request)
{
    const struct request *first = in_flight;
    while (first->block->aio_fildes != request->block->aio_fildes) {
        first = first->next;
    }
    return first == request;
}

static bool turn_await(struct request *request)
{
    for (;;) {
        uint32_t seen = atomic_load(&finished);
        (void)pthread_mutex_lock(&lock);
        request->begun = request->cancelled || is_turn_of(request);
        bool begun = request->begun, cancelled = request->cancelled;
        (void)pthread_mutex_unlock(&lock);
        if (begun) {
            return !cancelled;
        }
        (void)finished_await(seen, NULL);
    }
}

static void *request_run(void *arg)
{
    struct request *request = arg;
    struct aiocb *block = request->block;
    const struct sigevent event = block->aio_sigevent; // the block is the program's again when it has finished
    bool carried_out = turn_await(request);
    ssize_t result = carried_out ? transfer(block) : -1;
    int error = carried_out ? errno : ECANCELED;
    (void)pthread_mutex_lock(&lock);
    struct request **at = &in_flight;
    while (*at != request) {
        at = &(*at)->next;
    }
    *at = request->next;
    (void)pthread_mutex_unlock(&lock);
    block_finish(block, result, error);
    request_end(&event, request->list);
    free(request);
    return NULL;
}

static bool thread_begin(struct aiocb *block, struct list *list)
{
    pthread_t thread;
    struct request *request = calloc(1, sizeof *request), **at = &in_flight;
    if (request == NULL) {
        return false;
    }
    *request = (struct request){.block = block, .list = list};
    (void)pthread_mutex_lock(&lock);
    while (*at != NULL) {
        at = &(*at)->next;
    }
    *at = request;
    bool begun = pthread_create(&thread, NULL, request_run, request) == 0;
    *at = begun ? request : NULL;
    (void)pthread_mutex_unlock(&lock);
    if (begun) {
        (void)pthread_detach(thread);
    } else {
        free(request);
    }
    return begun;
}

static bool may_wait(int fd)
{
    struct stat status;
    return fstat(fd, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode);
}

static int refuse(struct aiocb *block, int error)
{
    block->__error_code = errno = error;
    block->__return_value = -1;
    return -1;
}

static int submit(struct aiocb *block, struct list *list)
{
    if (block->aio_reqprio < 0 || block->aio_reqprio > AIO_PRIO_DELTA_MAX || !event_is_valid(&block->aio_sigevent)) {
        return refuse(block, EINVAL);
    }
    block->__error_code = EINPROGRESS;
    if (may_wait(block->aio_fildes)) {
        return thread_begin(block, list) ? 0 : refuse(block, EAGAIN);
    }
    const struct sigevent event = block->aio_sigevent;
    ssize_t result = transfer(block);
    block_finish(block, result, errno);
    request_end(&event, list);
    return 0;
}

void world_aio_forked(void)
{
    in_flight = NULL;
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

// --- aio.h ----------------------------------------------------------------------------------------------------------

int aio_read(struct aiocb *block)
{
    if (!world_timed()) {
        return WORLD_REAL(aio_read)(block);
    }
    block->aio_lio_opcode = LIO_READ;
    return submit(block, NULL);
}

int aio_write(struct aiocb *block)
{
    if (!world_timed()) {
        return WORLD_REAL(aio_write)(block);
    }
    block->aio_lio_opcode = LIO_WRITE;
    return submit(block, NULL);
}

// What was queued before for a file has been written.
int aio_fsync(int operation, struct aiocb *block)
{
    if (!world_timed()) {
        return WORLD_REAL(aio_fsync)(operation, block);
    }
    if (operation != O_SYNC && operation != O_DSYNC) {
        errno = EINVAL;
        return -1;
    }
    if (fcntl(block->aio_fildes, F_GETFL) < 0) {
        return refuse(block, EBADF);
    }
    int result = operation == O_SYNC ? fsync(block->aio_fildes) : fdatasync(block->aio_fildes), error = errno;
    const struct sigevent event = block->aio_sigevent;
    block_finish(block, result, error);
    notify(&event);
    return 0;
}

static bool any_finished(const struct aiocb *const blocks[], int count)
{
    bool in_progress = false;
    for (int i = 0; i < count; i++) {
        if (blocks[i] != NULL && error_of(blocks[i]) != EINPROGRESS) {
            return true;
        }
        in_progress = in_progress || blocks[i] != NULL;
    }
    return !in_progress;
}

int aio_suspend(const struct aiocb *const blocks[], int count, const struct timespec *restrict timeout)
{
    if (!world_timed()) {
        return WORLD_REAL(aio_suspend)(blocks, count, timeout);
    }
    if (count < 0) {
        errno = EINVAL;
        return -1;
    }
    struct timespec deadline = world_clock_at(CLOCK_MONOTONIC, timeout != NULL ? world_deadline_after(timeout) : 0);
    long status = 0;
    while (status == 0 || status == -EAGAIN) { // EAGAIN: one has finished meanwhile
        uint32_t seen = atomic_load(&finished);
        if (any_finished(blocks, count)) {
            return 0;
        }
        status = finished_await(seen, timeout != NULL ? &deadline : NULL);
    }
    errno = status == -ETIMEDOUT ? EAGAIN : (int)-status;
    return -1;
}

int aio_cancel(int fd, struct aiocb *block)
{
    if (!world_timed()) {
        return WORLD_REAL(aio_cancel)(fd, block);
    }
    if (fcntl(fd, F_GETFL) < 0 || (block != NULL && block->aio_fildes != fd)) {
        errno = block != NULL && block->aio_fildes != fd ? EINVAL : EBADF;
        return -1;
    }
    unsigned found = 0, cancelled = 0;
    (void)pthread_mutex_lock(&lock);
    for (struct request *request = in_flight; request != NULL; request = request->next) {
        if (request->block->aio_fildes == fd && (block == NULL || request->block == block)) {
            found++;
            request->cancelled = request->cancelled || !request->begun;
            cancelled += request->cancelled;
        }
    }
    (void)pthread_mutex_unlock(&lock);
    if (cancelled != 0) {
        finished_tell();
    }
    return found == 0 ? AIO_ALLDONE : cancelled == found ? AIO_CANCELED : AIO_NOTCANCELED;
}

static bool is_to_do(const struct aiocb *block)
{
    return block != NULL && block->aio_lio_opcode != LIO_NOP;
}

// Submits the requests of the list; false: not all could be.
static bool list_submit(struct aiocb *const blocks[], int count, struct list *list)
{
    bool all = true;
    for (int i = 0; i < count; i++) {
        if (!is_to_do(blocks[i])) {
            continue;
        }
        int opcode = blocks[i]->aio_lio_opcode;
        int status = opcode == LIO_READ || opcode == LIO_WRITE ? submit(blocks[i], list) : refuse(blocks[i], EINVAL);
        if (status != 0) {
            all = false;
            list_count(list);
        }
    }
    return all;
}

static bool list_await(struct aiocb *const blocks[], int count)
{
    bool good = true;
    for (int i = 0; i < count; i++) {
        for (uint32_t seen = atomic_load(&finished); is_to_do(blocks[i]) && error_of(blocks[i]) == EINPROGRESS;
             seen = atomic_load(&finished)) {
            (void)finished_await(seen, NULL);
        }
        good = good && (!is_to_do(blocks[i]) || error_of(blocks[i]) == 0);
    }
    return good;
}

int lio_listio(int mode, struct aiocb *const blocks[restrict], int count, struct sigevent *restrict event)
{
    if (!world_timed()) {
        return WORLD_REAL(lio_listio)(mode, blocks, count, event);
    }
    struct list *list = calloc(1, sizeof *list);
    if (list == NULL || (mode != LIO_WAIT && mode != LIO_NOWAIT) || count < 0 ||
        (mode == LIO_NOWAIT && event != NULL && !event_is_valid(event))) {
        free(list);
        errno = list == NULL ? EAGAIN : EINVAL;
        return -1;
    }
    list->event.sigev_notify = SIGEV_NONE;
    if (mode == LIO_NOWAIT && event != NULL) {
        list->event = *event;
    }
    list->left = 1; // this call
    for (int i = 0; i < count; i++) {
        list->left += is_to_do(blocks[i]);
    }
    bool good = list_submit(blocks, count, list);
    list_count(list);
    good = good && (mode == LIO_NOWAIT || list_await(blocks, count));
    errno = good ? errno : EIO;
    return good ? 0 : -1;
}

// --- the same with offsets of 64 bits, which all have here -------------------------------------------------------------

int aio_read64(struct aiocb64 *block)
{
    return aio_read((struct aiocb *)block);
}

int aio_write64(struct aiocb64 *block)
{
    return aio_write((struct aiocb *)block);
}

int aio_fsync64(int operation, struct aiocb64 *block)
{
    return aio_fsync(operation, (struct aiocb *)block);
}

int aio_suspend64(const struct aiocb64 *const blocks[], int count, const struct timespec *restrict timeout)
{
    return aio_suspend((const struct aiocb *const *)blocks, count, timeout);
}

int aio_cancel64(int fd, struct aiocb64 *block)
{
    return aio_cancel(fd, (struct aiocb *)block);
}

int lio_listio64(int mode, struct aiocb64 *const blocks[restrict], int count, struct sigevent *restrict event)
{
    return lio_listio(mode, (struct aiocb *const *)blocks, count, event);
}

// --- names ----------------------------------------------------------------------------------------------------------

int getaddrinfo_a(int mode, struct gaicb *lookups[restrict], int count, struct sigevent *restrict event)
{
    if (!world_timed()) {
        return WORLD_REAL(getaddrinfo_a)(mode, lookups, count, event);
    }
    if (mode != GAI_WAIT && mode != GAI_NOWAIT) {
        errno = EINVAL;
        return EAI_SYSTEM;
    }
    for (int i = 0; i < count; i++) {
        struct gaicb *lookup = lookups[i];
        if (lookup != NULL) {
            lookup->__return = getaddrinfo(lookup->ar_name, lookup->ar_service, lookup->ar_request, &lookup->ar_result);
        }
    }
    if (mode == GAI_NOWAIT && event != NULL) {
        notify(event);
    }
    return 0;
}
