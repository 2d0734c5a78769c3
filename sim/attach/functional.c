// Without simulated time: programs run freely, an attach call is an ordinary call, and devices work at the pace of the
// real clock, so that their timeouts have their real length.
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "sim/attach/internal.h"

enum { SOCKETS_MAX = 256 };

static uint64_t real_ps(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec) * SIM_PS_PER_NS;
}

bool attach_functional_await(struct attach_thread *thread)
{
    const struct sim_wait_reason reason = {thread->name, "its program to ask for something", 0, 0};
    thread->token.free = true;
    while (attach_token_is_program(thread) && !thread->process->ended) {
        (void)sim_condition_wait(thread->process->server->sim, &thread->wait.woken, SIM_NEVER_PS, &reason);
    }
    thread->token.free = false;
    return !attach_token_is_program(thread);
}

// Is a request outstanding? Then the simulator must not sleep.
static bool requests_wake(struct attach_server *server)
{
    bool busy = false;
    for (struct attach_process *process = server->processes; process != NULL; process = process->next) {
        for (unsigned i = 0; i < process->slots; i++) {
            struct attach_thread *thread = process->threads[i];
            if (thread != NULL && thread->token.free && !attach_token_is_program(thread)) {
                sim_condition_signal(server->sim, &thread->wait.woken);
            }
            busy = busy || (thread != NULL && !attach_token_is_program(thread));
        }
    }
    return busy;
}

static void bells_wait(struct attach_server *server)
{
    uint64_t ahead_ps = sim_next_due_ps(server->sim) - sim_now_ps(server->sim);
    uint64_t most_ns =
        attach_real_time(server->real_percent,
                         ahead_ps < SIM_PS_PER_MS ? ATTACH_REAL_FUNCTIONAL_BUSY_NS : ATTACH_REAL_FUNCTIONAL_QUIET_NS);
    const struct timespec time = {.tv_nsec = (long)most_ns};
    struct pollfd bells[SOCKETS_MAX] = {{.fd = server->listener.fd, .events = POLLIN}};
    unsigned count = 1;
    for (struct attach_process *p = server->processes; p != NULL && count < SOCKETS_MAX; p = p->next) {
        bells[count++] = (struct pollfd){.fd = p->ended ? -1 : p->socket, .events = POLLIN};
    }
    (void)ppoll(bells, count, &time, NULL);
    for (unsigned i = 1; i < count; i++) {
        char bytes[16];
        while ((bells[i].revents & POLLIN) != 0 && recv(bells[i].fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
        }
    }
}

// Programs that run freely may do so for ever, unless the user sets a limit.
static void silence_note(struct attach_server *server)
{
    uint64_t limit_ms = server->options->silence_limit_ms, now_ms = attach_silence_ms(server);
    if (server->functional.last_calls != server->result->calls || server->functional.last_call_ms == 0) {
        server->functional.last_calls = server->result->calls;
        server->functional.last_call_ms = now_ms;
    } else if (limit_ms != 0 && now_ms - server->functional.last_call_ms > limit_ms) {
        char waiters[sizeof server->result->text];
        attach_waiters_print(server, waiters, sizeof waiters);
        attach_fail(server, "no program has called in for %llu s of real time:\n%s",
                    (unsigned long long)(now_ms - server->functional.last_call_ms) / 1000, waiters);
    }
}

static void pace(void *ctx)
{
    sim_stop(((struct attach_server *)ctx)->sim);
}

enum sim_run_outcome attach_functional_run(struct attach_server *server)
{
    uint64_t began_ps = real_ps();
    sim_event_init(&server->functional.pace, pace, server);
    sim_event_schedule(server->sim, &server->functional.pace, SIM_PS_PER_MS);
    enum sim_run_outcome outcome = plat_machine_run(server->machine);
    while (outcome == SIM_RUN_STOPPED && !attach_stopped(server) && sim_thread_count(server->sim) > 0) {
        attach_accept(server);
        attach_processes_check(server);
        attach_threads_find(server, true);
        silence_note(server);
        if (!requests_wake(server)) {
            bells_wait(server);
            (void)requests_wake(server);
        }
        uint64_t passed_ps = real_ps() - began_ps, now_ps = sim_now_ps(server->sim);
        sim_event_schedule(server->sim, &server->functional.pace,
                           passed_ps > now_ps ? passed_ps - now_ps : SIM_PS_PER_NS);
        outcome = sim_run(server->sim);
    }
    sim_event_cancel(server->sim, &server->functional.pace);
    return outcome == SIM_RUN_STOPPED && !server->stopped ? sim_run(server->sim) : outcome;
}
