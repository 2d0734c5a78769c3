// A program on the system's libibverbs whose waits for events are interrupted: ibv_get_cq_event and ibv_get_async_event
// are read(2) in rdma-core. A signal ends them with EINTR unless its handler was set with SA_RESTART, and they are
// cancellation points, which hold nothing when their thread ends. It ends with status 0, or prints what was wrong.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include "loop.h"

enum { BYTES = 64 };

static struct loop loop;
static volatile sig_atomic_t handled;

static int await_completion(void)
{
    struct ibv_cq *cq;
    void *user;
    return ibv_get_cq_event(loop.channel, &cq, &user);
}

static int await_async(void)
{
    struct ibv_async_event event;
    return ibv_get_async_event(loop.context, &event);
}

static int (*const waits[])(void) = {await_completion, await_async};

// --- signals ----------------------------------------------------------------------------------------------------------

static void on_alarm(int number)
{
    (void)number;
    handled++;
}

static void alarm_after_us(int us, int flags)
{
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = flags};
    const struct itimerval once = {.it_value = {.tv_usec = us}};
    handled = 0;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
}

static void *send_later(void *arg)
{
    (void)usleep(3000);
    loop_post(&loop, IBV_WR_SEND);
    return arg;
}

static void restart(void)
{
    pthread_t thread;
    struct ibv_sge sge = {.addr = (uintptr_t)loop.buffer + BYTES, .length = BYTES, .lkey = loop.mr->lkey};
    struct ibv_recv_wr receive = {.sg_list = &sge, .num_sge = 1}, *bad;
    CHECK(ibv_post_recv(loop.qp, &receive, &bad) == 0);
    CHECK(ibv_req_notify_cq(loop.cq, 0) == 0);
    CHECK(pthread_create(&thread, NULL, send_later, NULL) == 0);
    alarm_after_us(1000, SA_RESTART);
    CHECK(await_completion() == 0);
    CHECK(handled == 1);
    CHECK(pthread_join(thread, NULL) == 0);
    ibv_ack_cq_events(loop.cq, 1);
}

// --- cancellation -----------------------------------------------------------------------------------------------------

static void *wait_in(void *wait)
{
    (void)(*(int (*const *)(void))wait)();
    return NULL;
}

static void cancel(int (*const *wait)(void))
{
    pthread_t thread;
    void *result = NULL;
    CHECK(pthread_create(&thread, NULL, wait_in, (void *)(uintptr_t)wait) == 0);
    (void)usleep(1000);
    CHECK(pthread_cancel(thread) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
}

int main(void)
{
    loop_open(&loop, BYTES);
    loop_connect(&loop);
    for (unsigned i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        alarm_after_us(1000, 0);
        CHECK(waits[i]() == -1);
        CHECK(errno == EINTR);
        CHECK(handled == 1);
        cancel(&waits[i]);
    }
    restart();
    loop_close(&loop);
    return 0;
}
