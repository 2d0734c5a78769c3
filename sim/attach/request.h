// Requests of programs, and what a process has in kernel drivers. Part of internal.h, for the files of the room.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "verbs-shim/attach/protocol.h"

struct attach_process;
struct attach_thread;

// In the order in which they are destroyed.
enum attach_object_kind {
    OBJECT_QP,
    OBJECT_SRQ,
    OBJECT_CQ,
    OBJECT_EQ,
    OBJECT_MR,
    OBJECT_PD,
    OBJECT_XRCD,
    OBJECT_UAR,
    OBJECT_GPU_QUEUE,
    OBJECT_GPU_PIN,
    OBJECT_GPU_MEMORY,
    OBJECT_PINNED,
    OBJECT_BOARD,
    OBJECT_KINDS
};

// Something that the process has in a kernel driver. number: as the driver calls it; of a pin its offset.
struct attach_object {
    enum attach_object_kind kind;
    uint32_t gpu;
    uint64_t number;
    uint64_t bus_address, bytes; // of memory and pins
    uint64_t *pages;             // of a region of the program's own memory, pinned for it; NULL: it needs none
    uint64_t va, va_bytes;       // of such a region
    bool open;                   // others may write to it without a word to its process
    int unrelated;               // writes, as the poll policy counts them
};

// What a program asks for, copied out of its reach.
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
// Checks and carries out one request. The reply goes to the slot.
int64_t attach_request_do(struct attach_thread *thread, const struct attach_request *request);
// A line of the run's file of attach calls, before the request is carried out. Two runs of the same programs are the same
// where their files are, and the first line that differs is where to look.
void attach_trace_write(FILE *file, const struct attach_thread *thread, const struct attach_request *request);

// --- request.c, request_gpu.c, request_hca.c, poll.c, futex.c -------------------------------------------------------

// Serves a request, whose fields hold what the table says. reply is all zero at first.
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    int64_t attach_serve_##name(struct attach_thread *thread, const struct attach_args_##name *args,                   \
                                struct attach_reply_##name *reply_out);
#include "verbs-shim/attach/requests.def"
#undef REQUEST

int attach_hca_object_destroy(struct attach_thread *thread, const struct attach_object *object);
bool attach_bar_allowed(const struct attach_process *process, uint64_t bar, uint64_t offset, uint64_t bytes);
// In its driver; returns the driver's status. To be removed from the process's list by the caller.
int attach_object_destroy(struct attach_thread *thread, const struct attach_object *object);
// An object that a driver has just made belongs to the process, or, when its list is full, is gone again.
int64_t attach_object_keep(struct attach_thread *thread, const struct attach_object *object);
// Destroys one that the process asks to have destroyed. -EINVAL: it has no such.
int64_t attach_object_release(struct attach_thread *thread, enum attach_object_kind kind, uint32_t gpu,
                              uint64_t number);
int attach_sealed_memory(uint64_t bytes); // a file of memory whose size stays; -1
// effect.c: of work, as the program gave it. false: it has none to give, or there is no memory.
bool attach_effect_set(const struct attach_process *process, uint32_t gpu, struct backend_gpu_work *work);
