// The TCA library as programs of HA-PACS/TCA include it: both generations of its names, and stores by the processor.
//
// tca.h has the newer generation. The older one keeps descriptors in tables and names them by their index: entries are
// set one by one; a chain begins at an entry and continues to the next one as long as entries have tcaDMAContinue.
// Errors are those of the newer calls.
//
// Decisions where public descriptions are silent: an entry takes one index, whatever it copies (*next is slot + 1); a
// chain takes its entries as they are when it is set on a channel; a chain in the board's memory has room for 880
// copies and notifications (tcaErrorBoardMemory).
#pragma once

// Programs rely on these headers.
#include <stdlib.h>
#if defined __x86_64__ || defined __i386__
#include <emmintrin.h>
#endif

#include "tca.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TCA_LIB_VERSION "tcasim"

#define TCA_SUCCESS             tcaSuccess
#define TCA_ERROR_INVALID_VALUE tcaErrorArgument
#define TCA_ERROR_OUT_OF_MEMORY tcaErrorNoMemory
#define TCA_ERROR_NOT_SUPPORTED tcaErrorNotSupported

static inline const char *tcaGetErrorString(tcaresult error)
{
    return tcaStrError(error);
}

// Handles are plain bytes: there is nothing to release.
static inline tcaresult tcaDestroyHandle(tcaHandle *handle)
{
    return handle != NULL ? tcaSuccess : tcaErrorArgument;
}

// --- tables of descriptors -----------------------------------------------------------------------------------------

enum { tcaTables = 64, tcaTableEntries = 1024 };

// A table of n descriptors in host memory; *tag names it. It exists until the process ends. tcaErrorArgument,
// tcaErrorNoMemory (also if tcaTables exist).
tcaresult tcaCreateDMADesc(int *tag, int n);
// Sets entry `slot`; *next becomes the next index, for the next call. Errors as tcaDescSetMemcpy; tcaErrorArgument: no
// such table or entry, or next is null.
tcaresult tcaSetDMADesc_Memcpy(int tag, int slot, int *next, const tcaHandle *dst, size_t dst_offset,
                               const tcaHandle *src, size_t src_offset, size_t size, int flags, int wait_slot,
                               uint32_t wait_tag);
tcaresult tcaSetDMADesc_Memcpy2D(int tag, int slot, int *next, const tcaHandle *dst, size_t dst_offset,
                                 size_t dst_pitch, const tcaHandle *src, size_t src_offset, size_t src_pitch,
                                 size_t width, size_t count, int flags, int wait_slot, uint32_t wait_tag);
// Sets the chain that begins at entry 0 on a channel; then tcaStartDMADesc starts it. Errors as tcaDescSet.
tcaresult tcaSetDMAChain(int channel, int tag);

// The same with the one table in the board's memory; its chains begin at any entry. Init empties it; the call is
// optional.
tcaresult tcaDMADescInt_Init(void);
tcaresult tcaSetDMADescInt_Memcpy(int slot, int *next, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src,
                                  size_t src_offset, size_t size, int flags, int wait_slot, uint32_t wait_tag);
tcaresult tcaSetDMADescInt_Memcpy2D(int slot, int *next, const tcaHandle *dst, size_t dst_offset, size_t dst_pitch,
                                    const tcaHandle *src, size_t src_offset, size_t src_pitch, size_t width,
                                    size_t count, int flags, int wait_slot, uint32_t wait_tag);
tcaresult tcaSetDMAChainInt(int channel, int first);

// --- stores by the processor (PIO) ---------------------------------------------------------------------------------

// Memory of any node into which this processor stores. Plain bytes.
typedef struct tcaPIOHandle {
    uint64_t windowAddress, size;
} tcaPIOHandle;

// The memory of a handle from offset on. size is ignored: tcaSendPIO checks against the size of the handle, as programs
// send beyond the region that they name. tcaErrorHandle, tcaErrorFreed, tcaErrorRange, tcaErrorArgument.
tcaresult tcaSetPIORegion(tcaPIOHandle *pio, const tcaHandle *handle, size_t offset, size_t size);
// Stores bytes of own memory there; what is sent first arrives first. tcaErrorRange, tcaErrorArgument.
tcaresult tcaSendPIO(const tcaPIOHandle *pio, size_t offset, const void *data, size_t bytes);
// When it returns, everything that was sent is in flight.
tcaresult tcaSendPIOCommit(void);

// --- words of reductions -------------------------------------------------------------------------------------------

// Operations and types, for programs that do reductions themselves. The low byte of a type is its number, the rest its
// size.
typedef enum tcaOp {
    TCA_OP_SUM,
    TCA_OP_PROD,
    TCA_OP_MAX,
    TCA_OP_MIN,
    TCA_OP_BAND,
    TCA_OP_LAND,
    TCA_OP_BOR,
    TCA_OP_LOR,
    TCA_OP_BXOR,
    TCA_OP_LXOR,
    TCA_OP_NOOP
} tcaOp;

#define TCA_DATA_TYPE(index, type) ((index) | (int)sizeof(type) << 8)
typedef enum tcaDataType {
    TCA_CHAR = TCA_DATA_TYPE(0, char),
    TCA_SIGNED_CHAR = TCA_DATA_TYPE(1, signed char),
    TCA_UNSIGNED_CHAR = TCA_DATA_TYPE(2, unsigned char),
    TCA_BYTE = TCA_DATA_TYPE(3, unsigned char),
    TCA_SHORT = TCA_DATA_TYPE(4, short),
    TCA_UNSIGNED_SHORT = TCA_DATA_TYPE(5, unsigned short),
    TCA_INT = TCA_DATA_TYPE(6, int),
    TCA_UNSIGNED = TCA_DATA_TYPE(7, unsigned),
    TCA_LONG = TCA_DATA_TYPE(8, long),
    TCA_UNSIGNED_LONG = TCA_DATA_TYPE(9, unsigned long),
    TCA_LONG_LONG = TCA_DATA_TYPE(10, long long),
    TCA_UNSIGNED_LONG_LONG = TCA_DATA_TYPE(11, unsigned long long),
    TCA_FLOAT = TCA_DATA_TYPE(12, float),
    TCA_DOUBLE = TCA_DATA_TYPE(13, double),
    TCA_LONG_DOUBLE = TCA_DATA_TYPE(14, long double)
} tcaDataType;

#ifdef __cplusplus
}
#endif
