// An attached run from beginning to end.
#include "sim/attach/attach_run.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "sim/attach/internal.h"

// A signal handler has no context argument.
static volatile sig_atomic_t interrupted;

void attach_run_interrupt(void)
{
    interrupted = 1;
}

uint64_t attach_real_ms(void)
{
    struct timespec now;
    (void)syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now); // not the C library's clock, see timestamps.c
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

uint64_t attach_silence_of(struct attach_silence *clock, uint64_t step_ms)
{
    uint64_t now_ms = attach_real_ms(), since_ms = clock->looked_ms != 0 ? now_ms - clock->looked_ms : 1;
    clock->looked_ms = now_ms;
    clock->passed_ms += since_ms < step_ms ? since_ms : step_ms;
    return clock->passed_ms;
}

uint64_t attach_silence_ms(struct attach_server *server)
{
    return attach_silence_of(&server->clock, attach_real_time(server->real_percent, ATTACH_REAL_STEP_MS));
}

void attach_fail(struct attach_server *server, const char *format, ...)
{
    struct attach_run_result *result = server->result;
    if (!result->failed) {
        va_list args;
        va_start(args, format);
        vsnprintf(result->text, sizeof result->text, format, args);
        va_end(args);
    }
    result->failed = true;
    server->stopped = true;
    sim_stop(server->sim);
}

void attach_leave(struct attach_server *server)
{
    server->left = true;
    server->stopped = true;
    sim_stop(server->sim);
}

bool attach_stopped(struct attach_server *server)
{
    if (interrupted && !server->stopped) {
        server->result->interrupted = true;
        server->stopped = true;
        sim_stop(server->sim);
    }
    return server->stopped;
}

void attach_outside_note(struct attach_server *server, unsigned what)
{
    server->result->outside |= server->options->functional ? 0 : what;
}

static void outcome_describe(struct attach_server *server)
{
    struct attach_run_result *result = server->result;
    attach_ends_report(server, result->failed || result->outcome != SIM_RUN_DONE);
    if (result->failed || server->stopped) {
        return;
    }
    if (plat_machine_failure(server->machine) != NULL) {
        result->failed = true;
        snprintf(result->text, sizeof result->text, "%s", plat_machine_failure(server->machine));
    } else if (result->outcome == SIM_RUN_STUCK || result->outcome == SIM_RUN_TIME_LIMIT) {
        attach_waiters_print(server, result->text, sizeof result->text);
        attach_servers_hint(server, result->text, sizeof result->text);
    } else if (result->outcome == SIM_RUN_DONE && plat_machine_live_packets(server->machine) != 0) {
        result->failed = true;
        snprintf(result->text, sizeof result->text, "%u packets were left over somewhere in the machine",
                 plat_machine_live_packets(server->machine));
    }
}

// Is nothing due, so that only somebody outside can let a program go on? A limit of silence ends the run instead.
static bool is_idle(const struct attach_server *server)
{
    return server->result->outcome == SIM_RUN_STUCK && sim_next_due_ps(server->sim) == SIM_NEVER_PS;
}

// Ctrl-C and signals are noticed here while the simulation has much to do.
static void busy_check(void *ctx)
{
    attach_devices_check(ctx);
    attach_signals_check(ctx);
}

static void run(struct attach_server *server)
{
    struct attach_node nodes[SCN_NODES_MAX];
    struct attach_run_result *result = server->result;
    for (uint32_t i = 0; i < server->scenario->node_count; i++) {
        nodes[i] = (struct attach_node){server, i};
        plat_machine_set_program(server->machine, i, attach_node_main, &nodes[i]);
        bool counts = server->scenario->nodes[i].host.compute == SCN_COMPUTE_SCALED;
        attach_outside_note(server, counts ? ATTACH_RUN_OUTSIDE_COMPUTE : 0);
    }
    sim_set_poll(server->sim, busy_check, server);
    result->outcome = server->options->functional ? attach_functional_run(server) : plat_machine_run(server->machine);
    while (is_idle(server) && !attach_stopped(server) && attach_idle(server)) {
        result->outcome = sim_run(server->sim);
    }
    if (result->outcome == SIM_RUN_STUCK && !server->stopped && attach_programs_over(server)) {
        attach_leave(server);
    }
    result->outcome = server->left ? SIM_RUN_DONE : result->outcome;
    result->simulated_ps = sim_now_ps(server->sim);
    result->events = sim_events_run(server->sim);
    result->rtl_cycles = plat_machine_rtl_cycles(server->machine);
    attach_hash(server, result->simulated_ps);
    attach_hash(server, result->events);
    outcome_describe(server);
    observe_trace_flush(server->observe);
    result->findings = observe_findings(server->observe);
    if (server->options->observed != NULL) {
        server->options->observed(server->options->ctx, server->observe);
    }
    if (server->options->counter != NULL) {
        sim_counters_visit(server->sim, server->options->counter, server->options->ctx);
    }
}

