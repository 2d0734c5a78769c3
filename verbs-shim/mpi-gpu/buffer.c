// A buffer of a call: MPI's to use as it is, or in a device's memory, with host memory in its place.
#include <limits.h>
#include <stdio.h>

#include "verbs-shim/mpi-gpu/gpu.h"

enum { MPI_BAD_COUNT = 2 };

int mpi_gpu_buffer_make(const void *buffer, int count, mpi_handle type, struct mpi_gpu_buffer *made)
{
    *made = (struct mpi_gpu_buffer){0};
    enum mpi_gpu_place place = count > 0 ? mpi_gpu_place(buffer) : MPI_GPU_HOST;
    if (place != MPI_GPU_DEVICE) {
        return place == MPI_GPU_HOST ? MPI_OK : MPI_BAD_BUFFER;
    }
    if (!mpi_gpu_layout_make(type, &made->layout)) {
        return MPI_BAD_TYPE;
    }
    made->bytes = made->layout.bytes * (size_t)count;
    made->host = made->bytes <= INT_MAX ? mpi_gpu_host_take(made->bytes) : NULL;
    if (made->host == NULL) {
        mpi_gpu_layout_free(&made->layout);
        return made->bytes <= INT_MAX ? MPI_OTHER : MPI_BAD_COUNT;
    }
    made->device = (void *)(uintptr_t)buffer;
    return MPI_OK;
}

void mpi_gpu_buffer_free(struct mpi_gpu_buffer *made)
{
    if (made->device != NULL) {
        mpi_gpu_host_give(made->host);
        mpi_gpu_layout_free(&made->layout);
    }
    *made = (struct mpi_gpu_buffer){0};
}

// Whether these bytes are the first run of the memory.
static bool is_run(const struct mpi_gpu_buffer *made)
{
    return mpi_gpu_layout_is_run(&made->layout, made->bytes > made->layout.bytes ? 2 : 1);
}

static char *run_of(const struct mpi_gpu_buffer *made)
{
    return (char *)made->device + (made->layout.count > 0 ? made->layout.runs[0].offset : 0);
}

int mpi_gpu_buffer_read(struct mpi_gpu_buffer *made)
{
    if (made->device == NULL) {
        return MPI_OK;
    }
    bool good = is_run(made) ? mpi_gpu_read(made->host, run_of(made), made->bytes)
                             : mpi_gpu_pack(made->host, made->device, &made->layout, made->bytes);
    return good ? MPI_OK : MPI_BAD_BUFFER;
}

int mpi_gpu_buffer_write(struct mpi_gpu_buffer *made, size_t bytes)
{
    if (made->device == NULL) {
        return MPI_OK;
    }
    bytes = bytes < made->bytes ? bytes : made->bytes;
    bool good = is_run(made) ? mpi_gpu_write(run_of(made), made->host, bytes)
                             : mpi_gpu_unpack(made->device, made->host, &made->layout, bytes);
    return good ? MPI_OK : MPI_BAD_BUFFER;
}

int mpi_gpu_fail(mpi_handle comm, int error, const char *call, const void *buffer)
{
    fprintf(stderr, "libtcasim-mpi-gpu: %s: %p %s\n", call, buffer,
            error == MPI_BAD_BUFFER ? "is in no memory of a device, or the device refuses"
            : error == MPI_BAD_TYPE ? "has a datatype that is not known for a device's memory"
                                    : "cannot be staged");
    (void)CALL Comm_call_errhandler(comm, error);
    return error;
}
