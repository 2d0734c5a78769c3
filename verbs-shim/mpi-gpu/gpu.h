// Device pointers in calls of MPI: where a buffer lies, copies between it and pinned host memory, and the layout of
// datatypes. Private to the folder.
//
// In front of the program's MPI (LD_PRELOAD), by its profiling interface. What MPI gets is host memory, to which data
// are copied (staged), or, where the user asks for it and the message is long enough, the device pointer itself
// (direct), which an MPI that moves long messages by RDMA registers and never touches.
//
// Left out: MPI from Fortran, calls that are not in abi.h (neighbour collectives, Alltoallw, collectives that do not
// block, Get_accumulate, I/O).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/cuda/driver_types.h"
#include "verbs-shim/mpi-gpu/abi.h"

#define CALL mpi_abi()->calls.

// --- settings (environment) -----------------------------------------------------------------------------------------

struct mpi_gpu_settings {
    bool direct;          // TCASIM_MPI_GPU=direct; else staged
    size_t direct_bytes;  // TCASIM_MPI_GPU_DIRECT_BYTES: the shortest message of that kind
    size_t gdrcopy_bytes; // TCASIM_MPI_GPU_GDRCOPY_BYTES: the longest copy by the processor; 0: none
    size_t chunk_bytes;   // TCASIM_MPI_GPU_CHUNK_BYTES: longer staged messages are pipelined; 0: none is
};
const struct mpi_gpu_settings *mpi_gpu_settings(void);

// --- memory ---------------------------------------------------------------------------------------------------------

enum mpi_gpu_place { MPI_GPU_HOST, MPI_GPU_DEVICE, MPI_GPU_NOWHERE /* a device pointer to no memory */ };
enum mpi_gpu_place mpi_gpu_place(const void *pointer);

// Pinned host memory; NULL: there is none. Kept for the next that needs some.
void *mpi_gpu_host_take(size_t bytes);
void mpi_gpu_host_give(void *host);

// Work on the device of a pointer: begun by the first, which makes that device the current one, and waited for by the
// second.
struct mpi_gpu_turn {
    cudaStream_t stream, second;
    int before; // the program's current device
};
bool mpi_gpu_stream(const void *device_pointer, struct mpi_gpu_turn *turn);
bool mpi_gpu_stream_end(const struct mpi_gpu_turn *turn);

// Over when they return. False: the device refuses.
bool mpi_gpu_read(void *host, const void *device, size_t bytes);
bool mpi_gpu_write(void *device, const void *host, size_t bytes);

// A copy to host memory in chunks, of which ready is told in their order while the next is under way. In a chunk that
// did not come (good: false) are no data; ready is called for each in any case.
typedef void mpi_gpu_ready_fn(void *argument, bool good);
bool mpi_gpu_read_chunks(char *host, const char *device, size_t bytes, size_t chunk_bytes, mpi_gpu_ready_fn *ready,
                         void *argument);
// A copy that is over when the second has returned for the same device memory.
bool mpi_gpu_write_begin(void *device, const void *host, size_t bytes);
bool mpi_gpu_write_end(const void *device);

// --- datatypes ------------------------------------------------------------------------------------------------------

struct mpi_gpu_run {
    mpi_aint offset;
    size_t bytes;
};

// The bytes of one element, in their order in a message.
struct mpi_gpu_layout {
    struct mpi_gpu_run *runs;
    size_t count, room;
    size_t bytes; // of all runs
    mpi_aint extent;
};

// False: a kind of datatype that is not known (darray, subarray), or no memory.
bool mpi_gpu_layout_make(mpi_handle type, struct mpi_gpu_layout *layout_out);
void mpi_gpu_layout_free(struct mpi_gpu_layout *layout);
// Whether count elements are one run without gaps.
bool mpi_gpu_layout_is_run(const struct mpi_gpu_layout *layout, int count);

// Between a buffer of such elements in a device's memory and host memory without gaps, by a kernel of the device and
// a copy. bytes: of the data, no more than the elements hold.
bool mpi_gpu_pack(void *host, const void *device, const struct mpi_gpu_layout *layout, size_t bytes);
bool mpi_gpu_unpack(void *device, const void *host, const struct mpi_gpu_layout *layout, size_t bytes);
bool mpi_gpu_pack_chunks(void *host, const void *device, const struct mpi_gpu_layout *layout, size_t bytes,
                         size_t chunk_bytes, mpi_gpu_ready_fn *ready, void *argument);

// --- a buffer of a call ---------------------------------------------------------------------------------------------

// What MPI is given instead of the program's buffer: `bytes` of host memory and MPI_BYTE, or the buffer itself.
struct mpi_gpu_buffer {
    void *device; // the program's buffer; NULL: it is MPI's to use as it is
    void *host;   // NULL: not staged
    size_t bytes;
    struct mpi_gpu_layout layout;
};

// An error of MPI's, or MPI_OK. Nothing is copied yet; the second takes the host memory.
int mpi_gpu_buffer_make(const void *buffer, int count, mpi_handle type, struct mpi_gpu_buffer *made);
int mpi_gpu_buffer_stage(struct mpi_gpu_buffer *made);
void mpi_gpu_buffer_free(struct mpi_gpu_buffer *made);
// The first run of memory, if the data are no more than that.
char *mpi_gpu_buffer_run(const struct mpi_gpu_buffer *made);
int mpi_gpu_buffer_read(struct mpi_gpu_buffer *made);                // from the device
int mpi_gpu_buffer_write(struct mpi_gpu_buffer *made, size_t bytes); // the first of them, to the device
// As mpi_gpu_read_chunks.
int mpi_gpu_buffer_read_chunks(struct mpi_gpu_buffer *made, size_t chunk_bytes, mpi_gpu_ready_fn *ready,
                               void *argument);

// An error through the handler of the communicator, as MPI's own.
int mpi_gpu_fail(mpi_handle comm, int error, const char *call, const void *buffer);

// --- receives -------------------------------------------------------------------------------------------------------

// Where a message goes: to the staged buffer, or where that has no device, to the program's buffer in host memory.
struct mpi_gpu_receive {
    mpi_handle comm;
    struct mpi_gpu_buffer staged;
    void *buffer;
    int count;
    mpi_handle type;
};

// A matched message, without waiting.
int mpi_gpu_receive_message(const struct mpi_gpu_receive *receive, void *message, void *request);
// What a status says that has come, in bytes; 0: cancelled.
size_t mpi_gpu_received(const void *status);