// A program may sleep for as long as it likes: if the file sets no limits of simulated time, there are none.
static struct scn_scenario *scenario_copy(const struct scn_scenario *scenario)
{
    struct scn_scenario *copy = malloc(sizeof *copy);
    if (copy != NULL) {
        *copy = *scenario;
        bool limited = strcmp(scn_source(scenario, &scenario->time_limit_ps), "default") != 0;
        bool silenced = strcmp(scn_source(scenario, &scenario->silence_limit_ps), "default") != 0;
        copy->time_limit_ps = limited ? scenario->time_limit_ps : 0;
        copy->silence_limit_ps = silenced ? scenario->silence_limit_ps : 0;
    }
    return copy;
}

static FILE *ipc_trace_open(const struct attach_run_options *options, struct attach_run_result *result)
{
    FILE *file = options->ipc_trace != NULL ? fopen(options->ipc_trace, "we") : NULL;
    if (file == NULL && options->ipc_trace != NULL) {
        snprintf(result->text, sizeof result->text, "%s: %s", options->ipc_trace, strerror(errno));
    }
    return file;
}

static bool ipc_trace_close(FILE *file)
{
    bool written = ferror(file) == 0;
    return fclose(file) == 0 && written;
}

static void hca_lost(void *ctx, const char *name, const struct hca_loss *loss)
{
    const struct attach_server *server = ctx;
    observe_lost(server->observe, name, loss);
}

static observe_t *observer_create(struct attach_server *server)
{
    const struct attach_run_options *options = server->options;
    return observe_create(server->sim, &(struct observe_options){.trace = options->trace,
                                                                 .trace_ctx = options->ctx,
                                                                 .trace_causes = options->trace_causes,
                                                                 .line = options->diagnosis,
                                                                 .line_ctx = options->ctx,
                                                                 .receives = attach_receives,
                                                                 .receives_ctx = server,
                                                                 .check = options->check,
                                                                 .where = attach_symbols,
                                                                 .explain = options->explain,
                                                                 .select = options->select,
                                                                 .summary = options->summary});
}

static void machine_destroy(struct attach_server *server)
{
    observe_destroy(server->observe);
    plat_machine_destroy(server->machine);
    adversary_destroy(server->adversary);
}

// Creates the machine, its adversary and its observer.
static enum sim_status machine_create(struct attach_server *server)
{
    const struct attach_run_options *options = server->options;
    enum sim_status status =
        options->adversarial ? adversary_create(options->adversarial_seed, &server->adversary) : SIM_OK;
    if (status == SIM_OK) {
        const struct plat_options machine = {
            .adversary = server->adversary, .lost = options->diagnosis != NULL ? hca_lost : NULL, .lost_ctx = server};
        status = plat_machine_create(server->scenario, &machine, server->result->text, sizeof server->result->text,
                                     &server->machine);
    }
    if (status == SIM_OK) {
        server->sim = plat_machine_sim(server->machine);
        server->observe = observer_create(server);
        server->notes_all = server->observe != NULL && observe_wants_all(server->observe);
        status = server->observe != NULL ? SIM_OK : SIM_ERR_NO_MEMORY;
    }
    if (status != SIM_OK) {
        machine_destroy(server);
    }
    return status;
}

