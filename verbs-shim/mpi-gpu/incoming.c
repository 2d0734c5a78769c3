// The receiver's side of the pipeline.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/mpi-gpu/chunks.h"

static uint64_t capacity_of(const struct mpi_gpu_receive *receive)
{
    int size = 0;
    if (receive->staged.device != NULL) {
        return receive->staged.bytes;
    }
    return receive->count > 0 && CALL Type_size(receive->type, &size) == MPI_OK && size > 0
               ? (uint64_t)size * (uint64_t)receive->count
               : 0;
}

bool mpi_gpu_may_get_rts(const struct mpi_gpu_receive *receive)
{
    return mpi_gpu_chunks.open && capacity_of(receive) >= MPI_GPU_RTS_BYTES;
}

// The first bytes of a message in host memory, whatever its datatype.
static bool first_bytes(const struct mpi_gpu_receive *receive, struct mpi_gpu_rts *rts_out)
{
    int size = 0, position = 0;
    if (CALL Type_size(receive->type, &size) != MPI_OK || size <= 0) {
        return false;
    }
    int elements = (MPI_GPU_RTS_BYTES + size - 1) / size;
    char *packed = calloc((size_t)elements, (size_t)size);
    bool good = packed != NULL && CALL Pack(receive->buffer, elements, receive->type, packed, elements * size,
                                            &position, mpi_gpu_chunks.comm) == MPI_OK;
    if (good) {
        memcpy(rts_out, packed, sizeof *rts_out);
    }
    free(packed);
    return good;
}

bool mpi_gpu_rts_in(const struct mpi_gpu_receive *receive, const void *status, struct mpi_gpu_rts *rts_out)
{
    if (!mpi_gpu_chunks.open || mpi_gpu_received(status) != MPI_GPU_RTS_BYTES || !mpi_gpu_may_get_rts(receive)) {
        return false;
    }
    if (receive->staged.device != NULL) {
        memcpy(rts_out, receive->staged.host, sizeof *rts_out);
    } else if (!first_bytes(receive, rts_out)) {
        return false;
    }
    return mpi_gpu_is_rts(rts_out);
}

// The program's memory, if the elements have no gaps in it.
static char *run_of(const struct mpi_gpu_receive *receive)
{
    struct mpi_gpu_layout layout;
    if (!mpi_gpu_layout_make(receive->type, &layout)) {
        return NULL;
    }
    char *run = mpi_gpu_layout_is_run(&layout, receive->count) && layout.count > 0
                    ? (char *)receive->buffer + layout.runs[0].offset
                    : NULL;
    mpi_gpu_layout_free(&layout);
    return run;
}

static void incoming_free(struct mpi_gpu_incoming *incoming)
{
    if (incoming->apart) {
        free(incoming->into);
    }
    free(incoming->requests);
    free(incoming);
}

static bool incoming_memory(struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive)
{
    incoming->requests = mpi_gpu_handles_make(incoming->chunks);
    if (incoming->rts.bytes <= capacity_of(receive)) {
        incoming->into = receive->staged.device != NULL ? receive->staged.host : run_of(receive);
    }
    incoming->apart = incoming->into == NULL;
    if (incoming->apart) {
        incoming->into = malloc(incoming->rts.bytes);
    }
    return incoming->requests != NULL && incoming->into != NULL;
}

struct mpi_gpu_incoming *mpi_gpu_incoming_make(const struct mpi_gpu_receive *receive, const struct mpi_gpu_rts *rts,
                                               const void *status)
{
    struct mpi_gpu_incoming *incoming = calloc(1, sizeof *incoming);
    if (incoming == NULL) {
        return NULL;
    }
    incoming->rts = *rts;
    incoming->chunks = mpi_gpu_chunk_count(rts);
    memcpy(incoming->status, status, mpi_abi()->status_bytes);
    (void)CALL Status_set_elements(incoming->status, mpi_abi()->byte, (int)rts->bytes);
    if (rts->source >= 0) {
        *mpi_status_source(incoming->status) = rts->source;
        *mpi_status_tag(incoming->status) = rts->tag;
    }
    if (!incoming_memory(incoming, receive)) {
        incoming_free(incoming);
        return NULL;
    }
    for (int i = 0; i < incoming->chunks; i++) {
        int error =
            CALL Irecv(incoming->into + (size_t)i * rts->chunk_bytes, mpi_gpu_chunk_length(rts, i), mpi_abi()->byte,
                       rts->sender, rts->chunk_tag, mpi_gpu_chunks.comm, mpi_handle_slot(incoming->requests, i));
        incoming->error = incoming->error != MPI_OK ? incoming->error : error;
    }
    return incoming;
}

