// Initialisation, the assignment of ranks, and the end of a process.
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs-shim/acp/internal.h"

static struct acpb_process *state(void)
{
    const struct backend_process *environment = backend_current();
    return environment != NULL ? environment->libraries[BACKEND_LIBRARY_ACP].state : NULL;
}

struct acpb_process *acpb_current(void)
{
    struct acpb_process *process = state();
    return process != NULL && process->initialised ? process : NULL;
}

// --- failures -------------------------------------------------------------------------------------------------------

void acpb_fail(struct acpb_process *process, const char *format, ...)
{
    char text[256];
    int length = snprintf(text, sizeof text, "acp: rank %u: ", process->rank);
    va_list args;
    va_start(args, format);
    vsnprintf(text + length, sizeof text - (size_t)length, format, args);
    va_end(args);
    process->failed = true;
    process->boot.abort(process->boot.ctx, text);
}

// The environment ends the process while it waits here.
void acpb_wait_failed(struct acpb_process *process)
{
    const struct backend *backend = process->backend;
    for (;;) {
        (void)backend->ops->thread->pause(backend->ctx, BACKEND_THREAD_ACP, acpb_changes(process), false, 0);
    }
}

// --- begin and end --------------------------------------------------------------------------------------------------

// One for each process, whichever rank it has.
struct introduction {
    uint32_t rank;
    struct acpb_starter starter;
    char device[16];
};
_Static_assert(sizeof(struct introduction) <= ACP_BOOT_BYTES_MAX, "fits");

static int introductions_take(struct acpb_process *process, const struct introduction *all)
{
    for (uint32_t rank = 0; rank < process->ranks; rank++) {
        process->starters[rank] = (struct acpb_starter){0};
    }
    for (uint32_t number = 0; number < process->ranks; number++) {
        if (all[number].rank >= process->ranks || process->starters[all[number].rank].base != 0) {
            fprintf(stderr, "acp: %u processes, but not one of each rank: rank %u\n", process->ranks, all[number].rank);
            return -EINVAL;
        }
        process->starters[all[number].rank] = all[number].starter;
        if (strncmp(all[number].device, all[0].device, sizeof all[0].device) != 0) {
            fprintf(stderr, "acp: rank %u is on %.15s and rank %u on %.15s: choose one by acprun -dev\n", all[0].rank,
                    all[0].device, all[number].rank, all[number].device);
            return -EINVAL;
        }
    }
    process->job = 0;
    for (uint32_t rank = 0; rank < process->ranks; rank++) {
        const struct acpb_starter *starter = &process->starters[rank];
        process->job = process->job * 31 + (uint32_t)(starter->base >> 12) + starter->rkey * 7 + starter->meeting_qpn;
    }
    return 0;
}

static int starters_gather(struct acpb_process *process)
{
    struct introduction *all = calloc(process->ranks, sizeof *all);
    if (all == NULL) {
        return -ENOMEM;
    }
    struct introduction mine = {.rank = process->rank,
                                .starter = {.base = (uintptr_t)process->control,
                                            .rkey = process->control_mr->rkey,
                                            .meeting_qpn = process->meeting_qp->qp_num,
                                            .lid = process->port.lid}};
    snprintf(mine.device, sizeof mine.device, "%s", ibv_get_device_name(process->context->device));
    int error = process->boot.gather(process->boot.ctx, &mine, all, sizeof mine);
    if (error == 0) {
        error = introductions_take(process, all);
    }
    free(all);
    return error;
}

static void parts_destroy(struct acpb_process *process)
{
    acpb_peers_destroy(process);
    acpb_tables_destroy(process);
    acpb_memory_destroy(process);
    if (!process->abandoned) {
        acpb_device_close(process);
    }
}

static void boot_close(struct acpb_process *process, bool finalized)
{
    if (process->boot.close != NULL) {
        process->boot.close(process->boot.ctx, finalized);
    }
    process->has_boot = false;
}

static int begin(struct acpb_process *process)
{
    int error = acpb_device_open(process);
    if (error == 0) {
        error = acpb_memory_create(process);
    }
    if (error == 0) {
        error = acpb_meetings_post(process);
    }
    if (error == 0) {
        error = starters_gather(process);
    }
    if (error == 0) {
        error = acpb_thread_start(process);
    }
    if (error == 0 && process->boot.connect_all) {
        error = acpb_request_wait(process, ACPB_CALL_CONNECT);
    }
    if (error != 0) {
        acpb_thread_stop(process);
        parts_destroy(process);
        boot_close(process, false); // acprun detects this, so the others do not wait forever
    }
    process->initialised = error == 0;
    return error;
}

