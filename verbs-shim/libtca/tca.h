/// @file
/// The TCA user library, as programs for HA-PACS/TCA call it: memory that boards can reach, handles, descriptors, DMA,
/// and notifications.
///
/// Units: sizes, offsets and pitches are bytes; times are nanoseconds of the process's clock.
///
/// Errors: calls return tcaSuccess or one of enum tcaError, and do not touch the board after a refusal. tcaStrError
/// says what to do about a code, tcaLastMessage what was wrong with the last refused call. Before tcaInit, every call
/// that returns a code returns tcaErrorNotInitialized, except tcaInit, tcaCreateHandleGPU and tcaDestroyHandle.
///
/// GPU memory is CUDA device memory (cuda_runtime_api.h) of the current device, pinned into the GPU's window so that
/// boards reach it. The window of the fabric has room for the first two GPUs of each node, 8 GiB each. cudaFree of
/// memory with a handle closes its window: copies that were already started then end with an error, later ones are
/// refused.
///
/// A handle is plain bytes: ranks send it to each other as it is. The library detects that memory of the own process
/// was freed; it cannot detect this for another node: a copy to a stale handle of freed memory there goes where the
/// handle points, as on the machine, so a program must stop all senders before it frees memory. Copies go from memory
/// of the own node to memory of any node of the sub-cluster; the board cannot read across a cable.
///
/// A notification is an 8-byte word with a tag, written after the copied data. It arrives at the node of the
/// destination (tcaDMANotify) or at the own node (tcaDMANotifySelf), in the slot `wait_slot` of the node that sent it:
/// each node has tcaSlots slots for every sender, so a rank may wait for fifteen others in slot 0. A wait names the
/// sender by any handle of that node. The wait removes the word. A second notification from the same node for a slot
/// that was not waited for replaces the first (docs/decisions/0016).
///
/// Decisions where public descriptions are silent: every tcaDescSetMemcpy adds to what the descriptor holds;
/// tcaDMAContinue (more copies follow) is accepted and has no effect; the library polls for a notification in host
/// memory and in the board's memory, and begins where the last one from that sender came to that slot.
///
/// tca-api.h has the names of the library's older generation and its PIO calls.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Limits.
enum {
    tcaNodesMax = 16, ///< nodes of a sub-cluster
    tcaChannels = 4,  ///< DMA channels of a board, numbered from 0
    tcaSlots = 32     ///< notification slots of a node for each sender, numbered from 0
};

/// Kinds of memory.
typedef enum tcaMemoryType {
    tcaMemoryCPU, ///< host memory
    tcaMemoryGPU  ///< CUDA device memory
} tcaMemoryType;

/// Flags of a copy, combined with `|`.
typedef enum tcaDMAFlag {
    tcaDMAUseInternal = 1,       ///< descriptors in the board's memory; all copies of a descriptor or none
    tcaDMAUseNotifyInternal = 2, ///< the notification word is in the board's memory, polled with PCIe reads
    tcaDMANotify = 4,            ///< notify the destination
    tcaDMANotifySelf = 8,        ///< also notify the source
    tcaDMAPipeline = 16,         ///< do not wait until earlier copies have been written
    tcaDMAContinue = 32          ///< more copies follow
} tcaDMAFlag;

/// What calls return.
enum tcaError {
    tcaSuccess = 0,              ///< done
    tcaErrorNotInitialized = -1, ///< tcaInit was not called
    tcaErrorNoBoard = -2,        ///< the node has no PEACH2 board
    tcaErrorArgument = -3,       ///< an argument is null, unknown, or contradicts another
    tcaErrorNoMemory = -4,       ///< no memory of this kind is left
    tcaErrorNotSupported = -5,   ///< the node has no GPU
    tcaErrorHandle = -6,         ///< not a handle, or its bytes were changed
    tcaErrorNotTcaMemory = -7,   ///< memory that the board does not reach
    tcaErrorFreed = -8,          ///< memory of this process that was freed
    tcaErrorRange = -9,          ///< beyond the allocation or the memory of the handle
    tcaErrorAlignment = -10,     ///< an address or offset is not aligned
    tcaErrorSize = -11,          ///< a size, width or pitch is no multiple of 4, or nothing is copied
    tcaErrorSlot = -12,          ///< no notification slot of this number
    tcaErrorChannel = -13,       ///< no DMA channel of this number
    tcaErrorBusy = -14,          ///< a DMA runs, or TCA Verbs uses the channel
    tcaErrorNotSet = -15,        ///< nothing to start
    tcaErrorBoardMemory = -16,   ///< no room in the board's memory
    tcaErrorNodes = -17,         ///< more ranks than nodes of a sub-cluster, or than there are
    tcaErrorComm = -18,          ///< the ranks could not exchange their handles
    tcaErrorNotLocal = -19,      ///< memory of another node where the own node's is needed
    tcaErrorDMA = -20,           ///< the board refused the DMA or could not finish it
    tcaErrorIO = -21,            ///< the board or the GPU does not answer
    tcaErrorTimeout = -22,       ///< it did not happen in the time of tcaSetTimeout
    tcaErrorWindow = -23,        ///< GPU memory that the fabric's window does not reach
    tcaErrorInUse = -24          ///< another process of the node has the board
};

