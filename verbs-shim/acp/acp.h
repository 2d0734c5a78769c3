/// @file
/// ACP, the base layer of Advanced Communication Primitives (ACE project; morie2016): one-sided copies and atomics in a
/// global address space, over reliable connections of libibverbs. Programs written for the public library compile
/// against this header and are started by acprun.
///
/// A process is a rank. It registers memory and gets global addresses, 64-bit numbers that any rank may use: rank,
/// colour, region and offset. A rank that knows two global addresses may copy between them, also if both are memory of
/// other ranks. GMAs (global memory accesses: copies and atomics) go through a command queue to the process's
/// communication thread, and run while the program continues (morie2016, figure 4).
///
/// Units: sizes and offsets are bytes. Words are little-endian.
///
/// Errors: the functions belong to the main thread: a process calls them from one thread at a time. Functions that
/// return int give 0, or -1 if the arguments are wrong or the library is not initialised. A handle cannot report later
/// errors (a global address of a region that does not exist, a rank that has ended): the library prints the reason to
/// standard error and ends the process with status 1, and with it all ranks that acprun started.
///
/// Ownership: registered memory remains the program's, and must exist until it is unregistered and no copy uses it.
/// Starter memory belongs to the library.
///
/// Not modelled: the middle layer (channels, segment buffers, vectors and other containers, acp_malloc). Programs may
/// define its hooks (iacp_init_dl and others); they are never called.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t acp_ga_t;    ///< a global address; plus an offset inside its region it is again a global address
typedef uint64_t acp_atkey_t; ///< names a registered region
typedef int64_t acp_handle_t; ///< names a GMA; handles increase in the order of the calls

#define ACP_GA_NULL    ((acp_ga_t)0)    ///< no global address
#define ACP_ATKEY_NULL ((acp_atkey_t)0) ///< no region

#define ACP_HANDLE_NULL ((acp_handle_t)0)  ///< as an order: no order. As a result: the call was refused
#define ACP_HANDLE_ALL  ((acp_handle_t)-1) ///< all GMAs of the calling rank so far
#define ACP_HANDLE_CONT ((acp_handle_t)-2) ///< the previous GMA; an order includes earlier GMAs, so like ALL

// --- life -----------------------------------------------------------------------------------------------------------
// Collective: each returns when all ranks have called it.

/// Collective. Starts the library. Removes its own arguments (--acp-...) from argv.
/// @param[in,out] argc may be NULL: then the library reads the arguments from /proc/self/cmdline
/// @param[in,out] argv may be NULL, likewise
/// @retval 0 it is initialised
/// @retval -1 acprun did not start the process, or the ranks could not be set up: the reason is on standard error. Or
///         it was initialised already
int acp_init(int *argc, char ***argv);
/// Collective. Completes all GMAs, then releases everything: registered regions become ordinary memory.
/// @retval 0 done
/// @retval -1 not initialised, or the exchange with the other ranks failed
int acp_finalize(void);
/// Collective. Like acp_finalize and acp_init, with another rank. Starter memory is zero.
/// @param rank of this process from now on; each rank must be assigned to one process
/// @retval 0 done
/// @retval -1 not initialised, no such rank, or not one process of each rank; in the last case the library has ended
int acp_reset(int rank);
/// Collective: a barrier. It does not complete GMAs.
/// @retval 0 all ranks have called it
/// @retval -1 not initialised
int acp_sync(void);
/// Prints a text to standard error and ends all ranks with status 1, before acp_init only this process. Does not
/// return. Not collective.
/// @param text may be NULL
void acp_abort(const char *text);

/// The rank of this process.
/// @return from 0; -1: not initialised
int acp_rank(void);
/// The number of ranks.
/// @return -1: not initialised
int acp_procs(void);

// --- global memory --------------------------------------------------------------------------------------------------

/// The starter memory of any rank: registered by acp_init, zeroed, aligned to 64 B, of the same size in all ranks
/// (acprun -smemsize, 10240 B), colour 0.
/// @param rank of its owner
/// @return the global address of its first byte; ACP_GA_NULL: not initialised, or no such rank
acp_ga_t acp_query_starter_ga(int rank);