// The communication thread serves other ranks until all have completed their GMAs.
static int end(struct acpb_process *process)
{
    struct introduction *all = calloc(process->ranks, sizeof *all);
    const struct introduction mine = {.rank = process->rank};
    acp_complete(ACP_HANDLE_ALL);
    int error = all != NULL ? process->boot.gather(process->boot.ctx, &mine, all, sizeof mine) : -ENOMEM;
    free(all);
    process->initialised = false;
    acpb_thread_stop(process);
    parts_destroy(process);
    return error;
}

// The process has ended, at whatever point: the environment owns its devices and threads.
static void release(void *library)
{
    struct acpb_process *process = library;
    process->abandoned = true;
    parts_destroy(process);
    free(process);
}

static struct acpb_process *state_create(void)
{
    struct backend_process *environment = backend_current();
    if (environment == NULL || environment->backend.ops->thread == NULL) {
        fprintf(stderr, "acp: the program runs on no simulated node\n");
        return NULL;
    }
    struct backend_library *library = &environment->libraries[BACKEND_LIBRARY_ACP];
    if (library->state == NULL) {
        struct acpb_process *process = calloc(1, sizeof *process);
        if (process == NULL) {
            return NULL;
        }
        process->backend = &environment->backend;
        *library = (struct backend_library){process, release};
    }
    return library->state;
}

int acp_boot_set(const struct acp_boot *boot)
{
    struct acpb_process *process = state_create();
    if (process == NULL || process->initialised) {
        return process == NULL ? -ENOMEM : -EBUSY;
    }
    process->boot = *boot;
    process->has_boot = true;
    return 0;
}

static int boot_find(struct acpb_process *process, int *argc, char ***argv)
{
    int error = acp_boot_from_arguments(argc, argv, &process->boot);
    if (error == -ENOENT) {
        fprintf(stderr, "acp: start the program by acprun: acprun -n 2 ./program\n");
    }
    process->has_boot = error == 0;
    return error;
}

int acp_init(int *argc, char ***argv)
{
    struct acpb_process *process = state_create();
    if (process == NULL || process->initialised) {
        return -1;
    }
    if (!process->has_boot && boot_find(process, argc, argv) != 0) {
        return -1;
    }
    const struct acp_boot *boot = &process->boot;
    if (boot->processes == 0 || boot->processes > ACPB_RANKS_MAX || boot->rank >= boot->processes) {
        fprintf(stderr, "acp: rank %u of %u\n", boot->rank, boot->processes);
        return -1;
    }
    process->rank = boot->rank;
    process->ranks = boot->processes;
    process->starter_bytes = boot->starter_bytes != 0 ? boot->starter_bytes : ACPB_STARTER_BYTES;
    return begin(process) == 0 ? 0 : -1;
}

int acp_finalize(void)
{
    struct acpb_process *process = acpb_current();
    if (process == NULL) {
        return -1;
    }
    int error = end(process);
    boot_close(process, error == 0);
    return error == 0 ? 0 : -1;
}

int acp_reset(int rank)
{
    struct acpb_process *process = acpb_current();
    if (process == NULL || rank < 0 || (uint32_t)rank >= process->ranks) {
        return -1;
    }
    if (end(process) != 0) {
        boot_close(process, false);
        return -1;
    }
    process->rank = (uint32_t)rank;
    return begin(process) == 0 ? 0 : -1;
}

int acp_sync(void)
{
    struct acpb_process *process = acpb_current();
    return process != NULL && acpb_request_wait(process, ACPB_CALL_SYNC) == 0 ? 0 : -1;
}

void acp_abort(const char *text)
{
    struct acpb_process *process = acpb_current();
    if (process == NULL) {
        fprintf(stderr, "acp: %s\n", text != NULL ? text : "aborted");
        _exit(1);
    }
    acpb_fail(process, "%s", text != NULL ? text : "aborted");
    acpb_wait_failed(process);
}

int acp_rank(void)
{
    const struct acpb_process *process = acpb_current();
    return process != NULL ? (int)process->rank : -1;
}

int acp_procs(void)
{
    const struct acpb_process *process = acpb_current();
    return process != NULL ? (int)process->ranks : -1;
}