/// Says what to do about a code.
/// @param error a value of enum tcaError
/// @return a constant text; "unknown error" for other values
const char *tcaStrError(int error);
/// Says what was wrong with the last refused call of this process.
/// @return a text of the library, valid until the next refused call; empty if none was refused since tcaInit
const char *tcaLastMessage(void);

// --- set-up ------------------------------------------------------------------------------------------------------

/// Called once in each process; more calls are allowed. The process owns the node's board until it ends.
/// @retval tcaSuccess the library is initialised
/// @retval tcaErrorNoBoard the node has no board
/// @retval tcaErrorNoMemory no pinned memory for the library's own words
/// @retval tcaErrorInUse another process of the node owns the board
/// @retval tcaErrorIO the board does not answer
int tcaInit(void);

/// What a program without MPI provides for the collective calls.
struct tcaComm {
    void *ctx; ///< passed to allgather; belongs to the program
    int rank;  ///< of this process, from 0
    int ranks; ///< number of ranks, 1 to tcaNodesMax
    /// `all` receives the `bytes` of every rank in rank order. Returns 0 or a negative errno.
    int (*allgather)(void *ctx, const void *mine, void *all, size_t bytes);
};
/// Sets the exchange for the collective calls. Programs on MPI that are linked with libtcacomm.so need no call.
/// @param comm copied
/// @retval tcaSuccess it is set
/// @retval tcaErrorNodes more than tcaNodesMax ranks
/// @retval tcaErrorArgument comm or allgather is null, or the rank is not one of the ranks
int tcaSetComm(const struct tcaComm *comm);

/// The timeout before tcaSetTimeout: one second, in nanoseconds.
#define tcaTimeoutDefault 1000000000ull
/// Sets the time after which this process's waits return tcaErrorTimeout. The event may still come after a timeout, and
/// one may wait again.
/// @param timeout_ns nanoseconds of the process's clock; 0: no timeout
/// @retval tcaSuccess it is set
int tcaSetTimeout(uint64_t timeout_ns);

// --- memory and handles --------------------------------------------------------------------------------------------

/// Allocates zeroed memory that boards reach. The caller releases it with tcaFree.
/// @param[out] ptr CPU memory: page-aligned. GPU memory: a device pointer; NULL for no bytes, as with cudaMalloc
/// @param size bytes
/// @param type GPU memory is that of the current CUDA device
/// @retval tcaSuccess *ptr is set
/// @retval tcaErrorArgument ptr is null, no bytes of CPU memory, or an unknown type
/// @retval tcaErrorNoMemory no memory of this kind, or no room in the GPU's window
/// @retval tcaErrorNotSupported the node has no GPU
/// @retval tcaErrorWindow the GPU is not one of the node's first two, or the memory is beyond 8 GiB of its window
/// @retval tcaErrorIO the GPU failed
int tcaMalloc(void **ptr, size_t size, tcaMemoryType type);
/// Releases memory of tcaMalloc. Handles of it are stale then.
/// @param ptr as tcaMalloc returned it; NULL as GPU memory is no error
/// @param type as given to tcaMalloc
/// @retval tcaSuccess it is released
/// @retval tcaErrorNotTcaMemory not a pointer of tcaMalloc, or released before
/// @retval tcaErrorBusy a DMA of this process uses it
/// @retval tcaErrorIO the GPU failed
int tcaFree(void *ptr, tcaMemoryType type);

/// Memory of a node as plain bytes. Programs send all of it and change nothing.
typedef struct tcaHandle {
    uint32_t magic;        ///< marks a handle
    uint16_t bytes;        ///< size of this struct
    uint8_t type;          ///< a tcaMemoryType
    uint8_t node;          ///< the node of the sub-cluster, from 0
    uint64_t busAddress;   ///< for devices of the own node
    uint64_t size;         ///< of the memory, in bytes
    uint64_t blockOffset;  ///< offset in its block of the node's window: host memory, or the GPU's BAR
    uint64_t slotsAddress; ///< notification slots in host memory; the board's slots have a fixed offset
    uint32_t allocation;   ///< number of the allocation in its process
    uint32_t gpu;          ///< number of the GPU in the node, for GPU memory
    uint32_t check;        ///< checksum of all fields before it
} tcaHandle;

