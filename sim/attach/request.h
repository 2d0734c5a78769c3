// Requests of programs. Part of internal.h, for the files of the room.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/attach/objects.h"
#include "verbs-shim/attach/protocol.h"

struct attach_process;
struct attach_thread;

// A request, copied out of the program's reach.
struct attach_request {
    uint32_t op;
    uint32_t entry_count;
    uint64_t tail_ps;
    uint64_t own_ps; // all that the thread spent since its last call
    union attach_args args;
};

// --- request_table.c ------------------------------------------------------------------------------------------------

const char *attach_op_name(uint32_t op);
// The arguments of a request, copied out of the program's reach.
void attach_args_take(union attach_args *args, uint32_t op, const struct attach_slot *slot);
// Before the work is replayed that the thread did before its request (thread.c).
void attach_request_begin(struct attach_thread *thread, const struct attach_request *request);
// Checks and carries out one request. The reply goes to the slot.
int64_t attach_request_do(struct attach_thread *thread, const struct attach_request *request);
// After that: ends its watches, and notes what the thread knows of its memory.
void attach_request_end(struct attach_thread *thread, const struct attach_request *request);
// Writes a line of the IPC trace, before the request is carried out. Two runs of the same programs are the same if
// their traces are; the first line that differs shows where they diverge.
void attach_trace_write(FILE *file, const struct attach_thread *thread, const struct attach_request *request);

// --- request.c, request_gpu.c, request_hca.c, poll.c, futex.c -------------------------------------------------------

// Serves a request. Its fields hold what the table allows. The reply is all zero at first.
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    int64_t attach_serve_##name(struct attach_thread *thread, const struct attach_args_##name *args,                   \
                                struct attach_reply_##name *reply_out);
#include "verbs-shim/attach/requests.def"
#undef REQUEST

int attach_hca_object_destroy(struct attach_thread *thread, const struct attach_object *object);
bool attach_bar_allowed(const struct attach_process *process, uint64_t bar, uint64_t offset, uint64_t bytes);
// Destroys the object in its driver; returns the driver's status. The caller removes it from the process's list.
int attach_object_destroy(struct attach_thread *thread, const struct attach_object *object);
int attach_sealed_memory(uint64_t bytes); // a file of memory whose size is sealed; -1 on failure
// effect.c: prepares the effect of work that a program submits. false: this work may have no effect, or there is no
// memory.
bool attach_effect_set(const struct attach_process *process, uint32_t gpu, struct backend_gpu_work *work);
