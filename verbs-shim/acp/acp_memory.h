/// @file
/// The memory use of a rank, in bytes. Not part of the public library: for measurements, and for estimates with more
/// ranks than run here (morie2016, tables 2 and 3).
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What the library has memory for.
enum acp_memory_kind {
    ACP_MEMORY_COMMAND_QUEUE,   ///< the command queue and its tasks
    ACP_MEMORY_REMOTE_COMMANDS, ///< the buffer for commands of other ranks, and its tasks
    ACP_MEMORY_REGIONS,         ///< the table of registered regions
    ACP_MEMORY_TABLE_CACHE,     ///< other ranks' tables
    ACP_MEMORY_INVALIDATION,    ///< generations of other ranks' tables
    ACP_MEMORY_STARTER_TABLE,   ///< the address of each rank's control block
    ACP_MEMORY_PEERS,           ///< connections, without their queue pairs
    ACP_MEMORY_STARTER,         ///< starter memory
    ACP_MEMORY_KINDS            ///< number of kinds
};
/// The name of each kind, in English.
extern const char *const acp_memory_names[ACP_MEMORY_KINDS];

/// What the calling process has allocated now.
/// @param kind one kind
/// @return bytes; 0: the process is not initialised
size_t acp_memory_bytes(enum acp_memory_kind kind);
/// What a rank would have allocated, with starter memory of the default size. Needs no acp_init.
/// @param kind one kind
/// @param ranks number of ranks
/// @param peers how many of them it is connected to, and has used the memory of
/// @return bytes
size_t acp_memory_expected(enum acp_memory_kind kind, uint64_t ranks, uint64_t peers);
/// The pinned part of what the calling process has allocated now.
/// @return bytes; 0: the process is not initialised
size_t acp_memory_pinned(void);
/// Queue pairs of the calling process, including the one for datagrams.
/// @return their number; 0: the process is not initialised
unsigned acp_queue_pairs(void);

#ifdef __cplusplus
}
#endif
