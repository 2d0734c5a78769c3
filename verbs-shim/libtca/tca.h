// The TCA user library, as programs for HA-PACS/TCA call it: memory that boards can reach, handles, descriptors, DMA,
// and notifications.
//
// GPU memory is CUDA device memory (verbs-shim/cuda) of the current device, pinned into the GPU's window so that boards
// reach it. The window of the fabric has room for the first two GPUs of each node. cudaFree of memory with a handle
// closes its window: copies that were already started then end with an error, later ones are refused.
//
// Calls return tcaSuccess or one of enum tcaError, and do not touch the board after a refusal; tcaStrError says what to
// do about a code, tcaLastMessage what was wrong with the last refused call. Sizes and offsets are bytes.
//
// A handle is plain bytes: ranks send it to each other as it is. The library detects that memory of the own process was
// freed; it cannot detect this for another node: a copy to a stale handle of freed memory there goes where the handle
// points, as on the machine, so a program must stop all senders before it frees memory. Copies go from memory of the
// own node to memory of any node of the sub-cluster; the board cannot read across a cable.
//
// A notification is an 8-byte word with a tag, written after the copied data. It arrives at the node of the destination
// (tcaDMANotify) or at the own node (tcaDMANotifySelf), in the slot `wait_slot` of the node that sent it: each node has
// tcaSlots slots for every sender, so a rank may wait for fifteen others in slot 0. A wait names the sender by any
// handle of that node. The wait removes the word. A second notification from the same node for a slot that was not
// waited for replaces the first.
//
// Decisions where public descriptions are silent: every tcaDescSetMemcpy adds to what the descriptor holds;
// tcaDMAContinue (more copies follow) is accepted and has no effect; the library polls for a notification in host
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
    tcaDMAUseNotifyInternal = 2, // the notification word is in the board's memory, polled with PCIe reads
    tcaDMANotify = 4,            // notify the destination
    tcaDMANotifySelf = 8,        // also notify the source
    tcaDMAPipeline = 16,         // do not wait until earlier copies have been written
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
const char *tcaLastMessage(void); // valid until the next refused call

// --- set-up ------------------------------------------------------------------------------------------------------

// Called once in each process; more calls are allowed. The process owns the node's board until it ends.
// tcaErrorNoBoard, tcaErrorNoMemory, tcaErrorInUse (another process of the node owns the board).
int tcaInit(void);

// What a program without MPI provides for the collective calls: `all` receives the `bytes` of every rank in rank order.
// Returns 0 or a negative errno.
struct tcaComm {
    void *ctx;
    int rank, ranks;
    int (*allgather)(void *ctx, const void *mine, void *all, size_t bytes);
};
// The struct is copied. tcaErrorNodes: more than 16 ranks. tcaErrorArgument.
int tcaSetComm(const struct tcaComm *comm);

// The timeout of this process's waits, in nanoseconds of its clock, after which they return tcaErrorTimeout; 0: none.
// The default is tcaTimeoutDefault, one second. The event may still come after a timeout, and one may wait again.
#define tcaTimeoutDefault 1000000000ull
int tcaSetTimeout(uint64_t timeout_ns);

// --- memory and handles --------------------------------------------------------------------------------------------

// Zeroed. CPU: page-aligned. tcaErrorNoMemory, tcaErrorArgument (no bytes). GPU, of the current CUDA device: as with
// cudaMalloc, no bytes give NULL and no error; tcaErrorNotSupported (the node has no GPU), tcaErrorWindow (not one of
// its first two).
int tcaMalloc(void **ptr, size_t size, tcaMemoryType type);
// NULL as GPU memory is no error. tcaErrorNotTcaMemory; tcaErrorBusy while a DMA uses it.
int tcaFree(void *ptr, tcaMemoryType type);

typedef struct tcaHandle {
    uint32_t magic;
    uint16_t bytes; // size of this struct
    uint8_t type, node;
    uint64_t busAddress, size;
    uint64_t blockOffset;  // offset in its block of the node's window: host memory, or the GPU's BAR
    uint64_t slotsAddress; // notification slots in host memory; the board's slots have a fixed offset
    uint32_t allocation;   // number of the process's tcaMalloc call
    uint32_t gpu;          // number of the GPU in the node, for GPU memory
    uint32_t check;        // checksum of all fields before it
} tcaHandle;

