// The ways of waiting in waits.c beside another thread or process.

// Another thread waits for the messages, and says so in memory.
static volatile bool told;

static void *helper(void *arg)
{
    tight(*(const unsigned *)arg);
    told = true;
    return NULL;
}

static void with_a_thread(unsigned wanted)
{
    pthread_t thread;
    told = false;
    CHECK(pthread_create(&thread, NULL, helper, &wanted) == 0);
    while (!told) {
        (void)poll_sends();
    }
    CHECK(pthread_join(thread, NULL) == 0);
}

// A loop sets a word of its process back and forth from poll to poll. Another thread looks at it from poll to poll.
static volatile unsigned phase;

static void *watcher(void *arg)
{
    for (unsigned seen = 0; seen < *(const unsigned *)arg % 5; seen++) {
        while (phase != 2) {
            (void)poll_sends();
        }
        while (phase == 2) {
            (void)poll_sends();
        }
    }
    told = true;
    return NULL;
}

static void with_a_toggle(unsigned wanted)
{
    pthread_t thread;
    told = false;
    CHECK(pthread_create(&thread, NULL, watcher, &wanted) == 0);
    while (!told) {
        phase = 1;
        (void)poll_receives();
        phase = 2;
        (void)poll_sends();
        phase = 0;
    }
    CHECK(pthread_join(thread, NULL) == 0);
    tight(wanted);
}

// What was seen tells when the wait ends.
static void polls_follow(unsigned seen)
{
    for (unsigned i = 0; i < seen % 16; i++) {
        (void)poll_sends();
    }
}

// Takes a lock around one of its polls, beside a thread that takes it now and then, sometimes for longer. How often that
// thread has found it free tells how many polls follow.
static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
static volatile unsigned found_free;

static void *rival(void *arg)
{
    const struct timespec between = {.tv_nsec = 730}, held = {.tv_nsec = 190};
    for (unsigned i = 0; !told; i++) {
        (void)nanosleep(&between, NULL);
        if (i % 3 == 0) {
            CHECK(pthread_mutex_lock(&guard) == 0);
            (void)nanosleep(&held, NULL);
            CHECK(pthread_mutex_unlock(&guard) == 0);
        } else if (pthread_mutex_trylock(&guard) == 0) {
            found_free++;
            CHECK(pthread_mutex_unlock(&guard) == 0);
        }
    }
    return arg;
}

static void with_a_lock(unsigned wanted)
{
    pthread_t thread;
    told = false;
    CHECK(pthread_create(&thread, NULL, rival, NULL) == 0);
    while (received < wanted) {
        CHECK(pthread_mutex_lock(&guard) == 0);
        (void)poll_receives();
        CHECK(pthread_mutex_unlock(&guard) == 0);
        (void)poll_sends();
    }
    told = true;
    CHECK(pthread_join(thread, NULL) == 0);
    polls_follow(found_free);
}

// Sets a word to other values between polls by calls, readings of a clock and polls of a queue. A thread that sleeps reads it
// now and then. What it has read tells how many polls follow.
static unsigned pulses_seen;

static void *pulse_reader(void *arg)
{
    const struct timespec between = {.tv_nsec = 370};
    while (!told) {
        (void)nanosleep(&between, NULL);
        pulses_seen = pulses_seen * 5 + phase;
    }
    return arg;
}

static void with_a_pulse(unsigned wanted)
{
    pthread_t thread;
    int ends[2];
    CHECK(pipe(ends) == 0);
    told = false;
    pulses_seen = 0;
    CHECK(pthread_create(&thread, NULL, pulse_reader, NULL) == 0);
    while (received < wanted) {
        phase = 1;
        (void)poll_receives();
        phase = 2;
        (void)now_ns();
        phase = 3;
        (void)poll_receives();
        phase = 4;
        CHECK(poll(&(struct pollfd){.fd = ends[0], .events = POLLIN}, wanted % 2, 0) == 0);
        phase = 0;
        (void)poll_sends();
    }
    told = true;
    CHECK(pthread_join(thread, NULL) == 0 && close(ends[0]) == 0 && close(ends[1]) == 0);
    polls_follow(pulses_seen);
}

// Another process says in shared memory when to go on.
static void with_a_process(unsigned wanted)
{
    static volatile unsigned *said;
    if (said == NULL) {
        said = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        CHECK(said != MAP_FAILED);
    }
    *said = 0;
    pid_t child = fork();
    if (child == 0) {
        (void)usleep(wanted % 4);
        *said = wanted;
        _exit(0);
    }
    while (*said != wanted) {
        (void)poll_receives();
    }
    tight(wanted);
    CHECK(waitpid(child, NULL, 0) == child);
}

// A thread that polls copies a word, and takes the copy back in the middle of its loop or keeps it: another one waits for that.
static volatile unsigned word_to_copy, copied, flashed;
static volatile bool copies;

static void *copier(void *arg)
{
    while (copies) {
        flashed = word_to_copy;
        (void)poll_sends();
        flashed = 0;
        if (received < *(const unsigned *)arg) {
            (void)poll_receives();
        }
        copied = word_to_copy;
    }
    return NULL;
}

static void with_a_copier(unsigned wanted, const volatile unsigned *watched)
{
    pthread_t thread;
    word_to_copy = copied = 0;
    copies = true;
    CHECK(pthread_create(&thread, NULL, copier, &wanted) == 0);
    for (unsigned i = 1; i <= 5; i++) {
        (void)usleep(i * wanted % 7);
        word_to_copy = i;
        while (*watched != i) {
            (void)sched_yield();
        }
    }
    copies = false;
    CHECK(pthread_join(thread, NULL) == 0);
    tight(wanted);
}

static void with_a_copy(unsigned wanted)
{
    with_a_copier(wanted, &copied);
}

static void with_a_flash(unsigned wanted)
{
    with_a_copier(wanted, &flashed);
}
