#include "sim/cli/interrupt.h"

#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

// A signal handler gets no context; these variables are its only input.
static const char *volatile unfinished[CLI_INTERRUPT_SLOTS];
static volatile sig_atomic_t line_shown;
static const char *volatile loss;

static void say(const char *text)
{
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
}

static void tidy(int signal_number)
{
    for (size_t i = 0; i < CLI_INTERRUPT_SLOTS; i++) {
        if (unfinished[i] != NULL) {
            (void)unlink(unfinished[i]);
        }
    }
    if (line_shown) {
        say("\r\033[K");
    }
    if (signal_number != SIGPIPE) {
        say("tcasim: interrupted");
        if (loss != NULL) {
            say("; ");
            say(loss);
        }
        say("\n");
    }
    // SA_RESETHAND has restored the default action, so that the caller sees a program that ended by this signal.
    (void)raise(signal_number);
}

void cli_interrupt_init(void)
{
    struct sigaction action = {.sa_handler = tidy, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction before;
        // nohup and background shells ignore some of these signals; they stay ignored.
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
}

void cli_interrupt_child(void)
{
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == tidy) {
            (void)signal(signals[i], SIG_DFL);
        }
    }
    line_shown = 0;
    loss = NULL;
    for (size_t i = 0; i < CLI_INTERRUPT_SLOTS; i++) {
        unfinished[i] = NULL;
    }
}

void cli_interrupt_loss_set(const char *text)
{
    loss = text;
}

void cli_interrupt_file_set(unsigned slot, const char *path)
{
    unfinished[slot] = path;
}

void cli_interrupt_line_set(bool shown)
{
    line_shown = shown;
}

static void mask_change(int how)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        sigaddset(&set, signals[i]);
    }
    (void)sigprocmask(how, &set, NULL);
}

void cli_interrupt_hold(void)
{
    mask_change(SIG_BLOCK);
}

void cli_interrupt_release(void)
{
    mask_change(SIG_UNBLOCK);
}

int cli_interrupt_wait(unsigned milliseconds)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction now; // a signal that is ignored would be taken, too
        if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler == tidy) {
            sigaddset(&set, signals[i]);
        }
    }
    const struct timespec time = {milliseconds / 1000, (long)(milliseconds % 1000) * 1000000};
    int taken = sigtimedwait(&set, NULL, &time);
    return taken > 0 ? taken : 0;
}

// Called through a pointer: before functions that never return, AddressSanitizer unpoisons the stack, and it warns on
// one of SystemC's stacks.
static void (*const volatile leave)(int status) = _exit;

void cli_interrupt_leave(int status)
{
    leave(status);
}
