/// @file
/// The TCA library as programs of HA-PACS/TCA include it: both generations of its names, and stores by the processor.
///
/// tca.h has the newer generation. The older one keeps descriptors in tables and names them by their index: entries are
/// set one by one; a chain begins at an entry and continues to the next one as long as entries have tcaDMAContinue.
/// Units and errors are those of tca.h.
///
/// Decisions where public descriptions are silent: an entry takes one index, whatever it copies (*next is slot + 1); a
/// chain takes its entries as they are when it is set on a channel; a chain in the board's memory has room for 880
/// copies and notifications (tcaErrorBoardMemory).
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

/// Says that the library is the simulator's.
#define TCA_LIB_VERSION "tcasim"

/// @name Older names of errors
/// @{
#define TCA_SUCCESS             tcaSuccess           ///< done
#define TCA_ERROR_INVALID_VALUE tcaErrorArgument     ///< a wrong argument
#define TCA_ERROR_OUT_OF_MEMORY tcaErrorNoMemory     ///< no memory
#define TCA_ERROR_NOT_SUPPORTED tcaErrorNotSupported ///< the node has no GPU
/// @}

/// tcaStrError by its older name.
/// @param error a value of enum tcaError
/// @return a constant text
static inline const char *tcaGetErrorString(tcaresult error)
{
    return tcaStrError(error);
}

/// Does nothing: handles are plain bytes, and there is nothing to release.
/// @param handle not changed
/// @retval tcaSuccess done
/// @retval tcaErrorArgument handle is null
static inline tcaresult tcaDestroyHandle(tcaHandle *handle)
{
    return handle != NULL ? tcaSuccess : tcaErrorArgument;
}

// --- tables of descriptors -----------------------------------------------------------------------------------------

/// Limits of the older generation.
enum {
    tcaTables = 64,        ///< tables of a process in host memory
    tcaTableEntries = 1024 ///< descriptors of a table, numbered from 0
};

/// Makes a table of descriptors in host memory. It exists until the process ends.
/// @param[out] tag names the table
/// @param n descriptors, 1 to tcaTableEntries
/// @retval tcaSuccess *tag is set
/// @retval tcaErrorArgument tag is null or n is out of range
/// @retval tcaErrorNoMemory no memory, or tcaTables exist
tcaresult tcaCreateDMADesc(int *tag, int n);
/// Sets an entry to a copy.
/// @param tag of tcaCreateDMADesc
/// @param slot the entry
/// @param[out] next the next index, for the next call
/// @param dst,dst_offset,src,src_offset,size,flags,wait_slot,wait_tag as for tcaDescSetMemcpy
/// @retval tcaSuccess it is set
/// @retval tcaErrorArgument no such table or entry, or next is null
/// @retval tcaErrorBusy the DMA of a chain with this entry runs
/// @return the other errors of tcaDescSetMemcpy
tcaresult tcaSetDMADesc_Memcpy(int tag, int slot, int *next, const tcaHandle *dst, size_t dst_offset,
                               const tcaHandle *src, size_t src_offset, size_t size, int flags, int wait_slot,
                               uint32_t wait_tag);
/// Sets an entry to a copy of rows.
/// @param tag of tcaCreateDMADesc
/// @param slot the entry
/// @param[out] next the next index, for the next call
/// @param dst,dst_offset,dst_pitch,src,src_offset,src_pitch,width,count as for tcaDescSetMemcpy2D
/// @param flags,wait_slot,wait_tag as for tcaDescSetMemcpy
/// @return as tcaSetDMADesc_Memcpy
tcaresult tcaSetDMADesc_Memcpy2D(int tag, int slot, int *next, const tcaHandle *dst, size_t dst_offset,
                                 size_t dst_pitch, const tcaHandle *src, size_t src_offset, size_t src_pitch,
                                 size_t width, size_t count, int flags, int wait_slot, uint32_t wait_tag);
/// Sets the chain that begins at entry 0 on a channel; then tcaStartDMADesc starts it.
/// @param channel 0 to tcaChannels - 1
/// @param tag of tcaCreateDMADesc
/// @retval tcaSuccess it is set
/// @retval tcaErrorArgument no such table, or some of its copies have tcaDMAUseInternal and others not
/// @retval tcaErrorNotSet an entry of the chain is not set
/// @return the other errors of tcaDescSet
tcaresult tcaSetDMAChain(int channel, int tag);

/// Empties the one table in the board's memory. The call is optional.
/// @retval tcaSuccess it is empty
/// @retval tcaErrorBusy the DMA of one of its chains runs
/// @retval tcaErrorNoMemory no memory
tcaresult tcaDMADescInt_Init(void);
/// Sets an entry of the table in the board's memory to a copy.
/// @param slot the entry
/// @param[out] next the next index, for the next call
/// @param dst,dst_offset,src,src_offset,size,flags,wait_slot,wait_tag as for tcaDescSetMemcpy
/// @return as tcaSetDMADesc_Memcpy
tcaresult tcaSetDMADescInt_Memcpy(int slot, int *next, const tcaHandle *dst, size_t dst_offset, const tcaHandle *src,
                                  size_t src_offset, size_t size, int flags, int wait_slot, uint32_t wait_tag);
