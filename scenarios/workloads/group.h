// Shared by programs on libtca between several ranks: memory and handles of every rank, descriptors, barriers, and the
// checks of received data. Private to the room.
#pragma once

#include "scenarios/workloads/region.h"
#include "scenarios/workloads/workload.h"
#include "verbs-shim/libtca/tca.h"

struct group {
    struct workload *workload;
    const struct backend *backend;
    const char *program;
    struct region send, receive; // for messages in a GPU's memory: images of them in host memory
    void *send_memory, *receive_memory;
    void *send_device, *receive_device;                                // in a GPU's memory; NULL: none
    tcaHandle send_handle, receive_handle, others[WORKLOAD_RANKS_MAX]; // others: receive regions, by rank
    tcaDesc *descs[tcaChannels];
    uint32_t point;
    uint64_t bytes; // of a message of the point
};

// Collective. Each rank gets regions for so many messages of the largest size. Returns 0, or a negative errno after
// fail().
int group_init(struct group *group, struct workload *workload, const char *program, uint32_t messages);
void group_fini(struct group *group);

// The distance of a message from the first one; messages are in sequence.
size_t group_offset(const struct group *group, uint32_t message);
// The pattern of the message from one rank to another in the current point.
uint32_t group_seed(const struct group *group, uint32_t from, uint32_t to);

// Clears all channels at the beginning of a point.
int group_reset(struct group *group);
// Adds message `from_message` of this rank to what the channel sends, as message to_message of rank `to`, which is
// notified in slot to_message.
int group_send_add(struct group *group, unsigned channel, uint32_t from_message, uint32_t to, uint32_t to_message);
// Gives the added messages to the channels; then each start sends all of them.
int group_set(struct group *group);
int group_start(struct group *group);
int group_wait_sent(struct group *group);
int group_wait_received(struct group *group, uint32_t message, uint32_t from);

// Messages in host memory carry stamps; if a GPU's memory takes part, they are the plain pattern.
bool group_is_stamped(const struct group *group);
// Writes the pattern into message `message`, stamped; and checks received data. Returns 0, or -EBADMSG after fail().
void group_fill(struct group *group, uint32_t message, uint32_t to, uint32_t stamp);
void group_stamp(struct group *group, uint32_t message, uint32_t to, uint32_t stamp);
void group_expect(struct group *group, uint32_t message, uint32_t from);
int group_check_stamp(struct group *group, uint32_t message, uint32_t from, uint32_t stamp);
int group_check_all(struct group *group, uint32_t message, uint32_t from);
int group_check_guards(struct group *group);

// Copies the image of what is sent, and of what is received, to the GPU; and what was received from there. Nothing to
// do in host memory. Uses cudaMemcpy, which takes simulated time.
int group_push(struct group *group);
int group_pull(struct group *group);

// A barrier outside the fabric.
void group_barrier(struct group *group);
// From the first rank's start to the last one's end; collective.
uint64_t group_span_ps(struct group *group, uint64_t start_ps, uint64_t end_ps);
uint64_t group_now_ps(const struct group *group);

// fail() with libtca's message, unless code is tcaSuccess. Returns 0 or -EIO.
int group_tca(struct group *group, int code, const char *what);
int group_cuda(struct group *group, int code, const char *what); // the same for a cudaError_t

// --- a program of repetitions between barriers -----------------------------------------------------------------------

struct group_program {
    const char *name;
    uint32_t (*messages)(const struct workload *workload); // of each rank
    // Prepares descriptors and patterns of a point.
    int (*prepare)(struct group *group);
    // One repetition; stamps differ from one to the next. *sent_ps_out: the time of this rank's sending.
    int (*run)(struct group *group, uint32_t stamp, uint64_t *sent_ps_out);
    int (*check)(struct group *group); // of the whole point
    // Bytes that one repetition moves, for the row.
    uint64_t (*moved)(const struct group *group);
};
int group_program_run(struct workload *workload, const struct group_program *program);
