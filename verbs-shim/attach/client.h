// The attach call, for the files of the program's side. Private to the room.
#pragma once

#include <errno.h>
#include <stddef.h>

#include "verbs-shim/attach/ahead.h"
#include "verbs-shim/attach/attach.h"
#include "verbs-shim/attach/protocol.h"

// NULL: not attached.
const struct attach_greeting *attach_greeting(void);

// The calling thread's slot; NULL: it is not attached.
struct attach_slot *attach_slot(void);
// The same; also NULL in a signal handler that interrupted an attach call.
struct attach_slot *attach_slot_to_call(void);

// Carries out op with the arguments in the slot; returns the result. The reply is in the slot.
int64_t attach_call(struct attach_slot *slot, enum attach_op op);

// attach_request(gpu_alloc, &reply, .gpu = 0, .bytes = 4096): makes one request of requests.def; returns its result.
// reply may be NULL. -ENODEV, and a reply of zeros: the thread is not attached, or already in a call.
#define attach_request(name, reply_out, ...)                                                                           \
    attach_request_##name(&(const struct attach_args_##name){__VA_ARGS__}, reply_out)
#define REQUEST(ID, name, ARGUMENTS, REPLY)                                                                            \
    static inline int64_t attach_request_##name(const struct attach_args_##name *args,                                 \
                                                struct attach_reply_##name *reply_out)                                 \
    {                                                                                                                  \
        static const struct attach_reply_##name none;                                                                  \
        struct attach_slot *slot = attach_slot_to_call();                                                              \
        int64_t result = -ENODEV;                                                                                      \
        if (slot != NULL) {                                                                                            \
            slot->args.name = *args;                                                                                   \
            result = attach_call(slot, ATTACH_OP_##ID);                                                                \
        }                                                                                                              \
        if (reply_out != NULL) {                                                                                       \
            *reply_out = slot != NULL ? slot->reply.name : none;                                                       \
        }                                                                                                              \
        return result;                                                                                                 \
    }
#include "verbs-shim/attach/requests.def"
#undef REQUEST

// Appends to the thread's list; makes an attach call if the list is full. data: of ATTACH_ENTRY_COMBINED, at most
// ATTACH_DATA_BYTES.
void attach_append(const struct attach_entry *entry, const void *data);

// The descriptor that the simulator sent with its last reply, which the caller closes; -1: none came.
int attach_descriptor_take(void);

// Sends up to ATTACH_WATCHES_MAX descriptors to the simulator. false: one is invalid, or the simulator does not accept
// them.
bool attach_descriptors_send(const int *fds, unsigned count);

// One empty poll, and more if the thread is in a loop of polls. flags: enum attach_wait_flags.
struct loop_poll;
// caller: NULL: not known.
enum attach_woken attach_poll_again(const struct loop_poll *poll, unsigned flags, bool repeats,
                                    struct attach_caller *caller);
// attach_poll and attach_poll_call, with where they were called.
bool attach_poll_from(uint64_t site, const volatile void *word, bool repeats, struct attach_caller *caller);
enum attach_woken attach_poll_call_from(unsigned flags, uint64_t site, struct attach_caller *caller);
bool attach_clocks_poll(void);
bool attach_is_alone(void); // no other thread or process sees what the program writes
// What the program does next if this poll finds nothing. false: nothing is known.
bool attach_look_ahead(struct attach_caller *caller, uint64_t key, struct attach_slot *slot,
                       struct attach_ahead *ahead_out);
// The thread has left the loop of this look. It goes on there when the functions between the program and this one have
// returned: what they do until then has no effect.
struct attach_left_at;
void attach_loop_left(const struct attach_ahead *ahead, struct attach_caller *caller, const struct attach_left_at *at,
                      enum attach_woken woken);
void attach_loop_forget(void); // they have not returned: a signal handler has left them by a jump

void attach_sleep_really(uint64_t ns); // a constant of real_time.h

// The backend forgets what belongs to the parent.
void attach_backend_forked(void);
