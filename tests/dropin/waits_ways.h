// Part of waits.c.
// --- ways of waiting until `wanted` messages have been received ----------------------------------------------------------

static void tight(unsigned wanted)
{
    while (received < wanted) {
        (void)poll_receives();
    }
}

static void both_queues(unsigned wanted)
{
    while (received < wanted) {
        (void)poll_sends();
        (void)poll_receives();
    }
}

// Takes what there is, and looks at it only then.
static void drain(unsigned wanted)
{
    while (received < wanted) {
        unsigned taken = 0;
        while (taken < 8 && poll_receives() == 1) {
            taken++;
        }
    }
}

static void budget_then_sleep(unsigned wanted)
{
    for (unsigned polls = 0; received < wanted; polls++) {
        if (poll_receives() == 0 && polls % 5 == 4) {
            (void)usleep(3);
        }
    }
}

static void twice_then_block(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() != 0 || poll_receives() != 0) {
            continue;
        }
        struct ibv_cq *cq;
        void *context;
        CHECK(ibv_req_notify_cq(receives, 0) == 0);
        if (poll_receives() == 0) {
            CHECK(ibv_get_cq_event(loop.channel, &cq, &context) == 0);
            ibv_ack_cq_events(cq, 1);
        }
    }
}

// More polls after each one in vain, and then a pause.
static void backoff(unsigned wanted)
{
    for (unsigned step = 1; received < wanted; step = step < 16 ? 2 * step : 1) {
        for (unsigned i = 0; i < step && poll_receives() == 0; i++) {
        }
        if (step == 16 && received < wanted) {
            (void)usleep(1);
        }
    }
}

// Gives up after some polls, sends something, and waits for both.
static void early_exit(unsigned wanted)
{
    for (unsigned i = 0; i < 7 && received < wanted; i++) {
        (void)poll_receives();
    }
    uint64_t word = received;
    memcpy(loop.buffer + 64, &word, sizeof word);
    tight(wanted);
}

static void every_third(unsigned wanted)
{
    static unsigned calls;
    while (received < wanted) {
        if (++calls % 3 == 0) {
            (void)poll_sends();
        }
        (void)poll_receives();
    }
}

static void until_a_time(unsigned wanted)
{
    long long end = now_ns() + 1500;
    while (received < wanted && now_ns() < end) {
        (void)poll_receives();
    }
    tight(wanted);
}

// As the progress engines of MPI libraries do: they count their calls, do less urgent things every eighth time, and look
// at a clock there.
static void engine(unsigned wanted)
{
    static unsigned calls, looks;
    static long long last;
    while (received < wanted) {
        (void)poll_receives();
        if ((calls++ & 7) == 0) {
            (void)poll_sends();
            long long now = now_ns();
            if (now - last > 3000) {
                last = now;
                looks++;
                (void)usleep(looks % 2);
            }
        }
    }
}

// As UCX under Open MPI: a number of requests that has another value in each wait is compared, and a counter is divided.
static void with_a_number(unsigned wanted)
{
    static volatile unsigned outstanding, progress = 13;
    outstanding = (outstanding + 7) % 61;
    volatile unsigned calls = 1;
    for (; received < wanted; calls = calls + 1) {
        if (calls % progress == 0 || outstanding > 50) {
            (void)poll_sends();
        }
        (void)poll_receives();
    }
}

// One counter goes on from wait to wait, another one begins again, and registers have what the loop does not look at.
static void with_two_counters(unsigned wanted)
{
    static unsigned calls;
    volatile unsigned turns = 0;
    unsigned before = received;
    uint64_t noise = wanted * UINT64_C(0x9e3779b97f4a7c15);
    while (received < wanted) {
        if ((calls++ & 3) == 0) {
            (void)poll_sends();
        }
        turns = turns + 1;
        if (turns == 40) {
            turns = 0;
            (void)usleep(1);
        }
        (void)poll_receives();
    }
    __asm__ volatile("" : : "r"(noise), "r"(before));
}

// Two counters that are compared with each other: what the loop does depends on their difference.
static void with_a_difference(unsigned wanted)
{
    static volatile unsigned ahead, behind;
    behind = ahead - wanted % 9;
    while (received < wanted) {
        ahead++;
        if (ahead - behind > 20) {
            (void)poll_sends();
            behind += 5;
        }
        (void)poll_receives();
    }
}

// It does other things between polls that find nothing, in which nobody looks ahead of it: no loop that waits.
static void among_other_work(unsigned wanted)
{
    float value = 1;
    for (unsigned i = 0; i < 3000 && received < wanted; i++) {
#define CASE(number, name)                                                                                             \
    case number:                                                                                                       \
        __asm__ volatile(name " %0, %0" : "+x"(value));                                                                \
        break;
        switch (i * 7 % 6) {
            CASE(0, "mulss")
            CASE(1, "addss")
            CASE(2, "maxss")
            CASE(3, "minss")
            CASE(4, "subss")
            CASE(5, "sqrtss")
        }
#undef CASE
        (void)poll_receives();
    }
    tight(wanted);
}

