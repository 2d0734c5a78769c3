// The crossing, for the files of the program's side. Private to the room.
#pragma once

#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/protocol.h"

// NULL: not attached.
const struct attach_greeting *attach_greeting(void);

// The calling thread's slot with its request filled in by attach_request_*, or NULL when not attached.
struct attach_slot *attach_slot(void);

// Carries out op with the arguments that are in the slot; returns the result. The replies are in the slot.
int64_t attach_cross(struct attach_slot *slot, enum attach_op op);
int64_t attach_cross1(enum attach_op op, uint64_t a);
int64_t attach_cross3(enum attach_op op, uint64_t a, uint64_t b, uint64_t c);

// Appends to the thread's list; crosses when it is full. data: of ATTACH_ENTRY_COMBINED, at most ATTACH_DATA_BYTES.
void attach_append(const struct attach_entry *entry, const void *data);

// The descriptor that the simulator sent with its last reply; -1: none came. To be closed by the caller.
int attach_descriptor_take(void);

// Sends up to ATTACH_WATCHES_MAX to the simulator. false: one is none, or it does not take them.
bool attach_descriptors_send(const int *fds, unsigned count);

// One empty poll, and more where the thread is in a loop of such. flags: of enum attach_wait_flags.
struct loop_poll;
enum attach_woken attach_poll_again(const struct loop_poll *look, unsigned flags, bool repeats);

void attach_sleep_really(long ns);

// The backend forgets what belongs to the parent.
void attach_backend_forked(void);
