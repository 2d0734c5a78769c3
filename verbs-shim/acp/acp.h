// ACP, the base layer of Advanced Communication Primitives (ACE project; morie2016): one-sided copies and atomics in a
// global address space, over reliable connections of libibverbs. Programs written for the public library compile
// against this header and are started by acprun.
//
// A process is a rank. It registers memory and gets global addresses, 64-bit numbers that any rank may use: rank,
// colour, region and offset. A rank that knows two global addresses may copy between them, also if both are memory of
// other ranks. GMAs (global memory accesses: copies and atomics) go through a command queue to the process's
// communication thread, and run while the program continues.
//
// The functions belong to the main thread: a process calls them from one thread at a time. Functions that return int
// give 0, or -1 if the arguments are wrong or the library is not initialised. A handle cannot report later errors (a
// global address of a region that does not exist, a rank that has ended): the library prints the reason to standard
// error and ends the process with status 1, and with it all ranks that acprun started.
//
// Not modelled: the middle layer (channels, segment buffers, vectors and other containers, acp_malloc). Programs may
// define its hooks (iacp_init_dl and others); they are never called.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t acp_ga_t;    // a global address; plus an offset inside its region it is again a global address
typedef uint64_t acp_atkey_t; // of a registered region
typedef int64_t acp_handle_t; // of a GMA; handles increase in the order of the calls

#define ACP_GA_NULL    ((acp_ga_t)0)
#define ACP_ATKEY_NULL ((acp_atkey_t)0)

#define ACP_HANDLE_NULL ((acp_handle_t)0)  // as an order: no order. As a result: the call was refused
#define ACP_HANDLE_ALL  ((acp_handle_t)-1) // all GMAs of the calling rank so far
#define ACP_HANDLE_CONT ((acp_handle_t)-2) // the previous GMA; an order includes earlier GMAs, so like ALL

// --- life -----------------------------------------------------------------------------------------------------------
// Collective: each returns when all ranks have called it.

// Removes the library's own arguments (--acp-...) from argv. argc and argv may be NULL: then the library reads them
// from /proc/self/cmdline.
int acp_init(int *argc, char ***argv);
// Completes all GMAs, then releases everything: registered regions become ordinary memory.
int acp_finalize(void);
// Like acp_finalize and acp_init, with another rank; each rank must be assigned to one process. Starter memory is zero.
int acp_reset(int rank);
int acp_sync(void);
// Prints the text to standard error and ends all ranks. Not collective.
void acp_abort(const char *text);

int acp_rank(void);  // -1: not initialised
int acp_procs(void); // number of ranks; -1: not initialised

// --- global memory --------------------------------------------------------------------------------------------------

// The starter memory of any rank: registered by acp_init, zeroed, aligned to 64 B, of the same size in all ranks
// (acprun -smemsize, 10240 B), colour 0.
acp_ga_t acp_query_starter_ga(int rank);

// Up to 255 regions at a time, of up to 16 GiB. Local, except for a number that was in use before: then the call
// returns when every connected rank has been notified. ACP_ATKEY_NULL: no memory of the program, a wrong colour, or no
// number left.
acp_atkey_t acp_register_memory(void *address, size_t bytes, int color);
// Copies to or from the region that are in flight, or start before its number is used again, end the rank that started
// or executes them, and with it all ranks. The memory must exist until then.
int acp_unregister_memory(acp_atkey_t atkey);

acp_ga_t acp_query_ga(acp_atkey_t atkey, void *address); // only for a region of the caller; ACP_GA_NULL: not inside it
void *acp_query_address(acp_ga_t ga);                    // NULL: not the caller's memory
int acp_query_rank(acp_ga_t ga);                         // -1: not a global address
int acp_query_color(acp_ga_t ga);                        // -1: not a global address
int acp_colors(void);                                    // 2: a region's colour is 0 or 1

// --- global memory access -------------------------------------------------------------------------------------------
// They return at once; if the command queue is full (1024 commands), when the oldest is complete. order: the GMA starts
// after the GMA of this handle and all before it are complete. GMAs without an order between them may overlap.
// ACP_HANDLE_NULL: wrong arguments.

// Both may be in any rank's memory. Overlapping ranges give undefined data.
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t bytes, acp_handle_t order);

// An atomic on the word at src; its old value goes to dst, which must be the caller's own memory. Both are aligned to
// the word. The communication thread of src's rank executes it: atomic against other atomics, not against copies.
acp_handle_t acp_cas4(acp_ga_t dst, acp_ga_t src, uint32_t old_value, uint32_t new_value, acp_handle_t order);
acp_handle_t acp_cas8(acp_ga_t dst, acp_ga_t src, uint64_t old_value, uint64_t new_value, acp_handle_t order);
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

// Waits for the GMA of the handle and all before it. Returns at once if the handle is NULL, complete or not of a GMA.
void acp_complete(acp_handle_t handle);
// 1: one of them is not complete yet. 0: acp_complete would return at once.
int acp_inquire(acp_handle_t handle);

#ifdef __cplusplus
}
#endif