// What the loop has written, and did not read, counts after it.
static void with_a_note(unsigned wanted)
{
    static volatile unsigned polled_in_vain, noted;
    while (received < wanted) {
        polled_in_vain = 0;
        while (poll_receives() == 0) {
            polled_in_vain = 1;
            noted = received + 1;
        }
        if (polled_in_vain != 0 && noted == received) {
            (void)usleep(1);
        }
    }
}

// --- ways that poll by calls -----------------------------------------------------------------------------------------------

static void with_yields(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() == 0) {
            (void)sched_yield();
        }
    }
}

static void arm(void)
{
    CHECK(ibv_req_notify_cq(receives, 0) == 0);
}

static void event_take(void)
{
    struct ibv_cq *cq;
    void *context;
    CHECK(ibv_get_cq_event(loop.channel, &cq, &context) == 0);
    ibv_ack_cq_events(cq, 1);
    arm();
    while (poll_receives() != 0) {
    }
}

// Looks whether the channel has an event, and now and then at the clock.
static void with_poll(unsigned wanted)
{
    struct pollfd channel = {.fd = loop.channel->fd, .events = POLLIN};
    unsigned looks = 0;
    arm();
    while (poll_receives() != 0) {
    }
    for (long long end = now_ns() + 400000; received < wanted;) {
        if (poll(&channel, 1, 0) == 1) {
            event_take();
        } else if (++looks % 16 == 0 && now_ns() > end) {
            tight(wanted);
        }
    }
}

static void with_select(unsigned wanted)
{
    arm();
    while (poll_receives() != 0) {
    }
    while (received < wanted) {
        fd_set set;
        struct timeval at_once = {0};
        FD_ZERO(&set);
        FD_SET(loop.channel->fd, &set);
        if (select(loop.channel->fd + 1, &set, NULL, NULL, &at_once) == 1) {
            event_take();
        }
    }
}

static void with_epoll(unsigned wanted)
{
    static int set = -1;
    if (set < 0) {
        struct epoll_event event = {.events = EPOLLIN | EPOLLET};
        set = epoll_create1(EPOLL_CLOEXEC);
        CHECK(set >= 0 && epoll_ctl(set, EPOLL_CTL_ADD, loop.channel->fd, &event) == 0);
    }
    arm();
    while (poll_receives() != 0) {
    }
    for (unsigned calls = 0; received < wanted; calls++) {
        struct epoll_event event;
        if (epoll_wait(set, &event, 1, 0) == 1) {
            event_take();
        } else if (calls % 4 == 0) {
            (void)poll_receives();
        }
    }
}

static int told_pipe[2];

static void *pipe_helper(void *arg)
{
    tight(*(const unsigned *)arg);
    CHECK(write(told_pipe[1], "", 1) == 1);
    return NULL;
}

// Another thread waits, and says so by a pipe that does not block.
static void with_a_pipe(unsigned wanted)
{
    pthread_t thread;
    char byte;
    if (told_pipe[1] == 0) {
        CHECK(pipe2(told_pipe, O_NONBLOCK) == 0);
    }
    CHECK(pthread_create(&thread, NULL, pipe_helper, &wanted) == 0);
    while (read(told_pipe[0], &byte, 1) != 1) {
        CHECK(errno == EAGAIN);
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

// --- ways that look at clocks ------------------------------------------------------------------------------------------------

static long long now_us(void)
{
    struct timeval now;
    (void)gettimeofday(&now, NULL);
    return now.tv_sec * 1000000LL + now.tv_usec;
}

// Polls again when some time has passed.
static void now_and_then(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() == 0) {
            for (long long end = now_ns() + 7777; now_ns() < end;) {
            }
        }
    }
}

static void by_wall_clock(unsigned wanted)
{
    while (received < wanted) {
        if (poll_receives() == 0) {
            for (long long end = now_us() + 12; now_us() < end;) {
            }
        }
    }
}

// Compares whole microseconds with a time, and does something else whenever another ten have passed.
static void in_microseconds(unsigned wanted)
{
    static long long last;
    long long begin = now_ns() / 1000;
    while (received < wanted && now_ns() / 1000 - begin < 40) {
        (void)poll_receives();
        if (now_ns() / 10000 != last) {
            last = now_ns() / 10000;
            (void)poll_sends();
        }
    }
    tight(wanted);
}

static double now_s(void) // as MPI_Wtime
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

// Gives up polling after a time, computes for some, and polls to the end.
static void in_seconds(unsigned wanted)
{
    double begin = now_s();
    while (received < wanted && now_s() - begin < 2.5e-6) {
        (void)poll_receives();
    }
    for (double end = now_s() + 5e-6; now_s() < end;) {
    }
    tight(wanted);
}
