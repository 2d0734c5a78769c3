// TCA Verbs: the device tca0, reliable connections on a board that can only write (sato2015, section 4).
//
// Each pair of nodes with a queue pair between them has a connection. In either direction it has a low-latency ring of
// small packets, one per write, whose descriptors are built beforehand in the board's memory; a high-bandwidth ring of
// large packets, many per write, whose descriptors are built on the fly in host memory, two where the ring wraps; and
// after each write, chained, the counts of packets sent and taken (the PSN pair), which report arrivals and free slots.
// Rings are memory of tcaMalloc. From some size on, the board moves data directly if it can (source and destination
// from tcaMalloc, cudaMallocHost or GPU memory, with equal low 4 bits of the address); everything else is copied
// through the rings, and any address and length works. RDMA Read and atomics are requests to the remote library.
//
// Progress: the remote side of an operation is served when its program calls the library: any poll that finds an empty
// CQ or asks for no completion, post, wait for a CQ or an event, of any object of the context. A program that only
// reads its memory sees writes through the rings late, and a connection is complete only after both nodes have called.
// An attached program makes such a pass also while it waits outside of the library, when one is due (tcav_due_ps).
//
// With progress_thread each context has a thread (struct backend_thread_ops: a pthread on real hardware) on a core of
// its own that does the same continuously, so that the node answers while its program computes. It is off by default:
// the published library has none and every figure is measured with programs that poll, it takes a core from the
// program, and every call then pays for a lock. Locking: the lock of the context guards everything of the context
// (guard.c takes it around each operation, thread.c around each pass; a waiting thread releases it). The thread calls
// of libtca and CUDA only gdrcopy's copies, and uses the board through a handle of the context's own, so the program
// may use those libraries concurrently. Not modelled: the cost of its pauses; in the simulation a pass begins one
// iteration of a polling loop after something was written.
//
// A queue pair that is destroyed, or goes to ERR or RESET, first sends what was posted, for 100 us at most: on an adapter it
// leaves while the firmware stops the queue pair.
//
// Deregistration waits until no board moves data of the region any more; new uses of its keys fail from its beginning
// on. After a second (a peer that has a grant in it does not answer) it is refused with EBUSY, and the region is
// unchanged: a board cannot be stopped.
//
// Reliability: the fabric loses nothing, so nothing is retransmitted except after an RNR NAK, or if the peer's queue
// pair was not ready. Without any answer for (retry_cnt + 1) times the timeout, counted from the last sign of progress,
// the oldest request ends with IBV_WC_RETRY_EXC_ERR. Packet numbers count messages.
//
// Datagrams (UD) also use the rings, up to the MTU of 4096 B; they may be lost as on any network, but are never
// damaged. A context with UD queue pairs uses the board's interrupts, so no other process of the node may.
//
// Not modelled: UC, multicast groups, more than one process a node at a time (-EBUSY), memory windows. Memory must be
// deregistered before it is freed (tcaFree, cudaFree), as is true for all pinned pages.
//
// The library owns DMA channels 2 (rings) and 3 (data) of the board from the first queue pair of a context to its end.
#pragma once

#include "verbs-shim/ibverbs/device.h"

// How the library works with the board, of which sato2015 says nothing (docs/decisions/0013-tca-verbs.md).
// The copies of a chain - packet, PSN pair, notification: each waits until the earlier ones are written, or not.
enum tca_verbs_chain { TCA_VERBS_CHAIN_WAITS, TCA_VERBS_CHAIN_PIPELINED };
// How the sender sees the end of a chain of packets, before it starts the next one. LAZY, AT_ONCE: by a notification in the own
// board's memory, the last copy of the chain, which it loads before the next start or right after the start, until it is
// there. HOST: by the status that the DMAC writes to host memory.
enum tca_verbs_completion { TCA_VERBS_LAZY, TCA_VERBS_AT_ONCE, TCA_VERBS_HOST };
struct tca_verbs_form {
    uint32_t chain, completion;
};

// The argument of ibverbs_device_add; must exist longer than the process.
struct tca_verbs_device {
    struct peach2_board_handle *board; // of the node
    struct tca_verbs_form form;
    bool progress_thread;         // contexts have a progress thread; the default is false, see above
    struct tcav_context *context; // set by the library: the open context
    uint64_t datagrams_dropped;   // sent to a node that could not be reached, or received and not accepted
};

extern const struct ibverbs_device_ops tca_verbs_ops;

// Bytes of a queue pair and of a connection, in addition to the program's own memory, for `tcasim bench`.
size_t tca_verbs_qp_bytes(const struct ibv_qp_cap *cap);
size_t tca_verbs_connection_bytes(void);
