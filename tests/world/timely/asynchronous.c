// Asynchronous requests (aio(7), lio_listio(3), getaddrinfo_a(3)): of a file they are over at once, of a pipe when another thread
// has written to it.
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "timely.h"

enum { FILE_BYTES = 4, OFFSET = 1, VALUE = 77 };

struct subject {
    int reads, writes; // a pipe's ends, or twice the descriptor of a file
};

static struct subject pipe_make(void)
{
    int fds[2] = {-1, -1};
    (void)pipe(fds);
    return (struct subject){fds[0], fds[1]};
}

static struct subject file_make(void)
{
    int fd = memfd_create("file", 0);
    (void)write(fd, "abcd", FILE_BYTES);
    return (struct subject){fd, fd};
}

static void subject_close(const struct subject *subject)
{
    (void)close(subject->reads);
    (void)close(subject->writes);
}

static void byte_write(void *arg)
{
    const struct subject *subject = arg;
    (void)write(subject->writes, "x", 1);
}

static struct aiocb request(int fd, char *data, size_t bytes)
{
    struct aiocb block = {.aio_fildes = fd, .aio_buf = data, .aio_nbytes = bytes};
    block.aio_sigevent.sigev_notify = SIGEV_NONE;
    return block;
}

// Waits for the end of the request. Its result, or -errno of the request.
static long finish(struct aiocb *block)
{
    const struct aiocb *const list[] = {block};
    while (aio_error(block) == EINPROGRESS) {
        (void)aio_suspend(list, 1, NULL);
    }
    int error = aio_error(block);
    ssize_t result = aio_return(block);
    return result < 0 ? -error : result;
}

// --- one request ----------------------------------------------------------------------------------------------------

static long by_aio_read(struct timely_scene *scene)
{
    struct subject pipe = pipe_make();
    char byte = 0;
    struct aiocb block = request(pipe.reads, &byte, 1);
    timely_later(scene, TIMELY_WOKEN_US, byte_write, &pipe);
    bool in_progress = aio_read(&block) == 0 && aio_error(&block) == EINPROGRESS;
    long result = finish(&block);
    timely_later_end();
    subject_close(&pipe);
    return in_progress && byte == 'x' ? result : -1;
}

static long by_aio_read64(struct timely_scene *scene)
{
    struct subject file = file_make();
    char data[FILE_BYTES] = "";
    struct aiocb64 block = {.aio_fildes = file.reads, .aio_buf = data, .aio_nbytes = FILE_BYTES, .aio_offset = OFFSET};
    block.aio_sigevent.sigev_notify = SIGEV_NONE;
    (void)scene;
    long status = timely_result(aio_read64(&block));
    subject_close(&file);
    return status == 0 && aio_error64(&block) == 0 && memcmp(data, "bcd", 3) == 0 ? aio_return64(&block) : -1;
}

static long by_aio_read_of_nothing(struct timely_scene *scene)
{
    char byte;
    struct aiocb block = request(-1, &byte, 1);
    (void)scene;
    return aio_read(&block) == 0 ? finish(&block) : -1;
}

static long by_aio_write(struct timely_scene *scene)
{
    struct subject file = file_make();
    char data[] = "efg", found[FILE_BYTES] = "";
    struct aiocb block = request(file.writes, data, 3);
    block.aio_offset = OFFSET;
    (void)scene;
    long result = aio_write(&block) == 0 ? finish(&block) : -1;
    (void)pread(file.reads, found, FILE_BYTES, 0);
    subject_close(&file);
    return memcmp(found, "aefg", FILE_BYTES) == 0 ? result : -1;
}

// Two requests for a pipe are carried out in their order.
static long by_aio_write64(struct timely_scene *scene)
{
    struct subject pipe = pipe_make();
    char first[] = "ab", second[] = "cd", found[FILE_BYTES] = "";
    struct aiocb blocks[2] = {request(pipe.writes, first, 2), request(pipe.writes, second, 2)};
    (void)scene;
    bool begun = aio_write64((struct aiocb64 *)&blocks[0]) == 0 && aio_write64((struct aiocb64 *)&blocks[1]) == 0;
    long bytes = finish(&blocks[1]) + finish(&blocks[0]);
    (void)read(pipe.reads, found, FILE_BYTES);
    subject_close(&pipe);
    return begun && memcmp(found, "abcd", FILE_BYTES) == 0 ? bytes : -1;
}

static long by_aio_fsync(struct timely_scene *scene)
{
    struct subject file = file_make();
    char byte = 0;
    struct aiocb block = request(file.writes, &byte, 0);
    (void)scene;
    bool refused = aio_fsync(O_RDONLY, &block) == -1 && errno == EINVAL;
    long result = aio_fsync(O_SYNC, &block) == 0 ? finish(&block) : -1;
    subject_close(&file);
    return refused ? result : -1;
}