// For size bytes at ptr, inside one allocation of this process. CPU memory comes from tcaMalloc, or from
// cudaMallocHost, which is pinned as well: programs that stage GPU data in host memory (hanawa2013) send from there
// without another copy. Other CPU memory is refused. GPU memory comes from tcaMalloc or cudaMalloc; the call pins
// memory of cudaMalloc until cudaFree. tcaErrorNotTcaMemory, tcaErrorRange, tcaErrorAlignment (ptr is no multiple of
// 4), for GPU memory also tcaErrorNotSupported, tcaErrorWindow, and tcaErrorNoMemory (the GPU's window is full). No
// bytes of GPU memory at NULL also have a handle, to which nothing can be copied.
int tcaCreateHandle(tcaHandle *handle, void *ptr, size_t size, tcaMemoryType type);
// The bus address at which devices of the own node reach size bytes of GPU memory from cudaMalloc or tcaMalloc. The
// memory is pinned until it is freed. Needs neither a board nor tcaInit. tcaErrorArgument, tcaErrorNotTcaMemory,
// tcaErrorNotSupported, tcaErrorNoMemory.
typedef int tcaresult;
tcaresult tcaCreateHandleGPU(unsigned long long *paddr, void *ptr, size_t size);
// Collective: *list becomes the handles of the first nranks ranks of tcaComm, in rank order; release it with free().
// ptr may be either kind of memory. Ranks from nranks on call it too, with any ptr. Under MPI such a rank may also skip
// every list of that length, if it is shorter than the world. (Such a list travels in messages of MPI_COMM_WORLD, so no
// receive for any source and any tag may be pending there at that time.) Every rank returns the error of the first of
// these ranks that has one. tcaErrorNodes: nranks is not 1 to 16, or more than there are ranks.
int tcaCreateHandleList(tcaHandle **list, int nranks, void *ptr, size_t size);

// --- descriptors ---------------------------------------------------------------------------------------------------

typedef struct tcaDesc tcaDesc;

tcaDesc *tcaDescNew(void); // NULL: see tcaLastMessage
// tcaErrorBusy while its DMA runs.
int tcaDescFree(tcaDesc *desc);

// Adds a copy of size bytes. size and both addresses are multiples of 4, and the addresses agree in their low 4 bits.
// wait_slot and wait_tag are used with tcaDMANotify or tcaDMANotifySelf. tcaErrorHandle, tcaErrorFreed,
// tcaErrorNotLocal (the source is in another node), tcaErrorRange, tcaErrorAlignment, tcaErrorSize, tcaErrorSlot,
// tcaErrorBusy, tcaErrorArgument.
int tcaDescSetMemcpy(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src, size_t src_offset,
                     size_t size, int flags, int wait_slot, uint32_t wait_tag);
// Adds a copy of count rows of width bytes. Pitches are multiples of 4 and agree in their low 4 bits.
int tcaDescSetMemcpy2D(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, size_t dst_pitch, const tcaHandle *src,
                       size_t src_offset, size_t src_pitch, size_t width, size_t count, int flags, int wait_slot,
                       uint32_t wait_tag);

// --- DMA -----------------------------------------------------------------------------------------------------------

// Sets the descriptor on a DMA channel; any number of times, also before each start. The first call after a change
// writes it to host or board memory; after that the call costs one register write, or none if it is already set. TCA
// Verbs uses channels 2 and 3 while the process has tca0 open (tcaErrorBusy). tcaErrorChannel, tcaErrorBusy (the
// channel or the descriptor runs), tcaErrorNotSet (it holds no copy), tcaErrorFreed, tcaErrorBoardMemory.
int tcaDescSet(tcaDesc *desc, int channel);
// tcaErrorNotSet, tcaErrorBusy, tcaErrorFreed, tcaErrorDMA (the previous DMA failed, and no call reported it).
int tcaStartDMADesc(int channel);
// Waits until all that was started has been issued; the source may then be reused. If nothing was started it returns at
// once. tcaErrorDMA, tcaErrorTimeout (it still runs). Issued is not arrived: only the receiver can detect data that was
// lost in flight.
int tcaWaitDMAC(int channel);
// Waits until the tag has arrived in the slot for the sending node, which is the node of the handle; with
// tcaDMANotifySelf and for copies within the node it is the own node. tcaErrorHandle, tcaErrorFreed (a handle of this
// process), tcaErrorSlot, tcaErrorIO (the board does not answer), tcaErrorTimeout (nothing came: the sender did not
// send, or a cable is dead; the board cannot tell which). A wait of more than a millisecond for a notification in the
// board's memory may see it late by 1/128 of the wait.
int tcaWaitDMARecvDesc(const tcaHandle *handle, int wait_slot, uint32_t wait_tag);

#ifdef __cplusplus
}
#endif