/// Registers memory of the program, so that all ranks may access it. Up to 255 regions at a time. Local, except for a
/// number that was in use before: then the call returns when every connected rank has been notified.
/// @param address of the first byte
/// @param bytes 1 to 16 GiB
/// @param color 0 or 1
/// @return the key; ACP_ATKEY_NULL: not initialised, no memory of the program, a wrong size or colour, or no number
///         left
acp_atkey_t acp_register_memory(void *address, size_t bytes, int color);
/// Ends a region. Copies to or from it that are in flight, or start before its number is used again, end the rank that
/// started or executes them, and with it all ranks. The memory must exist until then.
/// @param atkey of acp_register_memory
/// @retval 0 done
/// @retval -1 not initialised, or not a region of the caller
int acp_unregister_memory(acp_atkey_t atkey);

/// The global address of a byte of the caller's region.
/// @param atkey of acp_register_memory
/// @param address inside the region
/// @return ACP_GA_NULL: not initialised, not a region of the caller, or not inside it
acp_ga_t acp_query_ga(acp_atkey_t atkey, void *address);
/// The address of a byte of the caller's memory.
/// @param ga a global address
/// @return NULL: not initialised, or not the caller's memory
void *acp_query_address(acp_ga_t ga);
/// The owner of a global address. The region need not exist.
/// @param ga a global address
/// @return -1: not initialised, or not a global address
int acp_query_rank(acp_ga_t ga);
/// The colour of a global address. The region need not exist.
/// @param ga a global address
/// @return 0 or 1; -1: not initialised, or not a global address
int acp_query_color(acp_ga_t ga);
/// The number of colours.
/// @return 2: a region's colour is 0 or 1; -1: not initialised
int acp_colors(void);

// --- global memory access -------------------------------------------------------------------------------------------
// They return at once; if the command queue is full (1024 commands), when the oldest is complete. GMAs without an order
// between them may overlap.

/// Copies between any two ranks' memory. Overlapping ranges give undefined data.
/// @param dst global address of the destination
/// @param src global address of the source
/// @param bytes up to 16 GiB
/// @param order the GMA starts after the GMA of this handle and all before it are complete; ACP_HANDLE_NULL: at once
/// @return a handle; ACP_HANDLE_NULL: not initialised, or wrong arguments
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t bytes, acp_handle_t order);

/// @{
/// Compare and swap of a word of 4 or 8 bytes. The communication thread of src's rank executes it: atomic against other
/// atomics, not against copies.
/// @param dst where the word's old value goes: the caller's own memory, aligned to the word
/// @param src the word, in any rank's memory, aligned to its size
/// @param old_value the word is changed only if it has this value
/// @param new_value the word's value then
/// @param order as for acp_copy
/// @return a handle; ACP_HANDLE_NULL: not initialised, or wrong arguments
acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t old_value, uint32_t new_value, acp_handle_t order);
acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t old_value, uint64_t new_value, acp_handle_t order);
/// @}

/// @{
/// An atomic on a word of 4 or 8 bytes: swap, add (modulo its size), bitwise exclusive or, or, and. Executed as
/// acp_cas8 is.
/// @param dst where the word's old value goes: the caller's own memory, aligned to the word
/// @param src the word, in any rank's memory, aligned to its size
/// @param value the second operand; for swap the new value
/// @param order as for acp_copy
/// @return a handle; ACP_HANDLE_NULL: not initialised, or wrong arguments
acp_handle_t acp_swap4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_swap8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_add4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_add8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_xor4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_xor8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_or4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_or8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
acp_handle_t acp_and4(acp_ga_t dst, acp_ga_t src, uint32_t value, acp_handle_t order);
acp_handle_t acp_and8(acp_ga_t dst, acp_ga_t src, uint64_t value, acp_handle_t order);
/// @}

/// Waits for the GMA of a handle and all before it. Returns at once if none of them can be incomplete.
/// @param handle of a GMA, or ACP_HANDLE_ALL; returns at once for ACP_HANDLE_NULL and for numbers of no GMA
void acp_complete(acp_handle_t handle);
/// Asks whether acp_complete would wait.
/// @param handle as for acp_complete
/// @retval 1 the GMA or one before it is not complete yet
/// @retval 0 acp_complete would return at once; also if the library is not initialised
int acp_inquire(acp_handle_t handle);

#ifdef __cplusplus
}
#endif
