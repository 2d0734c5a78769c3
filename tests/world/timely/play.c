// Plays the rows of a theme: prints for each case when the call returned, in ns since the episode began, and what it
// returned.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "play.h"
#include "timely.h"

static const long begins_us[TIMELY_EPISODES] = {TIMELY_BEGIN_US, TIMELY_BEGIN_US, TIMELY_EARLY_US, 0,
                                                TIMELY_BEGIN_US, TIMELY_BEGIN_US, TIMELY_BEGIN_US};
static const long wakes_us[TIMELY_EPISODES] = {TIMELY_WOKEN_US, TIMELY_AGAIN_US, TIMELY_BEGIN_US, 0,
                                               TIMELY_WOKEN_US, TIMELY_WOKEN_US, TIMELY_WOKEN_US};

// --- how a system call is made --------------------------------------------------------------------------------------

static long call_by_syscall(long number, ...)
{
    long a[6];
    va_list list;
    va_start(list, number);
    for (unsigned i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    return timely_result(syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]));
}

static long call_by_instruction(long number, ...)
{
    long a[6], result = number;
    va_list list;
    va_start(list, number);
    for (unsigned i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    register long fourth __asm__("r10") = a[3];
    register long fifth __asm__("r8") = a[4];
    register long sixth __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(fourth), "r"(fifth), "r"(sixth)
                     : "rcx", "r11", "memory");
    return result;
}

// --- the waker ------------------------------------------------------------------------------------------------------

static void sleep_until(long at_ns)
{
    const struct timespec when = {.tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL) == EINTR) {
    }
}

struct waker {
    const struct timely_stage *stage;
    struct timely_scene *scene;
    enum timely_waker kind;
    long signal_ns; // 0: it sends none
    long at_ns;
    pthread_t thread;
    pid_t process;
    int end[2]; // a process ends when it is told to: no wait for a child may find it
};

static void *waker_run(void *arg)
{
    const struct waker *waker = arg;
    if (waker->stage->hold != NULL) {
        waker->stage->hold(waker->scene);
    }
    if (waker->signal_ns != 0) {
        sleep_until(waker->signal_ns);
        (void)tgkill(waker->scene->process, waker->scene->thread, SIGUSR2);
    }
    sleep_until(waker->at_ns);
    waker->stage->wake(waker->scene);
    return NULL;
}

static void waker_start(struct waker *waker)
{
    if (waker->kind == TIMELY_THREAD) {
        (void)pthread_create(&waker->thread, NULL, waker_run, waker);
        return;
    }
    char byte;
    (void)!pipe(waker->end);
    waker->process = fork();
    if (waker->process == 0) {
        (void)close(waker->end[1]);
        (void)waker_run(waker);
        _exit((int)read(waker->end[0], &byte, 1));
    }
}

static void waker_end(struct waker *waker)
{
    if (waker->kind == TIMELY_THREAD) {
        (void)pthread_join(waker->thread, NULL);
        return;
    }
    (void)close(waker->end[0]);
    (void)close(waker->end[1]);
    while (waitpid(waker->process, NULL, 0) < 0 && errno == EINTR) {
    }
}

// --- clocks ---------------------------------------------------------------------------------------------------------

static long clock_read_ns, realtime_ns; // what a read costs; CLOCK_REALTIME shows so much more than CLOCK_MONOTONIC

static void clocks_compare(void)
{
    struct timespec real;
    long first_ns = timely_now_ns();
    (void)clock_gettime(CLOCK_REALTIME, &real);
    long third_ns = timely_now_ns();
    clock_read_ns = (third_ns - first_ns) / 2;
    realtime_ns = real.tv_sec * 1000000000 + real.tv_nsec - first_ns - clock_read_ns;
}

// --- rows -----------------------------------------------------------------------------------------------------------

static void say(const struct timely_theme *theme, unsigned row, struct timely_case one, long at_ns, long result)
{
    char line[TIMELY_LINE_BYTES];
    timely_line_begin(line, theme, row, one);
    printf("%s %ld %ld\n", line, at_ns, result);
}

static void on_signal(int number)
{
    (void)number;
}