static enum sim_status scenario_run(const struct scn_scenario *scenario, const struct attach_run_options *options,
                                    uint32_t real_percent, struct attach_run_result *result)
{
    struct attach_server server = {.scenario = scenario,
                                   .options = options,
                                   .real_percent = real_percent,
                                   .result = result,
                                   .listener = {.fd = -1},
                                   .scratch = {.alive = -1},
                                   .network = {.own = -1, .users = -1, .fd = -1},
                                   .tokens = {.bells_fd = -1},
                                   .watches = -1};
    enum sim_status status = machine_create(&server);
    if (status != SIM_OK) {
        return status;
    }
    sim_condition_init(&server.launch.process_ended);
    sim_condition_init(&server.launch.all_external);
    server.ipc_trace = ipc_trace_open(options, result);
    attach_settle_init(&server);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    if (getrlimit(RLIMIT_NOFILE, &server.launch.files) == 0) { // for copies of descriptors that threads wait for
        (void)setrlimit(RLIMIT_NOFILE, &(struct rlimit){server.launch.files.rlim_max, server.launch.files.rlim_max});
    }
    if (!attach_watches_init(&server) || !attach_tokens_init(&server)) {
        snprintf(result->text, sizeof result->text, "no memory to share with programs: %s", strerror(errno));
        status = SIM_ERR_IO;
    } else if ((server.ipc_trace != NULL || options->ipc_trace == NULL) && attach_listen(&server)) {
        attach_timestamps_begin();
        (void)attach_watchdog_start(&server);
        run(&server);
        attach_watchdog_stop(&server);
        attach_timestamps_end();
    } else {
        status = SIM_ERR_IO;
    }
    attach_kill_all(&server);
    attach_asked_read(&server);
    attach_fingerprint_write(&server);
    (void)setrlimit(RLIMIT_NOFILE, &server.launch.files);
    attach_listen_end(&server);
    while (server.processes != NULL) {
        struct attach_process *process = server.processes;
        server.processes = process->next;
        attach_process_destroy(process);
    }
    attach_tokens_fini(&server);
    if (server.watches >= 0) {
        close(server.watches);
    }
    sim_event_cancel(server.sim, &server.settling.event);
    sim_event_cancel(server.sim, &server.functional.pace);
    machine_destroy(&server);
    free(server.ids.list);
    if (server.ipc_trace != NULL && !ipc_trace_close(server.ipc_trace)) {
        snprintf(result->text, sizeof result->text, "%s could not be written", options->ipc_trace);
        status = SIM_ERR_IO;
    }
    return status;
}

// For tests: how long the constants of real_time.h are. false: nobody can have meant that.
static bool real_percent_read(uint32_t *percent_out)
{
    const char *text = getenv(ATTACH_REAL_PERCENT_NAME);
    char *end = NULL;
    unsigned long percent = text != NULL ? strtoul(text, &end, 10) : ATTACH_REAL_PERCENT_USUAL;
    *percent_out = (uint32_t)percent;
    return (end == NULL || (end != text && *end == '\0')) && percent >= 1 && percent <= ATTACH_REAL_PERCENT_MAX;
}

enum sim_status attach_run(const struct scn_scenario *scenario, const struct attach_run_options *options,
                           struct attach_run_result *result)
{
    *result = (struct attach_run_result){.outcome = SIM_RUN_STOPPED, .hash = 0xcbf29ce484222325u};
    for (uint32_t i = 0; i < options->program_count; i++) {
        const char *program = options->programs[i].argv[0], *reason = attach_refused(program, options->functional);
        if (reason != NULL) {
            snprintf(result->text, sizeof result->text, "%s cannot be attached: %s", program, reason);
            return SIM_ERR_UNSUPPORTED;
        }
    }
    if (scenario->node_count > ATTACH_HOSTS) {
        snprintf(result->text, sizeof result->text, "%u nodes; programs can be attached to at most %u",
                 scenario->node_count, ATTACH_HOSTS);
        return SIM_ERR_UNSUPPORTED;
    }
    uint32_t real_percent;
    if (!real_percent_read(&real_percent)) {
        snprintf(result->text, sizeof result->text, "%s is '%s'; it must be a number from 1 to %d",
                 ATTACH_REAL_PERCENT_NAME, getenv(ATTACH_REAL_PERCENT_NAME), ATTACH_REAL_PERCENT_MAX);
        return SIM_ERR_UNSUPPORTED;
    }
    struct scn_scenario *copy = scenario_copy(scenario);
    enum sim_status status = copy != NULL ? scenario_run(copy, options, real_percent, result) : SIM_ERR_NO_MEMORY;
    free(copy);
    return status;
}
