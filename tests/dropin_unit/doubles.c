#include "doubles.h"
#include "verbs-shim/attach/ahead.h"

#include <string.h>

#include "verbs-shim/ibsim/ibsim.h"
#include "verbs-shim/tca-verbs/tca_verbs.h"

struct doubles doubles;

void doubles_reset(void)
{
    const struct ibverbs_outside *outside = doubles.outside; // it is set once
    doubles = (struct doubles){.mode = ATTACH_TIMED, .outside = outside};
}

// --- the attach library ---------------------------------------------------------------------------------------------

enum attach_mode attach_mode(void)
{
    return doubles.mode;
}

void attach_spend_ps(uint64_t ps)
{
    doubles.spent_ps += ps;
}

enum attach_woken attach_wait(unsigned flags, uint64_t deadline_ps)
{
    (void)deadline_ps;
    doubles.waits++;
    doubles.wait_flags = flags;
    if (doubles.waiting != NULL) {
        doubles.waiting();
    }
    return ATTACH_WOKEN_OUTSIDE;
}

bool attach_poll(uint64_t site, const volatile void *word, bool repeats)
{
    (void)site, (void)word, (void)repeats;
    return false;
}

uint64_t attach_now_ps(void)
{
    return 0;
}

unsigned attach_interrupts_ending(void)
{
    return doubles.interrupts;
}

void attach_library_enter(void)
{
    doubles.entered++;
}

void attach_library_leave(void)
{
    doubles.left++;
}

int ibverbs_poll_cq_at(struct ibv_cq *cq, int max, struct ibv_wc *wc, uint64_t site)
{
    (void)cq, (void)max, (void)wc, (void)site;
    return 0;
}

enum ibverbs_idle ibverbs_poll_idle(struct ibv_cq *cq, struct ibverbs_idle_poll *poll_out)
{
    (void)cq, (void)poll_out;
    return IBVERBS_FINDS;
}

const struct attach_environment *attach_environment(void)
{
    static const struct attach_environment environment;
    return &environment;
}

void attach_poll_function_add(uintptr_t entry, attach_is_idle_t is_idle)
{
    (void)entry;
    (void)is_idle;
}

void attach_resume(struct attach_caller *caller)
{
    (void)caller;
}

bool attach_resumed(bool *again_out)
{
    *again_out = false;
    return false;
}

struct attach_caller *attach_poll_within(struct attach_caller *caller)
{
    return caller;
}

void attach_found(void)
{
}

void attach_settle(void)
{
}

void attach_may_wake(void)
{
    doubles.woken++;
}

void attach_progress_set(const struct attach_progress *progress)
{
    doubles.progress = progress;
}

// --- libibverbs -----------------------------------------------------------------------------------------------------

const struct ibverbs_device_ops tca_verbs_ops;

int ibverbs_device_add(struct backend_process *process, const char *name, const struct ibverbs_device_ops *ops,
                       void *device)
{
    (void)process, (void)ops, (void)device;
    doubles.devices[doubles.device_count++] = name;
    return 0;
}

int ibsim_device_add(struct backend_process *process)
{
    return ibverbs_device_add(process, "ibsim0", NULL, NULL);
}

void ibverbs_outside_set(struct backend_process *process, const struct ibverbs_outside *outside)
{
    static int state;
    process->libraries[BACKEND_LIBRARY_IBVERBS].state = &state;
    doubles.outside = outside;
}

void ibverbs_events_look(struct backend_process *process)
{
    (void)process;
}

bool ibverbs_events_repeat(const struct backend_process *process)
{
    (void)process;
    return false;
}

bool ibverbs_sends_wait(const struct backend_process *process)
{
    (void)process;
    return false;
}

uint64_t ibverbs_events_due_ps(struct backend_process *process, bool events)
{
    (void)process, (void)events;
    return doubles.due_ps;
}

void ibverbs_events_poll(struct backend_process *process)
{
    (void)process;
}

// --- MPI ------------------------------------------------------------------------------------------------------------

int MPI_Initialized(int *flag);
int MPI_Comm_rank(uintptr_t comm, int *rank);
int MPI_Comm_size(uintptr_t comm, int *size);
int MPI_Send(const void *data, int count, uintptr_t type, int to, int tag, uintptr_t comm);
int MPI_Recv(void *data, int count, uintptr_t type, int from, int tag, uintptr_t comm, void *status);

int MPI_Initialized(int *flag)
{
    *flag = doubles.mpi_runs;
    return 0;
}

int MPI_Comm_rank(uintptr_t comm, int *rank)
{
    (void)comm;
    doubles.asked++;
    *rank = doubles.rank;
    return 0;
}

int MPI_Comm_size(uintptr_t comm, int *size)
{
    (void)comm;
    doubles.asked++;
    *size = doubles.ranks;
    return 0;
}

int MPI_Send(const void *data, int count, uintptr_t type, int to, int tag, uintptr_t comm)
{
    (void)data, (void)count, (void)type, (void)to, (void)tag, (void)comm;
    doubles.sent++;
    return 0;
}

// The message of a rank is its number.
int MPI_Recv(void *data, int count, uintptr_t type, int from, int tag, uintptr_t comm, void *status)
{
    (void)type, (void)tag, (void)comm, (void)status;
    doubles.received++;
    memset(data, from, (size_t)count);
    return 0;
}
