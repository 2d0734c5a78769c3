#include "sim/observe/observe.h"

#include <stdlib.h>
#include <string.h>

#include "sim/observe/internal.h"

static void trace_sink(void *ctx, const struct sim_trace_record *record);

observe_t *observe_create(sim_t *sim, const struct observe_options *options)
{
    observe_t *observe = calloc(1, sizeof *observe);
    if (observe != NULL) {
        observe->sim = sim;
        observe->options = *options;
        observe->processes_end = &observe->processes;
        observe->changes = 1;
        if (options->trace != NULL || options->summary) {
            sim_trace_set_sink(sim, trace_sink, observe);
        }
        if (options->explain && !observe_explain_begin(observe)) {
            free(observe);
            return NULL;
        }
        if (options->explain || options->trace_causes) {
            sim_causes_record_last(sim, SIM_CAUSES_LAST);
        }
    }
    return observe;
}

void observe_destroy(observe_t *observe)
{
    if (observe == NULL) {
        return;
    }
    while (observe->processes != NULL) {
        observe_process_t *process = observe->processes;
        observe->processes = process->next;
        observe_objects_free(process);
        free(process);
    }
    observe_explain_free(observe);
    observe_trace_free(observe);
    free(observe);
}

bool observe_wants_all(const observe_t *observe)
{
    const struct observe_options *options = &observe->options;
    return options->trace != NULL || options->summary || options->explain || options->check;
}

observe_process_t *observe_process_begin(observe_t *observe, const struct observe_identity *identity)
{
    observe_process_t *process = calloc(1, sizeof *process);
    if (process != NULL) {
        process->observe = observe;
        process->number = identity->number;
        process->tag = identity->tag;
        process->began_ps = identity->began_ps;
        process->ended_end = &process->ended_first;
        snprintf(process->node, sizeof process->node, "%s", identity->node);
        snprintf(process->name, sizeof process->name, "%s", identity->name);
        *observe->processes_end = process;
        observe->processes_end = &process->next;
    }
    return process;
}

void observe_process_end(observe_process_t *process, uint64_t at_ps)
{
    if (process != NULL && !process->ended) {
        process->ended = true;
        process->ended_ps = at_ps;
    }
}

void observe_note(observe_process_t *process, const struct observe_call *call, const struct journal_record *record)
{
    if (process == NULL || record->call >= JOURNAL_CALL_COUNT) {
        return;
    }
    struct observe_calls *calls = &process->calls[record->call];
    calls->count += record->follows == 0;
    calls->errors += record->error != 0;
    calls->ps += record->follows == 0 ? call->took_ps : 0;
    if (!process->observe->options.undiagnosed) {
        observe_diagnose(process, call, record);
    }
    if (process->observe->options.check) {
        observe_check(process, call, record);
    }
    observe_objects_note(process, call, record);
    observe_requests_note(process, call, record);
    if (process->observe->options.trace != NULL) {
        observe_trace_note(process, call, record);
    }
}

void observe_say(observe_process_t *process, uint64_t at_ps, const char *text)
{
    const struct observe_options *options = &process->observe->options;
    if (options->line != NULL) {
        options->line(options->line_ctx, text);
    }
    if (options->trace != NULL) {
        observe_trace_say(process, at_ps, text);
    }
}

void observe_waited(observe_process_t *process, enum observe_wait kind, uint64_t count, uint64_t ps)
{
    if (process != NULL) {
        process->waits[kind] += count;
        process->waited_ps[kind] += ps;
    }
}

// Counts what an adapter did for a queue pair, in whichever process of its node owns it. For every record of a run.
static void point_count(observe_t *observe, const struct sim_trace_record *record)
{
    const char *component = record->component, *name = record->point->name;
    bool rnr = name[0] == 'r' && strcmp(name, "rnr_nak") == 0;
    if (!rnr && (name[0] != 'r' || strcmp(name, "retry") != 0)) {
        return;
    }
    for (const observe_process_t *process = observe->processes; process != NULL; process = process->next) {
        size_t length = strlen(process->node);
        bool here = strncmp(component, process->node, length) == 0 && component[length] == '.';
        for (uint32_t i = 0; here && observe_object_find(process, OBSERVE_CONTEXT, i, 0) != NULL; i++) {
            struct observe_object *qp = observe_object_find(process, OBSERVE_QP, i, (uint32_t)record->values[0]);
            if (qp != NULL && !qp->ended) {
                qp->qp.rnr_naks += rnr;
                qp->qp.retries += !rnr;
            }
        }
    }
}

static void trace_sink(void *ctx, const struct sim_trace_record *record)
{
    observe_t *observe = ctx;
    if (observe->options.summary) {
        point_count(observe, record);
    }
    if (observe->options.trace != NULL) {
        observe_trace_write_due(observe);
        struct sim_trace_record settled = *record;
        if (observe->options.trace_causes) {
            settled.cause = observe_trace_cause(observe, record->cause);
            observe_trace_follow(observe, settled.number, settled.cause, settled.time_ps);
        }
        observe->options.trace(observe->options.trace_ctx, &settled);
    }
}