static void episode_play(const struct timely_theme *theme, unsigned index, struct timely_case one,
                         struct timely_scene *scene)
{
    const struct timely_row *row = &theme->rows[index];
    bool alone = row->stage == NULL || one.episode == TIMELY_LIMIT;
    const struct sigaction action = {.sa_handler = on_signal, .sa_flags = one.episode != TIMELY_ENDED ? SA_RESTART : 0};
    if (one.episode >= TIMELY_RESTARTED) {
        (void)sigaction(SIGUSR2, &action, NULL);
    }
    scene->limit_us = one.episode == TIMELY_LIMIT || one.episode == TIMELY_TIMED ? TIMELY_LIMIT_US : 0;
    if (row->stage != NULL && row->stage->arm != NULL) {
        row->stage->arm(scene);
    }
    long began_ns = scene->began_ns = timely_now_ns();
    struct waker waker = {.stage = row->stage,
                          .scene = scene,
                          .kind = one.waker,
                          .signal_ns = one.episode >= TIMELY_RESTARTED ? began_ns + TIMELY_SIGNAL_US * 1000 : 0,
                          .at_ns = began_ns + wakes_us[one.episode] * 1000};
    if (!alone) {
        waker_start(&waker);
        sleep_until(began_ns + begins_us[one.episode] * 1000);
    }
    errno = 0;
    long result = row->play(scene);
    long at_ns = timely_now_ns() - began_ns - clock_read_ns;
    if (result == -EINTR && one.episode >= TIMELY_RESTARTED) {
        (void)row->play(scene); // takes what the waker gives
    }
    if (!alone) {
        waker_end(&waker);
    }
    say(theme, index, one, at_ns, result);
}

static void scene_play(const struct timely_theme *theme, unsigned index, struct timely_case one)
{
    static long (*const calls[])(long number, ...) = {NULL, call_by_syscall, call_by_instruction};
    const struct timely_row *row = &theme->rows[index];
    struct timely_scene scene = {
        .process = getpid(), .thread = gettid(), .call = calls[one.way], .realtime_ns = realtime_ns};
    struct timely_expected expected;
    one.episode = TIMELY_WOKEN;
    bool ever = timely_expect(row, one, &expected);
    one.episode = TIMELY_LIMIT;
    if (!ever && !timely_expect(row, one, &expected)) {
        return;
    }
    scene.shared = mmap(NULL, sizeof *scene.shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (row->stage != NULL && row->stage->open != NULL) {
        row->stage->open(&scene);
    }
    for (unsigned episode = 0; episode < TIMELY_EPISODES; episode++) {
        one.episode = (enum timely_episode)episode;
        if (timely_expect(row, one, &expected)) {
            episode_play(theme, index, one, &scene);
        }
    }
    if (row->stage != NULL && row->stage->close != NULL) {
        row->stage->close(&scene);
    }
    (void)munmap(scene.shared, sizeof *scene.shared);
}

void timely_play(const struct timely_theme *theme)
{
    clocks_compare();
    for (unsigned row = 0; row < theme->count; row++) {
        for (unsigned way = 0; way < TIMELY_WAYS; way++) {
            for (unsigned waker = 0; waker < TIMELY_WAKERS; waker++) {
                scene_play(theme, row,
                           (struct timely_case){.way = (enum timely_way)way, .waker = (enum timely_waker)waker});
            }
        }
        (void)fflush(stdout); // also for children
    }
}

// --- for the rows ---------------------------------------------------------------------------------------------------

long timely_now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000 + now.tv_nsec;
}

static struct {
    pthread_t thread;
    long at_ns;
    void (*action)(void *);
    void *arg;
} later;

static void *later_run(void *unused)
{
    sleep_until(later.at_ns);
    later.action(later.arg);
    return unused;
}

void timely_later(const struct timely_scene *scene, long us, void (*action)(void *), void *arg)
{
    later.at_ns = scene->began_ns + us * 1000;
    later.action = action;
    later.arg = arg;
    (void)pthread_create(&later.thread, NULL, later_run, NULL);
}

void timely_later_end(void)
{
    (void)pthread_join(later.thread, NULL);
}

int timely_in_child(int (*run)(void *), void *arg)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        _exit(run(arg));
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}
