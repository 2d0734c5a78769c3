// Messages from and to device memory.
#include "verbs-shim/mpi-gpu/gpu.h"

// Whether MPI moves the buffer itself. Only what is one run: a message of a datatype with gaps is packed.
static bool is_direct(const struct mpi_gpu_buffer *buffer, int count)
{
    return mpi_gpu_settings()->direct && buffer->bytes >= mpi_gpu_settings()->direct_bytes &&
           mpi_gpu_layout_is_run(&buffer->layout, count);
}

// What MPI is given for a message: no device where it uses the program's buffer.
static int message_make(const void *buffer, int count, mpi_handle type, int peer, struct mpi_gpu_buffer *staged)
{
    *staged = (struct mpi_gpu_buffer){0};
    int error = peer != mpi_abi()->proc_null ? mpi_gpu_buffer_make(buffer, count, type, staged) : MPI_OK;
    if (error == MPI_OK && staged->device != NULL && is_direct(staged, count)) {
        mpi_gpu_buffer_free(staged);
    }
    return error;
}

static int send(mpi_send_fn *call, const char *name, const void *buffer, int count, mpi_handle type, int to, int tag,
                mpi_handle comm)
{
    struct mpi_gpu_buffer staged;
    int error = message_make(buffer, count, type, to, &staged);
    if (error == MPI_OK && staged.device == NULL) {
        return call(buffer, count, type, to, tag, comm);
    }
    error = error == MPI_OK ? mpi_gpu_buffer_read(&staged) : error;
    error = error != MPI_OK ? mpi_gpu_fail(comm, error, name, buffer)
                            : call(staged.host, (int)staged.bytes, mpi_abi()->byte, to, tag, comm);
    mpi_gpu_buffer_free(&staged);
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

// --- requests -------------------------------------------------------------------------------------------------------

// The request stands for the staged buffer, which is freed where there is none.
static int request_keep(int error, struct mpi_gpu_buffer *staged, bool receives, bool persistent, const char *name,
                        mpi_handle comm, const void *request)
{
    if (error == MPI_OK && mpi_gpu_request_add(mpi_handle_at(request, 0), staged, receives, persistent)) {
        return MPI_OK;
    }
    if (error == MPI_OK) {
        return mpi_gpu_fail(comm, MPI_OTHER, name, staged->device); // the host memory is MPI's
    }
    mpi_gpu_buffer_free(staged);
    return error;
}

static int start(mpi_start_fn *call, const char *name, bool persistent, const void *buffer, int count, mpi_handle type,
                 int to, int tag, mpi_handle comm, void *request)
{
    struct mpi_gpu_buffer staged;
    int error = message_make(buffer, count, type, to, &staged);
    if (error == MPI_OK && staged.device == NULL) {
        return call(buffer, count, type, to, tag, comm, request);
    }
    error = error == MPI_OK && !persistent ? mpi_gpu_buffer_read(&staged) : error;
    if (error != MPI_OK) {
        mpi_gpu_buffer_free(&staged);
        return mpi_gpu_fail(comm, error, name, buffer);
    }
    error = call(staged.host, (int)staged.bytes, mpi_abi()->byte, to, tag, comm, request);
    return request_keep(error, &staged, false, persistent, name, comm, request);
}

#define START(name, persistent)                                                                                        \
    int MPI_##name(const void *buffer, int count, mpi_handle type, int to, int tag, mpi_handle comm, void *request)    \
    {                                                                                                                  \
        return start(mpi_abi()->calls.name, "MPI_" #name, persistent, buffer, count, type, to, tag, comm, request);    \
    }
START(Isend, false)
START(Issend, false)
START(Irsend, false)
START(Ibsend, false)
START(Send_init, true)
START(Ssend_init, true)
START(Rsend_init, true)
START(Bsend_init, true)

static int receive_start(mpi_receive_fn *call, const char *name, bool persistent, void *buffer, int count,
                         mpi_handle type, int from, int tag, mpi_handle comm, void *request)
{
    struct mpi_gpu_buffer staged;
    int error = message_make(buffer, count, type, from, &staged);
    if (error == MPI_OK && staged.device == NULL) {
        return call(buffer, count, type, from, tag, comm, request);
    }
    if (error != MPI_OK) {
        return mpi_gpu_fail(comm, error, name, buffer);
    }
    error = call(staged.host, (int)staged.bytes, mpi_abi()->byte, from, tag, comm, request);
    return request_keep(error, &staged, true, persistent, name, comm, request);
}

int MPI_Irecv(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *request)
{
    return receive_start(CALL Irecv, "MPI_Irecv", false, buffer, count, type, from, tag, comm, request);
}

int MPI_Recv_init(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *request)
{
    return receive_start(CALL Recv_init, "MPI_Recv_init", true, buffer, count, type, from, tag, comm, request);
}

// --- receives that wait ---------------------------------------------------------------------------------------------

// The message that has come, long or short.
static int message_take(struct mpi_gpu_buffer *staged, int count, mpi_handle type, void *message, void *status)
{
    int bytes = 0;
    int error = CALL Get_count(status, mpi_abi()->byte, &bytes);
    if (error != MPI_OK) {
        return error;
    }
    if (bytes >= 0 && (size_t)bytes >= mpi_gpu_settings()->direct_bytes) {
        return CALL Mrecv(staged->device, count, type, message, status);
    }
    error = CALL Mrecv(staged->host, (int)staged->bytes, mpi_abi()->byte, message, status);
    int copied = mpi_gpu_buffer_write(staged, mpi_gpu_received(status, staged));
    return error != MPI_OK ? error : copied;
}

static int receive(struct mpi_gpu_buffer *staged, int count, mpi_handle type, int from, int tag, mpi_handle comm,
                   void *status)
{
    if (is_direct(staged, count)) { // what comes may be shorter, which MPI would copy by the processor
        _Alignas(16) char message[sizeof(mpi_handle)];
        int error = CALL Mprobe(from, tag, comm, message, status);
        return error != MPI_OK ? error : message_take(staged, count, type, message, status);
    }
    int error = CALL Recv(staged->host, (int)staged->bytes, mpi_abi()->byte, from, tag, comm, status);
    int copied = mpi_gpu_buffer_write(staged, mpi_gpu_received(status, staged));
    return error != MPI_OK ? error : copied;
}

int MPI_Recv(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX];
    struct mpi_gpu_buffer staged;
    int error = from == mpi_abi()->proc_null ? MPI_OK : mpi_gpu_buffer_make(buffer, count, type, &staged);
    if (from == mpi_abi()->proc_null || (error == MPI_OK && staged.device == NULL)) {
        return CALL Recv(buffer, count, type, from, tag, comm, status);
    }
    if (error != MPI_OK) {
        return mpi_gpu_fail(comm, error, "MPI_Recv", buffer);
    }
    error = receive(&staged, count, type, from, tag, comm, mpi_status_is_ignored(status) ? own : status);
    mpi_gpu_buffer_free(&staged);
    return error;
}

int MPI_Sendrecv(const void *out, int out_count, mpi_handle out_type, int to, int out_tag, void *in, int in_count,
                 mpi_handle in_type, int from, int in_tag, mpi_handle comm, void *status)
{
    _Alignas(16) char request[sizeof(mpi_handle)];
    if (mpi_gpu_place(out) == MPI_GPU_HOST && mpi_gpu_place(in) == MPI_GPU_HOST) {
        return CALL Sendrecv(out, out_count, out_type, to, out_tag, in, in_count, in_type, from, in_tag, comm, status);
    }
    int error = MPI_Irecv(in, in_count, in_type, from, in_tag, comm, request);
    if (error != MPI_OK) {
        return error;
    }
    error = MPI_Send(out, out_count, out_type, to, out_tag, comm);
    int received = MPI_Wait(request, status);
    return error != MPI_OK ? error : received;
}
