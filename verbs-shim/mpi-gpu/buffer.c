// A buffer of a call: passed to MPI as it is, or device memory, for which MPI gets host memory.
#include <limits.h>
#include <stdio.h>

#include "verbs-shim/mpi-gpu/gpu.h"

int mpi_gpu_buffer_make(const void *buffer, int count, mpi_handle type, struct mpi_gpu_buffer *made)
{
    *made = (struct mpi_gpu_buffer){0};
    enum mpi_gpu_pointer_kind kind = count > 0 ? mpi_gpu_pointer_kind(buffer) : MPI_GPU_HOST;
    if (kind != MPI_GPU_DEVICE) {
        return kind == MPI_GPU_HOST ? MPI_OK : MPI_BAD_BUFFER;
    }
    if (!mpi_gpu_layout_make(type, &made->layout)) {
        return MPI_BAD_TYPE;
    }
    made->bytes = made->layout.bytes * (size_t)count;
    made->device = (void *)(uintptr_t)buffer;
    return MPI_OK;
}

int mpi_gpu_buffer_stage(struct mpi_gpu_buffer *made)
{
    if (made->device == NULL) {
        return MPI_OK;
    }
    if (made->bytes > INT_MAX) {
        return MPI_BAD_COUNT;
    }
    made->host = mpi_gpu_host_take(made->bytes);
    return made->host != NULL ? MPI_OK : mpi_abi()->error_other;
}

void mpi_gpu_buffer_free(struct mpi_gpu_buffer *made)
{
    if (made->host != NULL) {
        mpi_gpu_host_give(made->host);
    }
    if (made->device != NULL) {
        mpi_gpu_layout_free(&made->layout);
    }
    *made = (struct mpi_gpu_buffer){0};
}

char *mpi_gpu_buffer_run(const struct mpi_gpu_buffer *made)
{
    if (!mpi_gpu_layout_is_run(&made->layout, made->bytes > made->layout.bytes ? 2 : 1)) {
        return NULL;
    }
    return (char *)made->device + (made->layout.count > 0 ? made->layout.runs[0].offset : 0);
}

int mpi_gpu_buffer_read(struct mpi_gpu_buffer *made)
{
    if (made->device == NULL) {
        return MPI_OK;
    }
    const char *run = mpi_gpu_buffer_run(made);
    bool good = run != NULL ? mpi_gpu_read(made->host, run, made->bytes)
                            : mpi_gpu_pack(made->host, made->device, &made->layout, made->bytes);
    return good ? MPI_OK : MPI_BAD_BUFFER;
}

int mpi_gpu_buffer_read_chunks(struct mpi_gpu_buffer *made, size_t chunk_bytes, mpi_gpu_ready_fn *ready, void *argument)
{
    const char *run = mpi_gpu_buffer_run(made);
    bool good = run != NULL ? mpi_gpu_read_chunks(made->host, run, made->bytes, chunk_bytes, ready, argument)
                            : mpi_gpu_pack_chunks(made->host, made->device, &made->layout, made->bytes, chunk_bytes,
                                                  ready, argument);
    return good ? MPI_OK : MPI_BAD_BUFFER;
}

int mpi_gpu_buffer_write(struct mpi_gpu_buffer *made, size_t bytes)
{
    if (made->device == NULL) {
        return MPI_OK;
    }
    bytes = bytes < made->bytes ? bytes : made->bytes;
    char *run = mpi_gpu_buffer_run(made);
    bool good = run != NULL ? mpi_gpu_write(run, made->host, bytes)
                            : mpi_gpu_unpack(made->device, made->host, &made->layout, bytes);
    return good ? MPI_OK : MPI_BAD_BUFFER;
}

size_t mpi_gpu_received(const void *status)
{
    int bytes = 0, cancelled = 0;
    if (CALL Test_cancelled(status, &cancelled) != MPI_OK || cancelled ||
        CALL Get_count(status, mpi_abi()->byte, &bytes) != MPI_OK || bytes < 0) {
        return 0;
    }
    return (size_t)bytes;
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
