// Messages from and to device memory.
#include <limits.h>
#include <stdlib.h>

#include "verbs-shim/mpi-gpu/requests.h"

// true: MPI moves the buffer itself. Only for one run: a message of a datatype with gaps is packed.
static bool is_direct(const struct mpi_gpu_buffer *buffer)
{
    return mpi_gpu_settings()->direct && buffer->bytes >= mpi_gpu_settings()->direct_bytes &&
           mpi_gpu_buffer_run(buffer) != NULL;
}

static bool is_direct_call(const void *buffer, int count, mpi_handle type, int peer)
{
    struct mpi_gpu_buffer made;
    if (!mpi_gpu_settings()->direct || peer == mpi_abi()->proc_null ||
        mpi_gpu_buffer_make(buffer, count, type, &made) != MPI_OK) {
        return false;
    }
    bool direct = made.device != NULL && is_direct(&made);
    mpi_gpu_buffer_free(&made);
    return direct;
}

// --- sends ----------------------------------------------------------------------------------------------------------

// How a message is passed to MPI.
struct sending {
    struct mpi_gpu_buffer staged;      // no device: MPI uses the program's buffer as it is
    struct mpi_gpu_outgoing *outgoing; // pipelined
};

enum sending_how { AS_SET, PERSISTENT /* not pipelined */, COPIED /* not direct: the buffer is used again */ };

static int sending_make(struct sending *sending, const void *buffer, int count, mpi_handle type, int to,
                        mpi_handle comm, enum sending_how how)
{
    int peer, error = MPI_OK;
    *sending = (struct sending){0};
    if (to != mpi_abi()->proc_null) {
        error = mpi_gpu_buffer_make(buffer, count, type, &sending->staged);
    }
    if (error == MPI_OK && how != COPIED && is_direct(&sending->staged)) {
        mpi_gpu_buffer_free(&sending->staged);
    }
    if (error != MPI_OK || sending->staged.device == NULL) {
        return error;
    }
    if (how != PERSISTENT && mpi_gpu_pipelines(&sending->staged, to, comm, &peer)) {
        sending->outgoing = mpi_gpu_outgoing_make(&sending->staged, peer);
        error = sending->outgoing != NULL ? MPI_OK : mpi_abi()->error_other;
    } else {
        error = mpi_gpu_buffer_stage(&sending->staged);
        error = error == MPI_OK && how != PERSISTENT ? mpi_gpu_buffer_read(&sending->staged) : error;
    }
    if (error != MPI_OK) {
        mpi_gpu_buffer_free(&sending->staged);
    }
    return error;
}

static int send(mpi_send_fn *call, const char *name, const void *buffer, int count, mpi_handle type, int to, int tag,
                mpi_handle comm)
{
    struct sending sending;
    int error = sending_make(&sending, buffer, count, type, to, comm, AS_SET);
    if (error != MPI_OK) {
        return mpi_gpu_fail(comm, error, name, buffer);
    }
    if (sending.outgoing != NULL) {
        error = call(&sending.outgoing->rts, MPI_GPU_RTS_BYTES, mpi_abi()->byte, to, tag, comm);
        int copied = error == MPI_OK ? mpi_gpu_outgoing_send(sending.outgoing) : MPI_OK;
        error = copied != MPI_OK ? mpi_gpu_fail(comm, copied, name, buffer) : error;
        mpi_gpu_outgoing_wait(sending.outgoing);
        mpi_gpu_outgoing_release(sending.outgoing);
        return error;
    }
    if (sending.staged.device == NULL) {
        return call(buffer, count, type, to, tag, comm);
    }
    error = call(sending.staged.host, (int)sending.staged.bytes, mpi_abi()->byte, to, tag, comm);
    mpi_gpu_buffer_free(&sending.staged);
    return error;
}