static long by_aio_fsync64(struct timely_scene *scene)
{
    struct aiocb64 block = {.aio_fildes = -1};
    (void)scene;
    return timely_result(aio_fsync64(O_DSYNC, &block));
}

// --- waits ----------------------------------------------------------------------------------------------------------

static long by_aio_suspend(struct timely_scene *scene)
{
    struct subject pipe = pipe_make();
    char byte = 0;
    struct aiocb block = request(pipe.reads, &byte, 1);
    const struct aiocb *const list[] = {NULL, &block};
    const struct timespec limit = {.tv_nsec = TIMELY_WOKEN_US * 1000};
    (void)scene;
    (void)aio_read(&block);
    long status = timely_result(aio_suspend(list, 2, &limit));
    byte_write(&pipe);
    status = finish(&block) == 1 ? status : -1;
    subject_close(&pipe);
    return status;
}

static void on_signal(int number)
{
    (void)number;
}

static void signal_waiter(void *arg)
{
    const struct timely_scene *scene = arg;
    (void)tgkill(scene->process, scene->thread, SIGUSR1);
}

static long by_aio_suspend64(struct timely_scene *scene)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct subject pipe = pipe_make();
    char byte = 0;
    struct aiocb block = request(pipe.reads, &byte, 1);
    const struct aiocb64 *const list[] = {(struct aiocb64 *)&block};
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)aio_read(&block);
    timely_later(scene, TIMELY_WOKEN_US, signal_waiter, scene);
    long status = timely_result(aio_suspend64(list, 1, NULL));
    timely_later_end();
    byte_write(&pipe);
    status = finish(&block) == 1 ? status : -1;
    subject_close(&pipe);
    return status;
}

// The first of two requests for a pipe is carried out, the second one waits for it.
static long by_aio_cancel(struct timely_scene *scene)
{
    struct subject pipe = pipe_make();
    char bytes[2] = "";
    struct aiocb first = request(pipe.reads, &bytes[0], 1), second = request(pipe.reads, &bytes[1], 1);
    (void)scene;
    (void)aio_read(&first);
    (void)aio_read(&second);
    (void)usleep(TIMELY_BEGIN_US);
    bool one = aio_cancel(pipe.reads, &second) == AIO_CANCELED && finish(&second) == -ECANCELED;
    bool other = aio_cancel(pipe.reads, NULL) == AIO_NOTCANCELED;
    byte_write(&pipe);
    long result = finish(&first);
    bool done = aio_cancel(pipe.reads, NULL) == AIO_ALLDONE;
    subject_close(&pipe);
    return one && other && done ? result : -1;
}

static long by_aio_cancel64(struct timely_scene *scene)
{
    (void)scene;
    return timely_result(aio_cancel64(-1, NULL));
}

// --- notifications --------------------------------------------------------------------------------------------------

static volatile sig_atomic_t notified;

static void on_notification(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    notified = info->si_code == SI_ASYNCIO ? info->si_value.sival_int : -1;
}

static void handle_notification(void)
{
    struct sigaction action = {.sa_flags = SA_SIGINFO};
    action.sa_sigaction = on_notification;
    notified = 0;
    (void)sigaction(SIGUSR2, &action, NULL);
}

static sem_t told;

static void on_end(union sigval value)
{
    notified = value.sival_int;
    (void)sem_post(&told);
}

// How the program is told of the end of a request, and how it waits for that.
static long notified_by(struct timely_scene *scene, int how, void (*await)(void))
{
    struct subject pipe = pipe_make();
    char byte = 0;
    struct aiocb block = request(pipe.reads, &byte, 1);
    block.aio_sigevent.sigev_notify = how;
    block.aio_sigevent.sigev_signo = SIGUSR2;
    block.aio_sigevent.sigev_notify_function = on_end;
    block.aio_sigevent.sigev_value.sival_int = VALUE;
    handle_notification();
    (void)sem_init(&told, 0, 0);
    (void)aio_read(&block);
    timely_later(scene, TIMELY_WOKEN_US, byte_write, &pipe);
    await();
    long result = finish(&block) == 1 ? notified : -1;
    timely_later_end();
    subject_close(&pipe);
    return result;
}

static void await_signal(void)
{
    (void)pause();
}

static void await_thread(void)
{
    (void)sem_wait(&told);
}

static long by_aio_read_with_signal(struct timely_scene *scene)
{
    return notified_by(scene, SIGEV_SIGNAL, await_signal);
}

static long by_aio_read_with_thread(struct timely_scene *scene)
{
    return notified_by(scene, SIGEV_THREAD, await_thread);
}

// --- lists ----------------------------------------------------------------------------------------------------------