/// Makes a handle for memory inside one allocation of this process. There is nothing to release.
///
/// CPU memory comes from tcaMalloc, or from cudaMallocHost, which is pinned as well: programs that stage GPU data in
/// host memory (hanawa2013) send from there without another copy. GPU memory comes from tcaMalloc or cudaMalloc; the
/// call pins memory of cudaMalloc until cudaFree. No bytes of GPU memory at NULL also have a handle, to which nothing
/// can be copied.
/// @param[out] handle the caller's
/// @param ptr a multiple of 4
/// @param size bytes
/// @param type the kind of memory at ptr
/// @retval tcaSuccess *handle is set
/// @retval tcaErrorArgument handle or ptr is null, or an unknown type
/// @retval tcaErrorNotTcaMemory other memory, or beyond one allocation of CUDA
/// @retval tcaErrorRange no bytes, or beyond the allocation of tcaMalloc
/// @retval tcaErrorAlignment ptr is no multiple of 4
/// @retval tcaErrorNoMemory no memory, or the GPU's window is full
/// @retval tcaErrorNotSupported GPU memory, and the node has no GPU
/// @retval tcaErrorWindow as for tcaMalloc
/// @retval tcaErrorIO the GPU failed
int tcaCreateHandle(tcaHandle *handle, void *ptr, size_t size, tcaMemoryType type);
/// What the calls of tca-api.h return: an enum tcaError.
typedef int tcaresult;
/// The bus address of GPU memory for devices of the own node. The memory is pinned until it is freed. Needs neither a
/// board nor tcaInit.
/// @param[out] paddr bus address of ptr
/// @param ptr device memory of cudaMalloc or tcaMalloc
/// @param size bytes, inside one allocation
/// @retval tcaSuccess *paddr is set
/// @retval tcaErrorArgument paddr or ptr is null
/// @retval tcaErrorNotTcaMemory not inside one allocation of device memory
/// @retval tcaErrorNotSupported the node has no GPU
/// @retval tcaErrorNoMemory the GPU's window is full
/// @retval tcaErrorIO the GPU failed
tcaresult tcaCreateHandleGPU(unsigned long long *paddr, void *ptr, size_t size);
/// Collective: the handles of the first ranks of tcaComm, in rank order. Every rank returns the error of the first of
/// these ranks that has one.
///
/// Ranks from nranks on call it too, with any ptr. Under MPI such a rank may also skip every list of that length, if it
/// is shorter than the world. (Such a list travels in messages of MPI_COMM_WORLD, so no receive for any source and any
/// tag may be pending there at that time.)
/// @param[out] list nranks handles; the caller releases it with free()
/// @param nranks length of the list
/// @param ptr this rank's memory, of either kind
/// @param size bytes
/// @retval tcaSuccess *list is set
/// @retval tcaErrorArgument list is null
/// @retval tcaErrorNodes nranks is not 1 to 16, or more than there are ranks
/// @retval tcaErrorComm no tcaSetComm, or the exchange failed
/// @retval tcaErrorNoMemory no memory for the list
/// @return the other errors of tcaCreateHandle
int tcaCreateHandleList(tcaHandle **list, int nranks, void *ptr, size_t size);

// --- descriptors ---------------------------------------------------------------------------------------------------

/// A list of copies and notifications that one start carries out. Opaque.
typedef struct tcaDesc tcaDesc;

/// A descriptor without copies. The caller releases it with tcaDescFree.
/// @return NULL: before tcaInit, or no memory
tcaDesc *tcaDescNew(void);
/// Releases a descriptor, also one that is set on a channel.
/// @param desc of tcaDescNew
/// @retval tcaSuccess it is released
/// @retval tcaErrorBusy its DMA runs
/// @retval tcaErrorArgument not a descriptor of this process, or released before
int tcaDescFree(tcaDesc *desc);

/// Adds a copy. Both addresses are multiples of 4 and agree in their low 4 bits.
/// @param desc of tcaDescNew
/// @param dst memory of any node of the sub-cluster
/// @param dst_offset bytes
/// @param src memory of the own node
/// @param src_offset bytes
/// @param size bytes, a multiple of 4
/// @param flags values of tcaDMAFlag
/// @param wait_slot with tcaDMANotify or tcaDMANotifySelf: the slot of the notification, 0 to tcaSlots - 1
/// @param wait_tag with tcaDMANotify or tcaDMANotifySelf: any number, for which the receiver waits
/// @retval tcaSuccess it is added
/// @retval tcaErrorArgument a handle is null, an unknown flag, some copies with and some without tcaDMAUseInternal, or
///         not a descriptor of this process
/// @retval tcaErrorHandle not a handle
/// @retval tcaErrorFreed memory of this node that was freed
/// @retval tcaErrorNotLocal the source is in another node
/// @retval tcaErrorRange beyond the memory of a handle
/// @retval tcaErrorAlignment an address is no multiple of 4, or the low 4 bits differ
/// @retval tcaErrorSize size is 0 or no multiple of 4
/// @retval tcaErrorSlot no such slot
/// @retval tcaErrorBusy the descriptor's DMA runs
/// @retval tcaErrorNoMemory no memory
int tcaDescSetMemcpy(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src, size_t src_offset,
                     size_t size, int flags, int wait_slot, uint32_t wait_tag);
