// What the threads of two processes do, in a test's own code: requests one after the other, at times that the test
// chooses (askers.h).
#pragma once

#include "tests/support/askers.h"

// NULL: this thread does nothing.
struct script {
    void (*first)(struct attach_thread *thread), (*first_too)(struct attach_thread *thread); // of the first process
    void (*second)(struct attach_thread *thread);
};

// Runs it on node 0 of pair.yaml. A process ends when its threads have. Checks that everything was given back.
void script_run(const struct script *script);

void script_sleep_until_us(const struct attach_thread *thread, uint64_t us);
uint64_t script_now_us(const struct attach_thread *thread);

// Memory that devices reach; the test fails if there is none.
uint64_t script_pinned(struct attach_thread *thread, uint64_t bytes);
int64_t script_free(struct attach_thread *thread, uint64_t bus_address);
// A command of the HCA, whose outputs are stored.
int64_t script_command(struct attach_thread *thread, struct hca_command *command);
// The number of the object that it creates; the test fails if it is refused.
uint32_t script_create(struct attach_thread *thread, struct hca_command command);
// The request's result; its reply is in the thread's slot.
int64_t script_request(struct attach_thread *thread, enum attach_op op, const union attach_args *args);

// A device of the node writes these bytes of zeros.
void script_device_writes(const struct attach_thread *thread, uint64_t bus_address, uint32_t bytes);

// A completion queue and what it needs. The second half of the memory (two pages) is left for a queue pair.
struct script_queues {
    uint64_t memory;
    uint32_t eq, pd, uar, cq;
};
struct script_queues script_queues(struct attach_thread *thread);
// Creates a queue pair with these completion queues; its number is in the reply.
int64_t script_pair(struct attach_thread *thread, const struct script_queues *own, uint32_t send_cq,
                    uint32_t receive_cq);

uint64_t script_device_memory(struct attach_thread *thread, uint32_t gpu, uint64_t bytes);
uint32_t script_gpu_queue(struct attach_thread *thread, uint32_t gpu);
int64_t script_submit(struct attach_thread *thread, uint32_t gpu, uint32_t queue, const struct backend_gpu_work *work);
