// The memory use of a rank. Not part of the public library: for measurements, and for estimates with more ranks than
// run here.
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
    ACP_MEMORY_STARTER_TABLE,   // the address of each rank's control block
    ACP_MEMORY_PEERS,           // connections, without their queue pairs
    ACP_MEMORY_STARTER,         // starter memory
    ACP_MEMORY_KINDS
};
extern const char *const acp_memory_names[ACP_MEMORY_KINDS];

// What the calling process has allocated for it now; 0 if the process is not initialised.
size_t acp_memory_bytes(enum acp_memory_kind kind);
// The same for a rank among `ranks` that is connected to `peers` of them and has used the memory of as many.
size_t acp_memory_expected(enum acp_memory_kind kind, uint64_t ranks, uint64_t peers);
// The pinned part of it.
size_t acp_memory_pinned(void);
// Queue pairs of the calling process, including the one for datagrams.
unsigned acp_queue_pairs(void);

#ifdef __cplusplus
}
#endif