static long by_lio_listio(struct timely_scene *scene)
{
    struct subject pipe = pipe_make(), file = file_make();
    char byte = 0, data[FILE_BYTES] = "";
    struct aiocb blocks[2] = {request(pipe.reads, &byte, 1), request(file.reads, data, FILE_BYTES)};
    struct aiocb *const list[] = {&blocks[0], NULL, &blocks[1]};
    blocks[0].aio_lio_opcode = blocks[1].aio_lio_opcode = LIO_READ;
    timely_later(scene, TIMELY_WOKEN_US, byte_write, &pipe);
    long status = timely_result(lio_listio(LIO_WAIT, list, 3, NULL));
    long bytes = finish(&blocks[0]) + finish(&blocks[1]);
    timely_later_end();
    subject_close(&pipe);
    subject_close(&file);
    return status == 0 ? bytes : status;
}

static long by_lio_listio_of_nothing(struct timely_scene *scene)
{
    char byte = 0;
    struct aiocb block = request(-1, &byte, 1);
    struct aiocb *const list[] = {&block};
    (void)scene;
    block.aio_lio_opcode = LIO_WRITE;
    return timely_result(lio_listio(LIO_WAIT, list, 1, NULL));
}

// The list's notification comes after that of its last request.
static long by_lio_listio64(struct timely_scene *scene)
{
    struct subject pipe = pipe_make(), file = file_make();
    char byte = 0, data[FILE_BYTES] = "";
    struct aiocb blocks[2] = {request(pipe.reads, &byte, 1), request(file.reads, data, FILE_BYTES)};
    struct aiocb64 *const list[] = {(struct aiocb64 *)&blocks[0], (struct aiocb64 *)&blocks[1]};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2, .sigev_value.sival_int = VALUE};
    blocks[0].aio_lio_opcode = blocks[1].aio_lio_opcode = LIO_READ;
    handle_notification();
    long status = timely_result(lio_listio64(LIO_NOWAIT, list, 2, &event));
    timely_later(scene, TIMELY_WOKEN_US, byte_write, &pipe);
    (void)pause();
    long result = status == 0 && finish(&blocks[0]) == 1 ? notified : -1;
    timely_later_end();
    subject_close(&pipe);
    subject_close(&file);
    return result;
}

static long by_getaddrinfo_a(struct timely_scene *scene)
{
    struct gaicb lookup = {.ar_name = "node0"}, nobody = {.ar_name = "nobody.example"};
    struct gaicb *lookups[] = {&lookup, &nobody};
    (void)scene;
    int status = getaddrinfo_a(GAI_WAIT, lookups, 2, NULL);
    bool found = gai_error(&lookup) == 0 && lookup.ar_result != NULL;
    if (found) {
        freeaddrinfo(lookup.ar_result);
    }
    return status == 0 && found ? gai_error(&nobody) : -1;
}

#define WOKEN .at_us = TIMELY_WOKEN_US

static const struct timely_row rows[] = {
    TIMELY_ROW(FUNCTION, "aio_read", by_aio_read, 1, WOKEN),
    TIMELY_ROW(FUNCTION, "aio_read", by_aio_read_of_nothing, -EBADF),
    TIMELY_ROW(FUNCTION, "aio_read", by_aio_read_with_signal, VALUE, WOKEN),
    TIMELY_ROW(FUNCTION, "aio_read", by_aio_read_with_thread, VALUE, WOKEN),
    TIMELY_ROW(FUNCTION, "aio_read64", by_aio_read64, FILE_BYTES - OFFSET),
    TIMELY_ROW(FUNCTION, "aio_write", by_aio_write, FILE_BYTES - OFFSET),
    TIMELY_ROW(FUNCTION, "aio_write64", by_aio_write64, FILE_BYTES),
    TIMELY_ROW(FUNCTION, "aio_fsync", by_aio_fsync, 0),
    TIMELY_ROW(FUNCTION, "aio_fsync64", by_aio_fsync64, -EBADF),
    TIMELY_ROW(FUNCTION, "aio_suspend", by_aio_suspend, -EAGAIN, WOKEN),
    TIMELY_ROW(FUNCTION, "aio_suspend64", by_aio_suspend64, -EINTR, WOKEN),
    TIMELY_ROW(FUNCTION, "aio_cancel", by_aio_cancel, 1, .at_us = TIMELY_BEGIN_US),
    TIMELY_ROW(FUNCTION, "aio_cancel64", by_aio_cancel64, -EBADF),
    TIMELY_ROW(FUNCTION, "lio_listio", by_lio_listio, 1 + FILE_BYTES, WOKEN),
    TIMELY_ROW(FUNCTION, "lio_listio", by_lio_listio_of_nothing, -EIO),
    TIMELY_ROW(FUNCTION, "lio_listio64", by_lio_listio64, VALUE, WOKEN),
    TIMELY_ROW(FUNCTION, "getaddrinfo_a", by_getaddrinfo_a, EAI_NONAME),
};
TIMELY_THEME(asynchronous, rows);
