// What a rank's memory is spent on. Not part of the public library: for those who want to know what it takes, and what
// it would take among more ranks than run here.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

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
// What of it is pinned memory.
size_t acp_memory_pinned(void);
// Queue pairs that the calling process has, those for meeting included.
unsigned acp_queue_pairs(void);

#ifdef __cplusplus
}
#endif