#define SEND(name)                                                                                                     \
    int MPI_##name(const void *buffer, int count, mpi_handle type, int to, int tag, mpi_handle comm)                   \
    {                                                                                                                  \
        return send(mpi_abi()->calls.name, "MPI_" #name, buffer, count, type, to, tag, comm);                          \
    }
SEND(Send)
SEND(Ssend)
SEND(Rsend)
SEND(Bsend)

static int start_pipelined(mpi_start_fn *call, struct mpi_gpu_outgoing *outgoing, const void *buffer, int to, int tag,
                           mpi_handle comm, void *request)
{
    int error = call(&outgoing->rts, MPI_GPU_RTS_BYTES, mpi_abi()->byte, to, tag, comm, request);
    int copied = error == MPI_OK ? mpi_gpu_outgoing_send(outgoing) : MPI_OK;
    if (error != MPI_OK || !mpi_gpu_request_pipelined(mpi_handle_at(request, 0), outgoing)) {
        mpi_gpu_outgoing_release(outgoing);
    }
    return copied != MPI_OK ? mpi_gpu_fail(comm, copied, "a send", buffer) : error;
}

static int start(mpi_start_fn *call, const char *name, enum sending_how how, const void *buffer, int count,
                 mpi_handle type, int to, int tag, mpi_handle comm, void *request)
{
    struct sending sending;
    int error = sending_make(&sending, buffer, count, type, to, comm, how);
    if (error != MPI_OK) {
        return mpi_gpu_fail(comm, error, name, buffer);
    }
    if (sending.outgoing != NULL) {
        return start_pipelined(call, sending.outgoing, buffer, to, tag, comm, request);
    }
    if (sending.staged.device == NULL) {
        return call(buffer, count, type, to, tag, comm, request);
    }
    error = call(sending.staged.host, (int)sending.staged.bytes, mpi_abi()->byte, to, tag, comm, request);
    if (error != MPI_OK) {
        mpi_gpu_buffer_free(&sending.staged);
        return error;
    }
    return mpi_gpu_request_send(mpi_handle_at(request, 0), &sending.staged, comm, how == PERSISTENT)
               ? MPI_OK
               : mpi_gpu_fail(comm, mpi_abi()->error_other, name, buffer); // MPI still uses the host memory
}

#define START(name, how)                                                                                               \
    int MPI_##name(const void *buffer, int count, mpi_handle type, int to, int tag, mpi_handle comm, void *request)    \
    {                                                                                                                  \
        return start(mpi_abi()->calls.name, "MPI_" #name, how, buffer, count, type, to, tag, comm, request);           \
    }
START(Isend, AS_SET)
START(Issend, AS_SET)
START(Irsend, AS_SET)
START(Ibsend, AS_SET)
START(Send_init, PERSISTENT)
START(Ssend_init, PERSISTENT)
START(Rsend_init, PERSISTENT)
START(Bsend_init, PERSISTENT)

// --- receives -------------------------------------------------------------------------------------------------------

// A staged receive, or one into the program's own memory.
static int receive_make(struct mpi_gpu_receive *receive, void *buffer, int count, mpi_handle type, int from,
                        mpi_handle comm)
{
    *receive = (struct mpi_gpu_receive){.comm = comm, .buffer = buffer, .count = count, .type = type};
    int error = from != mpi_abi()->proc_null ? mpi_gpu_buffer_make(buffer, count, type, &receive->staged) : MPI_OK;
    error = error == MPI_OK ? mpi_gpu_buffer_stage(&receive->staged) : error;
    if (error != MPI_OK) {
        mpi_gpu_buffer_free(&receive->staged);
    }
    return error;
}

// The buffer that MPI receives into.
static void *buffer_of(const struct mpi_gpu_receive *receive)
{
    return receive->staged.device != NULL ? receive->staged.host : receive->buffer;
}

static int count_of(const struct mpi_gpu_receive *receive)
{
    return receive->staged.device != NULL ? (int)receive->staged.bytes : receive->count;
}

static mpi_handle type_of(const struct mpi_gpu_receive *receive)
{
    return receive->staged.device != NULL ? mpi_abi()->byte : receive->type;
}

int mpi_gpu_receive_message(const struct mpi_gpu_receive *receive, void *message, void *request)
{
    return CALL Imrecv(buffer_of(receive), count_of(receive), type_of(receive), message, request);
}

static bool is_tracked(const struct mpi_gpu_receive *receive, int from)
{
    return receive->staged.device != NULL || (from != mpi_abi()->proc_null && mpi_gpu_may_get_rts(receive));
}

// Returns an error if MPI's request (which may exist) cannot be tracked.
static int kept(bool good, struct mpi_gpu_receive *receive, const char *name)
{
    return good ? MPI_OK : mpi_gpu_fail(receive->comm, mpi_abi()->error_other, name, receive->buffer);
}

// Receives the chunks of a message whose RTS a probe has taken.
static int incoming_start(struct mpi_gpu_receive *receive, const struct mpi_gpu_probed *probed, void *request)
{
    struct mpi_gpu_incoming *incoming = mpi_gpu_incoming_make(receive, &probed->rts, probed->status);
    if (incoming == NULL) {
        return kept(false, receive, "MPI_Irecv");
    }
    mpi_handle_put(request, 0, mpi_gpu_incoming_last(incoming));
    return kept(mpi_gpu_request_incoming(receive, incoming), receive, "MPI_Irecv");
}

static int receive_started(struct mpi_gpu_receive *receive, int from, int error, const void *request, const char *name)
{
    if (error == MPI_OK && is_tracked(receive, from)) {
        return kept(mpi_gpu_request_receive(mpi_handle_at(request, 0), receive), receive, name);
    }
    mpi_gpu_buffer_free(&receive->staged);
    return error;
}

int MPI_Irecv(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *request)
{
    struct mpi_gpu_receive receive;
    if (is_direct_call(buffer, count, type, from)) {
        return CALL Irecv(buffer, count, type, from, tag, comm, request);
    }
    int error = receive_make(&receive, buffer, count, type, from, comm);
    if (error != MPI_OK) {
        return mpi_gpu_fail(comm, error, "MPI_Irecv", buffer);
    }
    struct mpi_gpu_probed *probed = mpi_gpu_probed_take(from, tag, comm);
    if (probed != NULL && probed->rts.bytes != 0) {
        error = incoming_start(&receive, probed, request);
    } else {
        error = probed != NULL
                    ? mpi_gpu_receive_message(&receive, probed->message, request)
                    : CALL Irecv(buffer_of(&receive), count_of(&receive), type_of(&receive), from, tag, comm, request);
        error = receive_started(&receive, from, error, request, "MPI_Irecv");
    }
    free(probed);
    return error;
}

int MPI_Imrecv(void *buffer, int count, mpi_handle type, void *message, void *request)
{
    struct mpi_gpu_receive receive;
    int error = receive_make(&receive, buffer, count, type, 0, mpi_abi()->world);
    if (error != MPI_OK) {
        return mpi_gpu_fail(mpi_abi()->world, error, "MPI_Imrecv", buffer);
    }
    error = mpi_gpu_receive_message(&receive, message, request);
    return receive_started(&receive, 0, error, request, "MPI_Imrecv");
}

int MPI_Recv_init(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *request)
{
    struct mpi_gpu_receive receive;
    if (is_direct_call(buffer, count, type, from)) {
        return CALL Recv_init(buffer, count, type, from, tag, comm, request);
    }
    int error = receive_make(&receive, buffer, count, type, from, comm);
    if (error != MPI_OK) {
        return mpi_gpu_fail(comm, error, "MPI_Recv_init", buffer);
    }
    error = CALL Recv_init(buffer_of(&receive), count_of(&receive), type_of(&receive), from, tag, comm, request);
    if (error == MPI_OK && is_tracked(&receive, from)) {
        return kept(mpi_gpu_request_receive_init(mpi_handle_at(request, 0), &receive, from, tag), &receive,
                    "MPI_Recv_init");
    }
    mpi_gpu_buffer_free(&receive.staged);
    return error;
}

// --- receives that wait ---------------------------------------------------------------------------------------------

static int chunks_wait(struct mpi_gpu_receive *receive, const struct mpi_gpu_rts *rts, const void *rts_status,
                       void *status)
{
    struct mpi_gpu_incoming *incoming = mpi_gpu_incoming_make(receive, rts, rts_status);
    return incoming != NULL ? mpi_gpu_incoming_wait(incoming, receive, status) : mpi_abi()->error_other;
}

// Called when MPI's receive is complete.
static int receive_end(struct mpi_gpu_receive *receive, int error, void *status)
{
    struct mpi_gpu_rts rts;
    if (error == MPI_OK && mpi_gpu_rts_in(receive, status, &rts)) {
        error = chunks_wait(receive, &rts, status, status);
    } else if (error == MPI_OK && mpi_gpu_buffer_write(&receive->staged, mpi_gpu_received(status)) != MPI_OK) {
        error = mpi_gpu_fail(receive->comm, MPI_BAD_BUFFER, "a receive", receive->staged.device);
    }
    mpi_gpu_buffer_free(&receive->staged);
    return error;
}

// Receives directly into device memory. A shorter message may arrive, which MPI would copy by the processor: it is
// staged.
static int receive_direct(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *status)
{
    _Alignas(16) char message[sizeof(mpi_handle)];
    int bytes = 0, error = CALL Mprobe(from, tag, comm, message, status);
    error = error == MPI_OK ? CALL Get_count(status, mpi_abi()->byte, &bytes) : error;
    if (error == MPI_OK && bytes >= 0 && (size_t)bytes >= mpi_gpu_settings()->direct_bytes) {
        return CALL Mrecv(buffer, count, type, message, status);
    }
    return error == MPI_OK ? MPI_Mrecv(buffer, count, type, message, status) : error;
}

int MPI_Mrecv(void *buffer, int count, mpi_handle type, void *message, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX] = {0};
    struct mpi_gpu_receive receive;
    int error = receive_make(&receive, buffer, count, type, 0, mpi_abi()->world);
    if (error != MPI_OK) {
        return mpi_gpu_fail(mpi_abi()->world, error, "MPI_Mrecv", buffer);
    }
    status = mpi_status_or(status, own);
    error = CALL Mrecv(buffer_of(&receive), count_of(&receive), type_of(&receive), message, status);
    return receive_end(&receive, error, status);
}

// Receives a message that a probe has taken.
static int receive_probed(struct mpi_gpu_receive *receive, struct mpi_gpu_probed *probed, void *status)
{
    if (probed->rts.bytes == 0) {
        int error = CALL Mrecv(buffer_of(receive), count_of(receive), type_of(receive), probed->message, status);
        return receive_end(receive, error, status);
    }
    int error = chunks_wait(receive, &probed->rts, probed->status, status);
    mpi_gpu_buffer_free(&receive->staged);
    return error;
}

int MPI_Recv(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX] = {0};
    struct mpi_gpu_receive receive;
    void *seen = mpi_status_or(status, own);
    if (is_direct_call(buffer, count, type, from)) {
        return receive_direct(buffer, count, type, from, tag, comm, seen);
    }
    int error = receive_make(&receive, buffer, count, type, from, comm);
    if (error != MPI_OK) {
        return mpi_gpu_fail(comm, error, "MPI_Recv", buffer);
    }
    struct mpi_gpu_probed *probed = mpi_gpu_probed_take(from, tag, comm);
    if (probed != NULL) {
        error = receive_probed(&receive, probed, seen);
        free(probed);
        return error;
    }
    if (!is_tracked(&receive, from)) {
        return CALL Recv(buffer, count, type, from, tag, comm, status);
    }
    error = CALL Recv(buffer_of(&receive), count_of(&receive), type_of(&receive), from, tag, comm, seen);
    return receive_end(&receive, error, seen);
}