/// Adds a copy of rows. Pitches are multiples of 4, not less than the width, and agree in their low 4 bits; addresses
/// and errors are as for tcaDescSetMemcpy.
/// @param desc of tcaDescNew
/// @param dst memory of any node of the sub-cluster
/// @param dst_offset bytes, of the first row
/// @param dst_pitch bytes from row to row
/// @param src memory of the own node
/// @param src_offset bytes, of the first row
/// @param src_pitch bytes from row to row
/// @param width bytes of a row, a multiple of 4
/// @param count rows
/// @param flags values of tcaDMAFlag
/// @param wait_slot as for tcaDescSetMemcpy
/// @param wait_tag as for tcaDescSetMemcpy
/// @retval tcaSuccess it is added
/// @retval tcaErrorSize width or count is 0, or a width or pitch is wrong
/// @return the other errors of tcaDescSetMemcpy
int tcaDescSetMemcpy2D(tcaDesc *desc, const tcaHandle *dst, size_t dst_offset, size_t dst_pitch, const tcaHandle *src,
                       size_t src_offset, size_t src_pitch, size_t width, size_t count, int flags, int wait_slot,
                       uint32_t wait_tag);

// --- DMA -----------------------------------------------------------------------------------------------------------

/// Sets the descriptor on a DMA channel; any number of times, also before each start. The first call after a change
/// writes it to host or board memory; after that the call costs one register write, or none if it is already set. While
/// a DMA of the channel or of the descriptor runs, the call waits (tcaSetTimeout). TCA
/// Verbs uses channels 2 and 3 once the process has made a queue pair on tca0, as long as it has tca0 open.
/// @param desc stays the caller's; freeing it or adding a copy takes it off the channel
/// @param channel 0 to tcaChannels - 1
/// @retval tcaSuccess it is set
/// @retval tcaErrorArgument not a descriptor of this process
/// @retval tcaErrorChannel no such channel
/// @retval tcaErrorBusy TCA Verbs has the channel
/// @retval tcaErrorTimeout a DMA of the channel or of the descriptor still runs
/// @retval tcaErrorNotSet the descriptor holds no copy
/// @retval tcaErrorFreed memory of a copy was freed
/// @retval tcaErrorBoardMemory the board's memory has no room for it
/// @retval tcaErrorNoMemory no pinned memory for it
/// @retval tcaErrorIO the driver refuses it
int tcaDescSet(tcaDesc *desc, int channel);
/// Starts the DMA that is set on a channel, and does not wait for it. While the one that was started before runs, the call
/// waits for that (tcaSetTimeout).
/// @param channel 0 to tcaChannels - 1
/// @retval tcaSuccess it is started
/// @retval tcaErrorChannel no such channel
/// @retval tcaErrorBusy TCA Verbs has the channel
/// @retval tcaErrorTimeout the DMA that was started before still runs
/// @retval tcaErrorNotSet nothing is set on it
/// @retval tcaErrorFreed memory of a copy was freed
/// @retval tcaErrorDMA the previous DMA failed, and no call reported it
/// @retval tcaErrorIO the driver refuses to start
int tcaStartDMADesc(int channel);
/// Waits until all that was started has been issued; the source may then be reused. If nothing was started it returns
/// at once. Issued is not arrived: only the receiver can detect data that was lost in flight.
/// @param channel 0 to tcaChannels - 1
/// @retval tcaSuccess it is issued
/// @retval tcaErrorChannel no such channel
/// @retval tcaErrorDMA the DMA failed
/// @retval tcaErrorTimeout it still runs
int tcaWaitDMAC(int channel);
/// Waits until a notification has arrived, and removes it. A wait of more than a millisecond for a notification in the
/// board's memory may see it late by 1/128 of the wait.
/// @param handle any memory of the sending node; with tcaDMANotifySelf, and for copies within the node, of the own node
/// @param wait_slot as given to the copy
/// @param wait_tag as given to the copy
/// @retval tcaSuccess the tag has arrived
/// @retval tcaErrorArgument handle is null
/// @retval tcaErrorHandle not a handle
/// @retval tcaErrorFreed a handle of this node's memory that was freed
/// @retval tcaErrorSlot no such slot
/// @retval tcaErrorIO the board does not answer
/// @retval tcaErrorTimeout nothing came: the sender did not send, or a cable is dead; the board cannot tell which
int tcaWaitDMARecvDesc(const tcaHandle *handle, int wait_slot, uint32_t wait_tag);

#ifdef __cplusplus
}
#endif
