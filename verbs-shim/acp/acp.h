// ACP, the base layer of Advanced Communication Primitives (ACE project; morie2016): one-sided copies and atomics in a
// global address space, over reliable connections of libibverbs. Programs written for the public library compile
// against this header and are started by acprun.
//
// A process is a rank. It registers memory and gets global addresses, 64-bit numbers that any rank may use: rank,
// colour, region and offset. Whoever knows two global addresses may copy between them, also where both are other ranks'
// memory. GMAs (global memory accesses: copies and atomics) go through a command queue to the process's communication
// thread, and run while the program goes on.
//
// Functions of the main thread: a process calls them from one thread at a time. Functions that return int give 0, or
// -1 if the arguments are wrong or the library is not initialised. What goes wrong later (a global address of a region
// that is not there, a rank that has ended) cannot be reported by a handle: the library says what it was on standard
// error and ends the process with status 1, and with it all ranks that acprun started.
//
// Leaves out: the middle layer (channels, segment buffers, vectors and other containers, acp_malloc). Programs may
// define its hooks (iacp_init_dl and others); nothing calls them.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t acp_ga_t;    // a global address: sums with offsets inside a region are global addresses as well
typedef uint64_t acp_atkey_t; // of a registered region
typedef int64_t acp_handle_t; // of a GMA; they grow in the order of the calls

#define ACP_GA_NULL    ((acp_ga_t)0)
#define ACP_ATKEY_NULL ((acp_atkey_t)0)

#define ACP_HANDLE_NULL ((acp_handle_t)0)  // as an order: none. As a result: the call was refused
#define ACP_HANDLE_ALL  ((acp_handle_t)-1) // all GMAs of the calling rank so far
#define ACP_HANDLE_CONT ((acp_handle_t)-2) // the GMA right before, and as for every order those before it: as ALL

// --- life -----------------------------------------------------------------------------------------------------------
// Collective: each returns when all ranks have called it.

// Takes the library's own arguments (--acp-...) out of argv. argc and argv may be NULL: then they are looked for in
// /proc/self/cmdline.
int acp_init(int *argc, char ***argv);
// Completes all GMAs, then frees everything: registered regions become ordinary memory.
int acp_finalize(void);
// As acp_finalize and acp_init, with another rank; every rank must be given to one process. Starter memory is zero.
int acp_reset(int rank);
int acp_sync(void);
// Writes the text to standard error and ends all ranks. Not collective.
void acp_abort(const char *text);

int acp_rank(void);  // -1: not initialised
int acp_procs(void); // number of ranks; -1: not initialised

// --- global memory --------------------------------------------------------------------------------------------------

// The starter memory of any rank: registered from acp_init on, zeroed, aligned to 64 B, of the same size everywhere
// (acprun -smemsize, 10240 B), colour 0.
acp_ga_t acp_query_starter_ga(int rank);

// Up to 255 regions at a time, of up to 16 GiB. Local, but for a number that was in use before: then it returns when
// every rank that this one is connected with has been told. ACP_ATKEY_NULL: no memory of the program, a wrong colour,
// or no number left.
acp_atkey_t acp_register_memory(void *address, size_t bytes, int color);
// Copies to or from the region that are under way, or come before its number is given out again, end the rank that
// started them, or the one that carries them out, and with it all. The memory must be there until then.
int acp_unregister_memory(acp_atkey_t atkey);

acp_ga_t acp_query_ga(acp_atkey_t atkey, void *address); // of a region of the caller's own; ACP_GA_NULL: not inside it
void *acp_query_address(acp_ga_t ga);                    // NULL: not the caller's
int acp_query_rank(acp_ga_t ga);                         // -1: no global address
int acp_query_color(acp_ga_t ga);                        // -1: no global address
int acp_colors(void);                                    // 2: a region's colour is 0 or 1

// --- global memory access -------------------------------------------------------------------------------------------
// Return at once, unless the command queue is full (1024 commands): then when the oldest is complete. order: the GMA
// starts when the one of this handle and all before it are complete. GMAs without an order between them may overlap.
// ACP_HANDLE_NULL: wrong arguments.

// Both may be anywhere, in the caller's memory or other ranks'. Ranges that overlap give undefined data.
acp_handle_t acp_copy(acp_ga_t dst, acp_ga_t src, size_t bytes, acp_handle_t order);

// On the word at src, whose old value goes to dst, which must be the caller's own memory. Both are aligned to the word.
// Carried out by the communication thread of src's rank: atomic among themselves, not with copies.
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

// Waits for the GMA of the handle and all before it. A handle that is NULL, complete or of no GMA: returns at once.
void acp_complete(acp_handle_t handle);
// 1: one of them is not complete yet. 0: as acp_complete would return at once.
int acp_inquire(acp_handle_t handle);

#ifdef __cplusplus
}
#endif