// --- both -----------------------------------------------------------------------------------------------------------

int MPI_Sendrecv(const void *out, int out_count, mpi_handle out_type, int to, int out_tag, void *in, int in_count,
                 mpi_handle in_type, int from, int in_tag, mpi_handle comm, void *status)
{
    _Alignas(16) char request[sizeof(mpi_handle)], sent[sizeof(mpi_handle)];
    if (!mpi_gpu_pipeline_is_open() && mpi_gpu_pointer_kind(out) == MPI_GPU_HOST &&
        mpi_gpu_pointer_kind(in) == MPI_GPU_HOST) {
        return CALL Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
    }
    int error = MPI_Irecv(in, in_count, in_type, from, in_tag, comm, request);
    if (error != MPI_OK) {
        return error;
    }
    error = MPI_Isend(out, out_count, out_type, to, out_tag, comm, sent);
    int received = MPI_Wait(request, status);
    error = error == MPI_OK ? MPI_Wait(sent, mpi_abi()->status_ignore) : error;
    return error != MPI_OK ? error : received;
}

// Sends a copy of the data, because the receive overwrites the buffer.
static int replace_start(const void *buffer, int count, mpi_handle type, int to, int tag, mpi_handle comm,
                         char **packed, void *request)
{
    int size = 0, position = 0;
    if (mpi_gpu_pointer_kind(buffer) != MPI_GPU_HOST) {
        return start(CALL Isend, "MPI_Sendrecv_replace", COPIED, buffer, count, type, to, tag, comm, request);
    }
    int error = CALL Type_size(type, &size);
    int64_t bytes = (int64_t)size * count;
    *packed = bytes >= 0 && bytes <= INT_MAX ? malloc((size_t)bytes + 1) : NULL;
    if (error != MPI_OK || *packed == NULL) {
        return mpi_gpu_fail(comm, error != MPI_OK ? error : mpi_abi()->error_other, "MPI_Sendrecv_replace", buffer);
    }
    error = CALL Pack(buffer, count, type, *packed, (int)bytes, &position, comm);
    return error == MPI_OK ? CALL Isend(*packed, position, mpi_abi()->byte, to, tag, comm, request) : error;
}

int MPI_Sendrecv_replace(void *buffer, int count, mpi_handle type, int to, int out_tag, int from, int in_tag,
                         mpi_handle comm, void *status)
{
    _Alignas(16) char request[sizeof(mpi_handle)];
    char *packed = NULL;
    if (!mpi_gpu_pipeline_is_open() && mpi_gpu_pointer_kind(buffer) == MPI_GPU_HOST) {
        return CALL Sendrecv_replace(buffer, count, type, to, out_tag, from, in_tag, comm, status);
    }
    int error = replace_start(buffer, count, type, to, out_tag, comm, &packed, request);
    if (error == MPI_OK) {
        int received = MPI_Recv(buffer, count, type, from, in_tag, comm, status);
        error = MPI_Wait(request, mpi_abi()->status_ignore);
        error = error != MPI_OK ? error : received;
    }
    free(packed);
    return error;
}
