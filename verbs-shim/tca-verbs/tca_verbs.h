// TCA Verbs: the device tca0, reliable connections on a board that can only write (sato2015, section 4).
//
// Each pair of nodes with a queue pair between them has a connection: in either direction a low-latency ring of small
// packets, one a write, whose descriptors lie prebuilt in the board's memory; a high-bandwidth ring of large packets,
// many a write, whose descriptors are built on the fly in host memory, two where the ring wraps; and behind each write,
// chained, the counts of packets sent and taken (the PSN pair), which tell of arrival and give room back. Rings are
// memory of tcaMalloc. What the board can move from place to place itself (both places of tcaMalloc, cudaMallocHost or
// GPU memory, with equal low 4 bits of the address) it does from some size on; everything else is copied through the
// rings, and any address and length works. RDMA Read and atomics are asked of the remote library.
//
// Progress: the remote side of an operation is served when its program calls the library: any poll that finds an empty
// CQ or asks for no completion, post, wait for a CQ or an event, of any object of the context. A program that only
// looks at its memory sees writes of the rings late, and the connection of two nodes is made once both have called.
//
// With progress_thread each context has a thread (struct backend_thread_ops: a pthread on the machine) with a core of
// its own that does the same all the time, so that the node answers while its program computes. It is off by default:
// the published library has none and every figure is measured with programs that poll, it takes a core from the
// program, and every call then pays for a lock. What guards what: the lock of the context everything of the context
// (guard.c takes it around each operation, thread.c around each pass; whoever waits gives it back meanwhile). The
// thread calls nothing of libtca and CUDA but gdrcopy's copies, and the board by a handle of the context's own, so that
// the program may use those libraries beside it. Left out: that its pauses cost nothing in the simulation, where a pass
// begins one turn of a polling loop after something was written.
//
// Deregistration waits until no board moves data of the region any more, and new uses of its keys fail from its
// beginning on. After a second (a peer that got a place in it does not answer) it is refused with EBUSY, and the region
// is as it was: a board cannot be told to stop.
//
// Reliability: the fabric loses nothing, so that nothing is sent twice but after an RNR NAK, or when the peer's queue
// pair was not ready. Without any answer for (retry_cnt + 1) times the timeout, counted from the last sign of progress,
// the oldest request ends with IBV_WC_RETRY_EXC_ERR. Packet numbers count messages.
//
// Datagrams (UD) travel in the rings as well, up to the MTU of 4096 B; they are lost as on any network, never damaged.
// A context that has queue pairs of them takes the board's interrupts, so that nobody else of the node may.
//
// Leaves out: UC, groups of nodes, more than one process a node at a time (-EBUSY), memory windows. Memory that is
// given back (tcaFree, cudaFree) while it is registered must be deregistered before: that is so for pinned pages
// everywhere.
//
// DMA channels 2 (rings) and 3 (data) of the board are the library's while a context is open.
#pragma once

#include "verbs-shim/ibverbs/device.h"

// What ibverbs_device_add is given; outlives the process.
struct tca_verbs_device {
    struct peach2_board_handle *board; // of the node
    bool progress_thread;              // contexts have a thread of progress; false is the default, see above
    struct tcav_context *context;      // the library's: open
    uint64_t datagrams_dropped;        // that it sent and nobody could be reached for, or that came and nobody took
};

extern const struct ibverbs_device_ops tca_verbs_ops;

// Bytes of a queue pair and of a connection, beside the program's own memory: what `tcasim bench` prints.
size_t tca_verbs_qp_bytes(const struct ibv_qp_cap *cap);
size_t tca_verbs_connection_bytes(void);
