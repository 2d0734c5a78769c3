// Device pointers in calls of MPI: where a buffer lies, copies between it and pinned host memory, and the layout of
// datatypes. Private to the folder.
//
// In front of the program's MPI (LD_PRELOAD), by its profiling interface. What MPI gets is host memory, to which data
// are copied (staged), or, where the user asks for it and the message is long enough, the device pointer itself
// (direct), which an MPI that moves long messages by RDMA registers and never touches.
//
// Left out: the pipelining of one message's copies with its transfer (a message is copied whole), MPI from Fortran,
// calls that are not in abi.h (neighbour collectives, Alltoallw, collectives that do not block, Get_accumulate, I/O).
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
    cudaStream_t stream;
    int before; // the program's current device
};
bool mpi_gpu_stream(const void *device_pointer, struct mpi_gpu_turn *turn);
bool mpi_gpu_stream_end(const struct mpi_gpu_turn *turn);

// Over when they return. False: the device refuses.
bool mpi_gpu_read(void *host, const void *device, size_t bytes);
bool mpi_gpu_write(void *device, const void *host, size_t bytes);

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

// --- a buffer of a call ---------------------------------------------------------------------------------------------

// What MPI is given instead of the program's buffer: `bytes` of host memory and MPI_BYTE, or the buffer itself.
struct mpi_gpu_buffer {
    void *device; // the program's buffer; NULL: it is MPI's to use as it is
    void *host;
    size_t bytes;
    struct mpi_gpu_layout layout;
};

// An error of MPI's, or MPI_OK. Nothing is copied yet.
int mpi_gpu_buffer_make(const void *buffer, int count, mpi_handle type, struct mpi_gpu_buffer *made);
void mpi_gpu_buffer_free(struct mpi_gpu_buffer *made);
int mpi_gpu_buffer_read(struct mpi_gpu_buffer *made);                // from the device
int mpi_gpu_buffer_write(struct mpi_gpu_buffer *made, size_t bytes); // the first of them, to the device

// An error through the handler of the communicator, as MPI's own.
int mpi_gpu_fail(mpi_handle comm, int error, const char *call, const void *buffer);

// --- requests (requests.c) ------------------------------------------------------------------------------------------

// A request of MPI's stands for a buffer of a device until it is over, or freed; takes the buffer. False: no memory.
bool mpi_gpu_request_add(mpi_handle request, const struct mpi_gpu_buffer *buffer, bool receives, bool persistent);
// What a status says that has come, at most all of the buffer.
size_t mpi_gpu_received(const void *status, const struct mpi_gpu_buffer *buffer);
