// The objects of a process in kernel drivers: which ones it has, what memory they name, and how they end. Part of
// internal.h, for the files of the room.
//
// - An object belongs to one process, and only the requests of that process find it.
// - Whoever ends an object takes it out of reach, waits for what is in flight to it (objects.def), and destroys it: no
//   second request finds it, and nobody else destroys it meanwhile.
// - Objects that name other objects of the HCA are counted by the HCA itself (-EBUSY). The memory that objects name
//   (rings, records, regions) is counted here. Pinned host memory that is freed under them is out of reach at once, and
//   its pages stay until the last of these objects has ended, as pages do under a real kernel. A pin of device memory
//   cannot end under them (-EBUSY).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/kernel/thread.h"

struct attach_process;
struct attach_thread;

enum attach_object_kind {
#define OBJECT(ID, title, by, end, waits) OBJECT_##ID,
#include "sim/attach/objects.def"
#undef OBJECT
    OBJECT_KINDS
};

// What may be in flight to an object.
enum attach_in_flight {
    ATTACH_ACCESSES = 1, // of the HCA: its driver waits for them (HCA_SETTLES of models/hca/abi/commands.def)
    ATTACH_WORK = 2,     // of the queue itself: its driver waits for it
    ATTACH_COPIES = 4,   // of GPU queues of the process, those that end included
    ATTACH_STORES = 8,   // of threads of the process: in write-combining buffers, on the bus
};
unsigned attach_object_waits(enum attach_object_kind kind);

// A range of memory that devices reach.
struct attach_bus_range {
    uint64_t bus_address, bytes;
};

enum { ATTACH_OBJECT_RANGES_MAX = 3 }; // that an object names

// number: the driver's number; for a pin its offset.
struct attach_object {
    enum attach_object_kind kind;
    uint32_t gpu;
    uint64_t number;
    uint64_t bus_address, bytes; // of memory and pins
    uint64_t *pages;             // of a region of the program's own memory, pinned for it; NULL: none needed
    uint64_t va, va_bytes;       // of such a region
    bool open;                   // other nodes may write to it without notifying its process
    int unrelated;               // count of unrelated writes (poll_policy.h)
    // kept by objects.c
    uint64_t serial;                          // of the process's objects; never given again
    bool leaving;                             // out of reach
    bool kept;                                // its end was requested: its last user destroys it
    uint32_t users;                           // of memory and pins: objects that name it
    uint64_t names[ATTACH_OBJECT_RANGES_MAX]; // serials of the memory that it names
    unsigned name_count;
};

// The objects that the process has in kernel drivers.
struct attach_owned {
    struct attach_object *list;
    size_t count, room;
    uint64_t serials;
    sim_condition_t ended; // one has ended, or is within reach again, or stores have arrived
};

void attach_owned_init(struct attach_owned *owns);
void attach_owned_fini(struct attach_owned *owns);

// Adds an object that a driver has created. -ENOMEM: the list is full.
int attach_object_add(struct attach_process *process, const struct attach_object *object);
// NULL: the process has no such object within reach. Valid until another object comes or goes.
struct attach_object *attach_object_find(const struct attach_process *process, enum attach_object_kind kind,
                                         uint32_t gpu, uint64_t number);
// Adds an object that a driver has just created. If the process's list is full, the object is destroyed again.
int64_t attach_object_keep(struct attach_thread *thread, const struct attach_object *object);
// Destroys an object at the request of the process. -EINVAL: the process has no such object. -EBUSY: it is in use.
int64_t attach_object_release(struct attach_thread *thread, enum attach_object_kind kind, uint32_t gpu,
                              uint64_t number);
// Call before a thread's core is destroyed: waits for other threads that wait for its stores.
void attach_cores_await(struct attach_thread *thread);
// Destroys everything that the process has, in the order in which the drivers allow it, after its last request.
void attach_objects_clear(struct attach_thread *thread);

// Does the whole range belong to memory of the process that devices may reach?
bool attach_memory_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes);
bool attach_device_owned(const struct attach_process *process, uint32_t gpu, uint64_t address, uint64_t bytes);
bool attach_pinned_owned(const struct attach_process *process, uint64_t bus_address, uint64_t bytes); // no GPU memory
// The object names these ranges: their memory stays as long as the object. Ranges of no bytes name nothing. false: one
// of them is not in one piece of such memory, and the object names none of them.
bool attach_memory_name(struct attach_process *process, struct attach_object *object,
                        const struct attach_bus_range *ranges, unsigned count);
// The same for a range of device memory: it stays as long.
bool attach_device_name(struct attach_process *process, struct attach_object *object, uint32_t gpu, uint64_t address,
                        uint64_t bytes);
// Ends this. Memory that was freed in the meantime is destroyed if nothing else names it.
void attach_memory_unname(struct attach_thread *thread, struct attach_object *object);
