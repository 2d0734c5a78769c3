// How the ranks of an ACP program find each other: an exchange among them outside the fabric. Started by acprun, it is
// a connection to acprun (boot_socket.c); inside the simulator the environment gives another one.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ACP_BOOT_BYTES_MAX 64u // of one letter

struct acp_boot {
    void *ctx;
    uint32_t place, places; // a number of each process, which stays when acp_reset changes its rank; how many
    uint32_t rank;          // to begin with
    const char *device;     // of libibverbs; NULL: the first one with an active port
    uint64_t starter_bytes; // of starter memory; 0: ACP_STARTER_BYTES
    bool connect_all;       // at the start rather than at first use
    // Gives `mine` to all and takes everybody's, by place. Returns when all have called it. -EIO, with a message.
    int (*gather)(void *ctx, const void *mine, void *all, size_t bytes);
    // Ends all ranks with this message. May return inside the simulator, which then stops.
    void (*abort)(void *ctx, const char *text);
    void (*close)(void *ctx); // may be NULL
};

// For the calling process, before acp_init. *boot is copied; ctx must live until acp_finalize. -ENOMEM.
int acp_boot_set(const struct acp_boot *boot);

// From acprun's arguments, which are taken out. -ENOENT: there are none. -EINVAL, -EIO: with a message.
int acp_boot_from_arguments(int *argc, char ***argv, struct acp_boot *boot_out);

// --- what a rank's memory is spent on -------------------------------------------------------------------------------

enum acp_memory_kind {
    ACP_MEMORY_COMMAND_QUEUE,
    ACP_MEMORY_REMOTE_COMMANDS, // the buffer for commands of other ranks, and its tasks
    ACP_MEMORY_REGIONS,         // the table of registered regions
    ACP_MEMORY_TABLE_CACHE,     // other ranks' tables
    ACP_MEMORY_INVALIDATION,    // generations of other ranks' tables
    ACP_MEMORY_STARTER_TABLE,   // where each rank's memory for the library lies
    ACP_MEMORY_PEERS,           // connections, without their queue pairs
    ACP_MEMORY_STARTER,         // starter memory
    ACP_MEMORY_KINDS
};
extern const char *const acp_memory_names[ACP_MEMORY_KINDS];

// What the calling process has allocated for it now; of a process that is not initialised 0.
size_t acp_memory_bytes(enum acp_memory_kind kind);
// The same of a rank among `ranks` that is connected with `peers` of them and has used memory of as many.
size_t acp_memory_expected(enum acp_memory_kind kind, uint64_t ranks, uint64_t peers);
// Queue pairs that the calling process has, those for meeting included.
unsigned acp_queue_pairs(void);
