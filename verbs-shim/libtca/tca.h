// The TCA user library, as programs for HA-PACS/TCA call it: memory that boards reach, handles, descriptors, DMA, and
// notifications.
//
// GPU memory is device memory of CUDA's (verbs-shim/cuda): of the current device, pinned into the window of the GPU so
// that boards reach it. The window of the fabric has room for the first two GPUs of each node. cudaFree of memory with
// a handle closes its window: copies that were already started then end with an error, later ones are refused.
//
// Calls return tcaSuccess or one of enum tcaError, and never touch the board after a refusal; tcaStrError says what
// to do about a code, tcaLastMessage what was wrong with the last call that was refused. Sizes and offsets are bytes.
//
// A handle is plain bytes: ranks send it to each other as it is. That memory of the own process was freed is noticed;
// of another node's it cannot be: a copy to a stale handle of freed memory there goes where the handle points, as on
// the machine, and whoever frees memory first makes sure that nobody sends to it any more. Copies go from memory of the
// own node to memory of any node of the sub-cluster; the board cannot read across a cable.
//
// A notification is an 8-byte word with a tag, written behind the copied data. It arrives at the node of the
// destination (tcaDMANotify) or at the own node (tcaDMANotifySelf), in the slot `wait_slot` of the node that sent it:
// each node has tcaSlots slots for every sender, so that a rank may wait for fifteen others in slot 0. A wait names the
// sender by a handle of that node, whichever of its memory it stands for. The wait takes the word out again. A second
// notification from the same node for a slot that was not waited for replaces the first.
//
// Where public descriptions leave something open: every tcaDescSetMemcpy adds to what the descriptor holds;
// tcaDMAContinue (more copies follow) is accepted and changes nothing; the library looks for a notification in host
// memory and in the board's memory, and begins where the last one from that sender came to that slot.
//
// tca-api.h has the names of the library's older generation and its PIO calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { tcaNodesMax = 16, tcaChannels = 4, tcaSlots = 32 };

typedef enum tcaMemoryType { tcaMemoryCPU, tcaMemoryGPU } tcaMemoryType;

typedef enum tcaDMAFlag {
    tcaDMAUseInternal = 1,       // descriptors in the board's memory; all copies of a descriptor or none
    tcaDMAUseNotifyInternal = 2, // the notification word lies in the board's memory, polled with PCIe reads
    tcaDMANotify = 4,            // notify the destination
    tcaDMANotifySelf = 8,        // notify the source as well
    tcaDMAPipeline = 16,         // do not wait until the copies before have been written
    tcaDMAContinue = 32          // more copies follow
} tcaDMAFlag;

enum tcaError {
    tcaSuccess = 0,
    tcaErrorNotInitialized = -1,
    tcaErrorNoBoard = -2,
    tcaErrorArgument = -3,
    tcaErrorNoMemory = -4,
    tcaErrorNotSupported = -5,
    tcaErrorHandle = -6,
    tcaErrorNotTcaMemory = -7,
    tcaErrorFreed = -8,
    tcaErrorRange = -9,
    tcaErrorAlignment = -10,
    tcaErrorSize = -11,
    tcaErrorSlot = -12,
    tcaErrorChannel = -13,
    tcaErrorBusy = -14,
    tcaErrorNotSet = -15,
    tcaErrorBoardMemory = -16,
    tcaErrorNodes = -17,
    tcaErrorComm = -18,
    tcaErrorNotLocal = -19,
    tcaErrorDMA = -20,
    tcaErrorIO = -21,
    tcaErrorTimeout = -22,
    tcaErrorWindow = -23,
    tcaErrorInUse = -24
};
const char *tcaStrError(int error);
const char *tcaLastMessage(void); // lives until the next call that is refused

// --- set-up ------------------------------------------------------------------------------------------------------

// Once for each process; again is allowed. The node's board is the process's until it ends. tcaErrorNoBoard,
// tcaErrorNoMemory, tcaErrorInUse (another process of the node has the board).
int tcaInit(void);

// What the environment gives a program in place of MPI, for the collective calls: `all` receives the `bytes` of every
// rank in rank order. Returns 0 or a negative errno.
struct tcaComm {
    void *ctx;
    int rank, ranks;
    int (*allgather)(void *ctx, const void *mine, void *all, size_t bytes);
};
// Copied. tcaErrorNodes: more than 16 ranks. tcaErrorArgument.
int tcaSetComm(const struct tcaComm *comm);

// How long the waits of this process go on before they return tcaErrorTimeout, in nanoseconds of its clock; 0: for
// ever. Without this call tcaTimeoutDefault, a second. What was waited for may still come, and one may wait again.
#define tcaTimeoutDefault 1000000000ull
int tcaSetTimeout(uint64_t timeout_ns);

// --- memory and handles --------------------------------------------------------------------------------------------

// Zeroed. CPU: page-aligned. tcaErrorNoMemory, tcaErrorArgument (no bytes). GPU, of the current CUDA device: as
// cudaMalloc, no bytes are NULL and no error; tcaErrorNotSupported (the node has no GPU), tcaErrorWindow (not one of
// its first two).
int tcaMalloc(void **ptr, size_t size, tcaMemoryType type);
// NULL as GPU memory is no error. tcaErrorNotTcaMemory; tcaErrorBusy while a DMA reads it.
int tcaFree(void *ptr, tcaMemoryType type);

