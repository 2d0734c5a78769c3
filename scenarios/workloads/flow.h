// One end of a flow on libibverbs: a process's device, memory and queue pairs, connected with those of the other rank
// of its pair (ranks 0 and 1, 2 and 3). Private to the room.
//
// Each end has two memories: the source for sent bytes, and the target for received ones. A message of a queue pair has
// its own slot in both. For atomics the target holds the words, and the source their old values.
#pragma once

#include <infiniband/verbs.h>

#include "scenarios/workloads/region.h"
#include "scenarios/workloads/workload.h"

#define FLOW_QPS_MAX      16
#define FLOW_BATCH        16 // completions taken by one poll, as perftest
#define FLOW_ATOMIC_BYTES 8

struct flow_memory {
    struct region region; // as the program sees it: the memory itself, or an image of the GPU's
    void *tca, *device;   // memory of libtca; memory in a GPU
    int gpu;              // its number, or WORKLOAD_HOST
    struct ibv_mr *mr;
    size_t lead_bytes, stride_bytes; // before a message; between two slots
};

// The data that the other end needs.
struct flow_letter {
    uint64_t source_address, target_address;
    uint32_t source_key, target_key;
    uint32_t qpns[FLOW_QPS_MAX];
    uint16_t lid;
};

struct flow_end {
    struct workload *workload;
    const char *program;
    const struct backend *backend; // for the clock, and for waits on memory
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *receive_cq;
    struct ibv_qp *qps[FLOW_QPS_MAX];
    struct ibv_ah *ah; // of UD
    uint32_t qp_count;
    struct flow_memory source, target;
    struct flow_letter peer;
    uint32_t slots; // of each memory
    uint32_t depth, cq_mod;
    uint32_t inline_bytes;
    bool turns;                                      // a ping-pong, whose messages show the turn
    uint64_t bytes;                                  // of the point
    uint32_t point;                                  // its number
    uint32_t sent[FLOW_QPS_MAX], done[FLOW_QPS_MAX]; // requests of the point, and those known to be complete
    uint32_t arrived[FLOW_QPS_MAX];                  // its messages that completed a receive
    uint64_t done_all, arrived_all;                  // sums over the queue pairs
    uint32_t meetings, met;
    uint32_t barriers;
    bool serves;                    // the library serves the other end only when it is called (tca0)
    uint64_t took_ps, peer_took_ps; // exchanged between both ends; the peer's is valid after flow_point_end
};

// Opens the device, connects with the other end and posts the receives; on return the other end has done so, too.
// Errors are reported to the workload.
int flow_open(struct flow_end *end, struct workload *workload, const char *program);
// The same with one queue pair and a slot for each of so many messages; the caller posts receives.
int flow_open_slots(struct flow_end *end, struct workload *workload, const char *program, uint32_t slots);
void flow_close(struct flow_end *end);

int flow_give_up(const struct flow_end *end, int error, const char *what);
uint64_t flow_now_ps(const struct flow_end *end);

// Properties of the operation.
bool flow_is_atomic(const struct flow_end *end);
bool flow_is_received(const struct flow_end *end); // takes a receive at the other end
bool flow_is_asked(const struct flow_end *end);    // the response carries the bytes: reads and atomics

// The number of measured repetitions of the point.
uint32_t flow_iterations(const struct flow_end *end);

// Posts the operation on a queue pair.
int flow_post(struct flow_end *end, uint32_t qp, bool signaled);
// After flow_open_slots: the operation of message `slot`, and its receive. Their wr_id is the slot. Atomics all work on
// the word of slot 0.
int flow_post_slot(struct flow_end *end, uint32_t slot);
int flow_receive_slot(struct flow_end *end, uint32_t slot);
// Takes at most a batch of the available completions of requests; flow_wait_sent first waits for one.
int flow_take_sent(struct flow_end *end);
int flow_wait_sent(struct flow_end *end);
// Waits until all posted requests are complete; the last request of each queue pair was signaled.
int flow_wait_done(struct flow_end *end);
// The same for messages, at most `most`; posts as many receives.
int flow_take_received(struct flow_end *end, int most);
int flow_wait_received(struct flow_end *end, int most);
// Returns when both ends have called it, and everything that either sent before has arrived.
int flow_meet(struct flow_end *end);

// --- flow_point.c --------------------------------------------------------------------------------------------------

// Returns when all ranks have called it.
int flow_barrier(struct flow_end *end);
// Sets both memories up for a point of this size. A barrier of all ranks.
int flow_point_begin(struct flow_end *end, uint64_t bytes);
// If a flow runs beside the measured one: a further barrier, after which it runs.
int flow_beside_wait(struct flow_end *end);
// Waits for outstanding requests, and checks every byte of the target; turns: of the last message, 0: none. A barrier
// of all ranks.
int flow_point_end(struct flow_end *end, uint32_t turns);

// A ping-pong in host memory numbers its turns, from 1 on, in the last byte of the message, as ib_write_lat does.
bool flow_is_marked(const struct flow_end *end);
void flow_turn_mark(struct flow_end *end, uint32_t turn);
int flow_turn_check(struct flow_end *end, uint32_t turn);
// Polls the last byte of the target.
int flow_turn_wait(struct flow_end *end, uint32_t turn);

// --- flow_memory.c -------------------------------------------------------------------------------------------------

// Room for `slots` messages of up to `bytes`.
int flow_memory_alloc(struct flow_end *end, struct flow_memory *memory, int gpu, size_t lead_bytes, size_t bytes,
                      uint32_t slots);
void flow_memory_free(struct flow_end *end, struct flow_memory *memory);
// The message of a slot: its address for work requests, its address for the program, its offset.
uint64_t flow_memory_address(const struct flow_memory *memory, uint32_t slot);
uint8_t *flow_memory_data(const struct flow_memory *memory, uint32_t slot);
size_t flow_memory_offset(const struct flow_memory *memory, uint32_t slot);
// Copies the image to the GPU, or from there.
int flow_memory_push(struct flow_end *end, const struct flow_memory *memory);
int flow_memory_pull(struct flow_end *end, const struct flow_memory *memory);