/// Sets an entry of the table in the board's memory to a copy of rows.
/// @param slot the entry
/// @param[out] next the next index, for the next call
/// @param dst,dst_offset,dst_pitch,src,src_offset,src_pitch,width,count as for tcaDescSetMemcpy2D
/// @param flags,wait_slot,wait_tag as for tcaDescSetMemcpy
/// @return as tcaSetDMADesc_Memcpy
tcaresult tcaSetDMADescInt_Memcpy2D(int slot, int *next, const tcaHandle *dst, size_t dst_offset, size_t dst_pitch,
                                    const tcaHandle *src, size_t src_offset, size_t src_pitch, size_t width,
                                    size_t count, int flags, int wait_slot, uint32_t wait_tag);
/// Sets a chain in the board's memory on a channel; then tcaStartDMADesc starts it.
/// @param channel 0 to tcaChannels - 1
/// @param first the entry at which the chain begins
/// @return as tcaSetDMAChain
tcaresult tcaSetDMAChainInt(int channel, int first);

// --- stores by the processor (PIO) ---------------------------------------------------------------------------------

/// Memory of any node into which this processor stores. Plain bytes.
typedef struct tcaPIOHandle {
    uint64_t windowAddress; ///< in the fabric's window
    uint64_t size;          ///< bytes from there on
} tcaPIOHandle;

/// The memory of a handle from an offset on.
/// @param[out] pio the caller's; there is nothing to release
/// @param handle memory of any node of the sub-cluster
/// @param offset bytes
/// @param size ignored: tcaSendPIO checks against the size of the handle, as programs send beyond the region that they
///        name
/// @retval tcaSuccess *pio is set
/// @retval tcaErrorArgument pio or handle is null
/// @retval tcaErrorHandle not a handle
/// @retval tcaErrorFreed memory of this node that was freed
/// @retval tcaErrorRange offset is beyond the memory
tcaresult tcaSetPIORegion(tcaPIOHandle *pio, const tcaHandle *handle, size_t offset, size_t size);
/// Stores bytes of own memory there; what is sent first arrives first.
/// @param pio of tcaSetPIORegion
/// @param offset bytes
/// @param data may be changed when the call returns
/// @param bytes number of bytes
/// @retval tcaSuccess they are stored
/// @retval tcaErrorArgument pio or data is null
/// @retval tcaErrorRange beyond the memory of the handle
/// @retval tcaErrorHandle not a region of tcaSetPIORegion
tcaresult tcaSendPIO(const tcaPIOHandle *pio, size_t offset, const void *data, size_t bytes);
/// When it returns, everything that was sent is in flight.
/// @retval tcaSuccess done
tcaresult tcaSendPIOCommit(void);

// --- words of reductions -------------------------------------------------------------------------------------------

/// Operations, for programs that do reductions themselves. The library has no reductions.
typedef enum tcaOp {
    TCA_OP_SUM,  ///< sum
    TCA_OP_PROD, ///< product
    TCA_OP_MAX,  ///< maximum
    TCA_OP_MIN,  ///< minimum
    TCA_OP_BAND, ///< bitwise and
    TCA_OP_LAND, ///< logical and
    TCA_OP_BOR,  ///< bitwise or
    TCA_OP_LOR,  ///< logical or
    TCA_OP_BXOR, ///< bitwise exclusive or
    TCA_OP_LXOR, ///< logical exclusive or
    TCA_OP_NOOP  ///< no operation
} tcaOp;

/// A value of tcaDataType: the low byte is the type's number, the rest its size in bytes.
/// @param index number of the type
/// @param type the C type
/// @return an int
#define TCA_DATA_TYPE(index, type) ((index) | (int)sizeof(type) << 8)
/// Types, for programs that do reductions themselves.
typedef enum tcaDataType {
    TCA_CHAR = TCA_DATA_TYPE(0, char),                              ///< char
    TCA_SIGNED_CHAR = TCA_DATA_TYPE(1, signed char),                ///< signed char
    TCA_UNSIGNED_CHAR = TCA_DATA_TYPE(2, unsigned char),            ///< unsigned char
    TCA_BYTE = TCA_DATA_TYPE(3, unsigned char),                     ///< 8 bits
    TCA_SHORT = TCA_DATA_TYPE(4, short),                            ///< short
    TCA_UNSIGNED_SHORT = TCA_DATA_TYPE(5, unsigned short),          ///< unsigned short
    TCA_INT = TCA_DATA_TYPE(6, int),                                ///< int
    TCA_UNSIGNED = TCA_DATA_TYPE(7, unsigned),                      ///< unsigned
    TCA_LONG = TCA_DATA_TYPE(8, long),                              ///< long
    TCA_UNSIGNED_LONG = TCA_DATA_TYPE(9, unsigned long),            ///< unsigned long
    TCA_LONG_LONG = TCA_DATA_TYPE(10, long long),                   ///< long long
    TCA_UNSIGNED_LONG_LONG = TCA_DATA_TYPE(11, unsigned long long), ///< unsigned long long
    TCA_FLOAT = TCA_DATA_TYPE(12, float),                           ///< float
    TCA_DOUBLE = TCA_DATA_TYPE(13, double),                         ///< double
    TCA_LONG_DOUBLE = TCA_DATA_TYPE(14, long double)                ///< long double
} tcaDataType;

#ifdef __cplusplus
}
#endif