typedef struct tcaHandle {
    uint32_t magic;
    uint16_t bytes; // of this struct
    uint8_t type, node;
    uint64_t busAddress, size;
    uint64_t blockOffset;  // in its block of the node's window: host memory, or the GPU's BAR
    uint64_t slotsAddress; // of the node's notification slots in host memory; in the board's they have a fixed place
    uint32_t allocation;   // which tcaMalloc of the process
    uint32_t gpu;          // which of the node, for GPU memory
    uint32_t check;        // over all before it
} tcaHandle;

// For size bytes at ptr, which lie in one allocation of this process. CPU memory comes from tcaMalloc, or from
// cudaMallocHost, which is pinned as well: programs that stage GPU data in host memory (hanawa2013) send from there
// without another copy. Other CPU memory is refused. GPU memory comes from tcaMalloc or
// cudaMalloc, which is pinned then until cudaFree. tcaErrorNotTcaMemory, tcaErrorRange, tcaErrorAlignment
// (ptr is no multiple of 4), for GPU memory also tcaErrorNotSupported, tcaErrorWindow, and tcaErrorNoMemory (the GPU's
// window is full). No bytes of GPU memory at NULL have a handle too, to which nothing can be copied.
int tcaCreateHandle(tcaHandle *handle, void *ptr, size_t size, tcaMemoryType type);
// Where devices of the own node reach size bytes of GPU memory from cudaMalloc or tcaMalloc: a bus address. The memory
// is pinned until it is freed. Needs neither a board nor tcaInit. tcaErrorArgument, tcaErrorNotTcaMemory,
// tcaErrorNotSupported, tcaErrorNoMemory.
typedef int tcaresult;
tcaresult tcaCreateHandleGPU(unsigned long long *paddr, void *ptr, size_t size);
// Collective: *list becomes the handles of the first nranks ranks of tcaComm, in rank order; free() it. ptr tells which
// kind of memory it is. Ranks from nranks on call it too, with any ptr. Under MPI such a rank may as well leave out
// every list of that length, if it is shorter than the world. (Such a list travels in messages of MPI_COMM_WORLD, so no
// receive for any source and any tag may wait there meanwhile.) Every rank returns the error of the first of these
// ranks that has one. tcaErrorNodes: nranks is not 1 to 16, or more than there are ranks.
int tcaCreateHandleList(tcaHandle **list, int nranks, void *ptr, size_t size);

// --- descriptors ---------------------------------------------------------------------------------------------------

typedef struct tcaDesc tcaDesc;

tcaDesc *tcaDescNew(void); // NULL: see tcaLastMessage
// tcaErrorBusy while its DMA runs.
int tcaDescFree(tcaDesc *desc);

// Adds a copy of size bytes. size is a multiple of 4; both addresses are, and agree in their low 4 bits. wait_slot and
// wait_tag count with tcaDMANotify or tcaDMANotifySelf. tcaErrorHandle, tcaErrorFreed, tcaErrorNotLocal (the source
// lies in another node), tcaErrorRange, tcaErrorAlignment, tcaErrorSize, tcaErrorSlot, tcaErrorBusy, tcaErrorArgument.
int tcaDescSetMemcpy(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src, size_t src_offset,
                     size_t size, int flags, int wait_slot, uint32_t wait_tag);
// Adds a copy of count rows of width bytes. Pitches are multiples of 4 and agree in their low 4 bits.
int tcaDescSetMemcpy2D(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, size_t dst_pitch, const tcaHandle *src,
                       size_t src_offset, size_t src_pitch, size_t width, size_t count, int flags, int wait_slot,
                       uint32_t wait_tag);

// --- DMA -----------------------------------------------------------------------------------------------------------

// Hands the descriptor to a DMA channel; as often as one likes, also before each start. The first time after a change
// it is written to host or board memory; after that it costs one register, or none where it is set already. Channels 2
// and 3 are TCA Verbs' while the process has tca0 open (tcaErrorBusy). tcaErrorChannel, tcaErrorBusy (the channel or
// the descriptor runs), tcaErrorNotSet (it holds no copy), tcaErrorFreed, tcaErrorBoardMemory.
int tcaDescSet(tcaDesc *desc, int channel);
// tcaErrorNotSet, tcaErrorBusy, tcaErrorFreed, tcaErrorDMA (the DMA before failed, and nobody waited for it).
int tcaStartDMADesc(int channel);
// Until all that was started has been issued; the source may be reused then. Nothing started: at once. tcaErrorDMA,
// tcaErrorTimeout (it still runs). Issued is not arrived: of data that is lost on its way only the receiver can know.
int tcaWaitDMAC(int channel);
// Until the tag has arrived in the slot of the node whose handle it is: the node that sends, with tcaDMANotifySelf and
// for copies within the node the own one. tcaErrorHandle, tcaErrorFreed (a handle of this process), tcaErrorSlot,
// tcaErrorIO (the board does not answer), tcaErrorTimeout (nothing came: the sender did not send, or a cable on the way
// is dead; the board cannot tell which). A wait of more than a millisecond for a notification in the board's memory may
// see it late by 1/128 of the wait.
int tcaWaitDMARecvDesc(const tcaHandle *handle, int wait_slot, uint32_t wait_tag);

#ifdef __cplusplus
}
#endif