mpi_handle mpi_gpu_incoming_request(const struct mpi_gpu_incoming *incoming)
{
    return mpi_handle_at(incoming->requests, incoming->next);
}

mpi_handle mpi_gpu_incoming_last(const struct mpi_gpu_incoming *incoming)
{
    return mpi_handle_at(incoming->requests, incoming->chunks - 1);
}

// The device memory into which the chunks go one by one, if they fill it without gaps.
static char *device_run(const struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive)
{
    return receive->staged.device != NULL && !incoming->apart ? mpi_gpu_buffer_run(&receive->staged) : NULL;
}

static void chunk_bring(struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive, int chunk)
{
    size_t at = (size_t)chunk * incoming->rts.chunk_bytes, bytes = (size_t)mpi_gpu_chunk_length(&incoming->rts, chunk);
    char *device = device_run(incoming, receive);
    if (device != NULL && !mpi_gpu_write_begin(device + at, incoming->into + at, bytes)) {
        incoming->error = MPI_BAD_BUFFER;
    }
}

bool mpi_gpu_incoming_chunk(struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive,
                            const void *status)
{
    int chunk = incoming->next++;
    if (mpi_gpu_received(status) != (size_t)mpi_gpu_chunk_length(&incoming->rts, chunk)) {
        incoming->error = mpi_abi()->error_other; // the sender's device refused the copy
    } else if (!incoming->brought) {
        chunk_bring(incoming, receive, chunk);
    }
    return incoming->next == incoming->chunks;
}

static int data_bring(const struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive)
{
    char *device = device_run(incoming, receive);
    if (device != NULL) {
        return mpi_gpu_write_end(device) ? MPI_OK : MPI_BAD_BUFFER;
    }
    if (incoming->rts.bytes > capacity_of(receive)) {
        return mpi_abi()->error_truncate;
    }
    if (receive->staged.device != NULL) {
        return mpi_gpu_buffer_write(&receive->staged, incoming->rts.bytes);
    }
    if (!incoming->apart) {
        return MPI_OK;
    }
    int tag = mpi_gpu_rts_make(0, 0).chunk_tag; // MPI unpacks it, as it may end within an element
    return CALL Sendrecv(incoming->into, (int)incoming->rts.bytes, mpi_abi()->byte, mpi_gpu_chunks.self, tag,
                         receive->buffer, receive->count, receive->type, mpi_gpu_chunks.self, tag, mpi_gpu_chunks.comm,
                         mpi_abi()->status_ignore);
}

int mpi_gpu_incoming_bring(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive)
{
    if (!incoming->brought) {
        chunk_bring(incoming, receive, incoming->chunks - 1);
        int error = data_bring(incoming, receive);
        incoming->error = incoming->error != MPI_OK ? incoming->error : error;
        incoming->brought = true;
    }
    return incoming->error;
}

int mpi_gpu_incoming_end(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive, void *status)
{
    int error = incoming->brought ? MPI_OK : data_bring(incoming, receive);
    error = incoming->error != MPI_OK ? incoming->error : error;
    if (!mpi_status_is_ignored(status)) {
        memcpy(status, incoming->status, mpi_abi()->status_bytes);
    }
    incoming_free(incoming);
    if (error != MPI_OK) {
        (void)CALL Comm_call_errhandler(receive->comm, error);
    }
    return error;
}

int mpi_gpu_incoming_wait(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive, void *status)
{
    bool all = false;
    while (!all) {
        _Alignas(16) char chunk[MPI_STATUS_MAX];
        _Alignas(16) char handle[sizeof(mpi_handle)];
        mpi_handle_put(handle, 0, mpi_gpu_incoming_request(incoming));
        int error = CALL Wait(handle, chunk);
        incoming->error = incoming->error != MPI_OK ? incoming->error : error;
        all = mpi_gpu_incoming_chunk(incoming, receive, chunk);
    }
    return mpi_gpu_incoming_end(incoming, receive, status);
}
