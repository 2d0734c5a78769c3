// Device pointers in calls of MPI: the kind of memory of a buffer, copies between it and pinned host memory, and the
// layout of datatypes. Private to the folder.
//
// The library is loaded before the program's MPI (LD_PRELOAD) and uses MPI's profiling interface. MPI gets host memory,
// to which data is copied (staged), or, if the user asks for it and the message is long enough, the device pointer
// itself (direct), which an MPI that moves long messages by RDMA registers and never accesses.
//
// Not supported: MPI from Fortran, calls that are not in abi.h (neighbour collectives, Alltoallw, non-blocking
// collectives, Get_accumulate, I/O).
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "verbs-shim/cuda/driver_types.h"
#include "verbs-shim/mpi-gpu/abi.h"

#define CALL mpi_abi()->calls.

// --- settings (environment) -----------------------------------------------------------------------------------------

struct mpi_gpu_settings {
    bool direct;          // TCASIM_MPI_GPU=direct; otherwise staged
    size_t direct_bytes;  // TCASIM_MPI_GPU_DIRECT_BYTES: the shortest direct message
    size_t gdrcopy_bytes; // TCASIM_MPI_GPU_GDRCOPY_BYTES: the longest copy by the processor; 0: none
    size_t chunk_bytes;   // TCASIM_MPI_GPU_CHUNK_BYTES: longer staged messages are pipelined; 0: none
};
const struct mpi_gpu_settings *mpi_gpu_settings(void);

// --- memory ---------------------------------------------------------------------------------------------------------

enum mpi_gpu_pointer_kind { MPI_GPU_HOST, MPI_GPU_DEVICE, MPI_GPU_NOWHERE /* a device pointer to no memory */ };
enum mpi_gpu_pointer_kind mpi_gpu_pointer_kind(const void *pointer);

// Pinned host memory; NULL: there is none. Kept for the next caller.
void *mpi_gpu_host_take(size_t bytes);
void mpi_gpu_host_give(void *host);

// Work on the device of a pointer: mpi_gpu_stream begins it and makes that device the current one; mpi_gpu_stream_end
// waits for its end.
struct mpi_gpu_work {
    cudaStream_t stream, second;
    int before; // the program's current device before
};
bool mpi_gpu_stream(const void *device_pointer, struct mpi_gpu_work *work);
bool mpi_gpu_stream_end(const struct mpi_gpu_work *work);

// The copy is complete when they return. False: the device refuses.
bool mpi_gpu_read(void *host, const void *device, size_t bytes);
bool mpi_gpu_write(void *device, const void *host, size_t bytes);

// Copies to host memory in chunks. `ready` is called for each chunk in order, while the next one is in flight; if good
// is false, the chunk holds no data.
typedef void mpi_gpu_ready_fn(void *argument, bool good);
bool mpi_gpu_read_chunks(char *host, const char *device, size_t bytes, size_t chunk_bytes, mpi_gpu_ready_fn *ready,
                         void *argument);
// A copy that is complete after mpi_gpu_write_end has returned for the same device memory.
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

// False: an unsupported kind of datatype (darray, subarray), or no memory.
bool mpi_gpu_layout_make(mpi_handle type, struct mpi_gpu_layout *layout_out);
void mpi_gpu_layout_free(struct mpi_gpu_layout *layout);
// true: count elements are one run without gaps.
bool mpi_gpu_layout_is_run(const struct mpi_gpu_layout *layout, int count);

// Copies between a buffer of such elements in device memory and host memory without gaps, by a kernel of the device and
// a copy. bytes: size of the data, at most that of the elements.
bool mpi_gpu_pack(void *host, const void *device, const struct mpi_gpu_layout *layout, size_t bytes);
bool mpi_gpu_unpack(void *device, const void *host, const struct mpi_gpu_layout *layout, size_t bytes);
bool mpi_gpu_pack_chunks(void *host, const void *device, const struct mpi_gpu_layout *layout, size_t bytes,
                         size_t chunk_bytes, mpi_gpu_ready_fn *ready, void *argument);

// --- a buffer of a call ---------------------------------------------------------------------------------------------

// What MPI gets instead of the program's buffer: `bytes` of host memory and MPI_BYTE, or the buffer itself.
struct mpi_gpu_buffer {
    void *device; // the program's buffer; NULL: MPI uses it as it is
    void *host;   // NULL: not staged
    size_t bytes;
    struct mpi_gpu_layout layout;
};

// Return an error of MPI's, or MPI_OK. Neither copies; mpi_gpu_buffer_stage allocates the host memory.
int mpi_gpu_buffer_make(const void *buffer, int count, mpi_handle type, struct mpi_gpu_buffer *made);
int mpi_gpu_buffer_stage(struct mpi_gpu_buffer *made);
void mpi_gpu_buffer_free(struct mpi_gpu_buffer *made);
// The start of the data, if it is one run of memory.
char *mpi_gpu_buffer_run(const struct mpi_gpu_buffer *made);
int mpi_gpu_buffer_read(struct mpi_gpu_buffer *made);                // from the device
int mpi_gpu_buffer_write(struct mpi_gpu_buffer *made, size_t bytes); // the first bytes, to the device
// Like mpi_gpu_read_chunks.
int mpi_gpu_buffer_read_chunks(struct mpi_gpu_buffer *made, size_t chunk_bytes, mpi_gpu_ready_fn *ready,
                               void *argument);

// Raises an error through the communicator's handler, as MPI does.
int mpi_gpu_fail(mpi_handle comm, int error, const char *call, const void *buffer);

// --- receives -------------------------------------------------------------------------------------------------------

// The target of a message: the staged buffer, or, if that has no device, the program's buffer in host memory.
struct mpi_gpu_receive {
    mpi_handle comm;
    struct mpi_gpu_buffer staged;
    void *buffer;
    int count;
    mpi_handle type;
};

// Receives a matched message; does not wait.
int mpi_gpu_receive_message(const struct mpi_gpu_receive *receive, void *message, void *request);
// The received bytes according to a status; 0: cancelled.
size_t mpi_gpu_received(const void *status);
