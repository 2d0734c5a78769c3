#include "verbs-shim/mpi-gpu/requests.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct mpi_gpu_request {
    struct mpi_gpu_request *next;
    mpi_handle handle; // the program's handle
    bool receives, persistent, own_type;
    struct mpi_gpu_receive receive; // of a send: only `staged` is used
    int from, tag;                  // persistent receives only

    struct mpi_gpu_outgoing *outgoing; // a pipelined send
    struct mpi_gpu_incoming *incoming; // a receive whose RTS has arrived
    bool held;                         // MPI considers the RTS the message and still has the request: freed at the end
    bool brought;                      // its data was copied to the device before the wait
    mpi_handle probed;                 // MPI's request for a message that a probe had taken; otherwise null
};

// --- the table ------------------------------------------------------------------------------------------------------

#define BUCKETS 256

static struct mpi_gpu_request *buckets[BUCKETS];
static unsigned count; // number of requests; programs without device memory pay nothing
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct mpi_gpu_request **bucket_of(mpi_handle handle)
{
    return &buckets[(handle ^ handle >> 8 ^ handle >> 16) % BUCKETS];
}

static void insert(struct mpi_gpu_request *request)
{
    (void)pthread_mutex_lock(&lock);
    struct mpi_gpu_request **bucket = bucket_of(request->handle);
    request->next = *bucket;
    *bucket = request;
    count++;
    (void)pthread_mutex_unlock(&lock);
}

static struct mpi_gpu_request *find(mpi_handle handle)
{
    if (count == 0) {
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    struct mpi_gpu_request *request = *bucket_of(handle);
    while (request != NULL && request->handle != handle) {
        request = request->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return request;
}

bool mpi_gpu_request_is_known(mpi_handle handle)
{
    return find(handle) != NULL;
}

struct mpi_gpu_request *mpi_gpu_request_claim(mpi_handle handle)
{
    struct mpi_gpu_request *request = NULL;
    if (count == 0) {
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    struct mpi_gpu_request **link = bucket_of(handle);
    while (*link != NULL && (*link)->handle != handle) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        request = *link;
        *link = request->next;
        count--;
    }
    (void)pthread_mutex_unlock(&lock);
    return request;
}

void mpi_gpu_request_give_back(struct mpi_gpu_request *request)
{
    insert(request);
}

void mpi_gpu_request_forget(struct mpi_gpu_request *request)
{
    _Alignas(16) char type[sizeof(mpi_handle)];
    mpi_gpu_buffer_free(&request->receive.staged);
    if (request->own_type) {
        mpi_handle_put(type, 0, request->receive.type);
        (void)CALL Type_free(type);
    }
    free(request);
}

// --- creation -------------------------------------------------------------------------------------------------------

static struct mpi_gpu_request *request_add(const struct mpi_gpu_request *wanted)
{
    struct mpi_gpu_request *request = malloc(sizeof *request);
    if (request != NULL) {
        *request = *wanted;
        request->probed = mpi_abi()->request_null;
        insert(request);
    }
    return request;
}

bool mpi_gpu_request_send(mpi_handle handle, const struct mpi_gpu_buffer *staged, mpi_handle comm, bool persistent)
{
    return request_add(&(struct mpi_gpu_request){
               .handle = handle, .receive.staged = *staged, .receive.comm = comm, .persistent = persistent}) != NULL;
}

bool mpi_gpu_request_pipelined(mpi_handle handle, struct mpi_gpu_outgoing *outgoing)
{
    return request_add(&(struct mpi_gpu_request){.handle = handle, .outgoing = outgoing}) != NULL;
}

// The program may free its datatype before the message arrives.
static bool type_keep(struct mpi_gpu_request *request)
{
    _Alignas(16) char copy[sizeof(mpi_handle)];
    int integers, addresses, types, combiner;
    if (request->receive.staged.device != NULL) {
        return true; // its layout is known
    }
    if (CALL Type_get_envelope(request->receive.type, &integers, &addresses, &types, &combiner) != MPI_OK) {
        return false;
    }
    if (combiner - !mpi_abi()->open_mpi == MPI_MADE_NAMED) {
        return true;
    }
    request->own_type = CALL Type_dup(request->receive.type, copy) == MPI_OK;
    request->receive.type = mpi_handle_at(copy, 0);
    return request->own_type;
}

static bool receive_add(struct mpi_gpu_request wanted)
{
    wanted.receives = true;
    return type_keep(&wanted) && request_add(&wanted) != NULL;
}

bool mpi_gpu_request_receive(mpi_handle handle, const struct mpi_gpu_receive *receive)
{
    return receive_add((struct mpi_gpu_request){.handle = handle, .receive = *receive});
}

bool mpi_gpu_request_receive_init(mpi_handle handle, const struct mpi_gpu_receive *receive, int from, int tag)
{
    return receive_add(
        (struct mpi_gpu_request){.handle = handle, .receive = *receive, .persistent = true, .from = from, .tag = tag});
}

bool mpi_gpu_request_incoming(const struct mpi_gpu_receive *receive, struct mpi_gpu_incoming *incoming)
{
    return receive_add(
        (struct mpi_gpu_request){.handle = mpi_gpu_incoming_last(incoming), .receive = *receive, .incoming = incoming});
}

// --- completion -----------------------------------------------------------------------------------------------------

bool mpi_gpu_request_receives(const struct mpi_gpu_request *request)
{
    return request->receives;
}

mpi_handle mpi_gpu_request_stand_in(const struct mpi_gpu_request *request)
{
    return request->incoming != NULL                    ? mpi_gpu_incoming_request(request->incoming)
           : request->probed != mpi_abi()->request_null ? request->probed
                                                        : request->handle;
}

// true: the received message is an RTS; then receives for its chunks are posted.
static bool rts_taken(struct mpi_gpu_request *request, const void *status, int *error_out)
{
    struct mpi_gpu_rts rts;
    if (!request->receives || request->incoming != NULL || !mpi_gpu_rts_in(&request->receive, status, &rts)) {
        return false;
    }
    request->incoming = mpi_gpu_incoming_make(&request->receive, &rts, status);
    if (request->incoming == NULL) {
        *error_out = mpi_abi()->error_other;
    }
    return request->incoming != NULL;
}

// Brings received data to its target.
static int bring(struct mpi_gpu_request *request, void *status)
{
    _Alignas(16) char held[sizeof(mpi_handle)];
    if (request->incoming == NULL) {
        bool wanted = request->receives && !request->brought;
        int error = wanted ? mpi_gpu_buffer_write(&request->receive.staged, mpi_gpu_received(status)) : MPI_OK;
        return error == MPI_OK ? MPI_OK
                               : mpi_gpu_fail(request->receive.comm, error, "a receive", request->receive.buffer);
    }
    int error = mpi_gpu_incoming_end(request->incoming, &request->receive, status);
    request->incoming = NULL;
    if (request->held) {
        mpi_handle_put(held, 0, request->handle);
        (void)CALL Wait(held, mpi_abi()->status_ignore);
        request->held = false;
    }
    return error;
}

bool mpi_gpu_request_ended(struct mpi_gpu_request *request, void *slot, void *status, int *error_out,
                           struct mpi_gpu_outgoing **sent_out)
{
    *error_out = MPI_OK;
    *sent_out = NULL;
    if (rts_taken(request, status, error_out)) {
        if (!request->persistent) { // MPI has freed its request
            request->handle = mpi_gpu_incoming_last(request->incoming);
            mpi_handle_put(slot, 0, request->handle);
        }
        return false;
    }
    if (request->incoming != NULL && !mpi_gpu_incoming_chunk(request->incoming, &request->receive, status)) {
        return false;
    }
    int error = bring(request, status);
    *error_out = *error_out != MPI_OK ? *error_out : error;
    request->probed = mpi_abi()->request_null;
    if (!request->persistent) {
        *sent_out = request->outgoing;
        mpi_handle_put(slot, 0, mpi_abi()->request_null);
        mpi_gpu_request_forget(request);
    }
    return true;
}

bool mpi_gpu_request_progress(struct mpi_gpu_request *request)
{
    _Alignas(16) char status[MPI_STATUS_MAX], handle[sizeof(mpi_handle)];
    int flag = 0, error = MPI_OK;
    (void)CALL Request_get_status(mpi_gpu_request_stand_in(request), &flag, status);
    if (flag && rts_taken(request, status, &error)) {
        request->held = true;
        (void)CALL Request_get_status(mpi_gpu_request_stand_in(request), &flag, status);
    }
    while (flag && request->incoming != NULL && request->incoming->next < request->incoming->chunks - 1) {
        mpi_handle_put(handle, 0, mpi_gpu_request_stand_in(request));
        (void)CALL Wait(handle, status);
        (void)mpi_gpu_incoming_chunk(request->incoming, &request->receive, status);
        (void)CALL Request_get_status(mpi_gpu_request_stand_in(request), &flag, status);
    }
    return flag;
}

void mpi_gpu_requests_progress(void)
{
    for (size_t i = 0; i < BUCKETS && count != 0; i++) {
        for (struct mpi_gpu_request *request = buckets[i]; request != NULL; request = request->next) {
            if (request->receives) {
                (void)mpi_gpu_request_progress(request);
            }
        }
    }
}

// --- calls for one request ------------------------------------------------------------------------------------------

// MPI uses the host memory until a send has ended; the end of a receive is unknown.
static void abandon(struct mpi_gpu_request *known, void *request)
{
    int over = 0;
    (void)CALL Request_get_status(known->handle, &over, mpi_abi()->status_ignore);
    if (!over && !known->receives) {
        mpi_gpu_outgoing_abandon(&known->receive.staged, known->handle);
        mpi_handle_put(request, 0, mpi_abi()->request_null);
    } else if (!over) {
        known->receive.staged = (struct mpi_gpu_buffer){0};
    }
    mpi_gpu_request_forget(known);
}

int MPI_Request_free(void *request)
{
    struct mpi_gpu_request *known = find(mpi_handle_at(request, 0));
    if (known != NULL && known->incoming != NULL) { // its chunks are being received
        _Alignas(16) char status[MPI_STATUS_MAX];
        int error = MPI_Wait(request, status);
        if (error != MPI_OK) {
            return error;
        }
    }
    if (mpi_handle_at(request, 0) == mpi_abi()->request_null) {
        return MPI_OK;
    }
    known = mpi_gpu_request_claim(mpi_handle_at(request, 0));
    if (known != NULL && known->outgoing != NULL) {
        mpi_gpu_outgoing_release(known->outgoing);
        mpi_gpu_request_forget(known);
    } else if (known != NULL) {
        abandon(known, request);
    }
    return mpi_handle_at(request, 0) != mpi_abi()->request_null ? CALL Request_free(request) : MPI_OK;
}

int MPI_Request_get_status(mpi_handle request, int *flag, void *status)
{
    struct mpi_gpu_request *known = find(mpi_handle_at(&request, 0));
    if (known == NULL || !known->receives) {
        return CALL Request_get_status(request, flag, status);
    }
    _Alignas(16) char own[MPI_STATUS_MAX] = {0};
    status = mpi_status_or(status, own);
    *flag = mpi_gpu_request_progress(known);
    if (known->incoming != NULL) {
        memcpy(status, known->incoming->status, mpi_abi()->status_bytes);
        return *flag ? mpi_gpu_incoming_bring(known->incoming, &known->receive) : MPI_OK;
    }
    if (!*flag) {
        return MPI_OK; // MPI is not asked again: what has come meanwhile may be an RTS
    }
    int error = CALL Request_get_status(mpi_gpu_request_stand_in(known), flag, status);
    if (*flag && !known->brought && error == MPI_OK) {
        known->brought = true;
        error = mpi_gpu_buffer_write(&known->receive.staged, mpi_gpu_received(status));
    }
    return error;
}

// A message that has arrived can no longer be cancelled.
int MPI_Cancel(void *request)
{
    const struct mpi_gpu_request *known = find(mpi_handle_at(request, 0));
    bool has_come = known != NULL && mpi_gpu_request_stand_in(known) != known->handle;
    return has_come ? MPI_OK : CALL Cancel(request);
}

// A probe may have taken the message of a persistent receive.
static int receive_start(struct mpi_gpu_request *known, void *request)
{
    const struct mpi_gpu_receive *receive = &known->receive;
    _Alignas(16) char handle[sizeof(mpi_handle)];
    struct mpi_gpu_probed *probed = mpi_gpu_probed_take(known->from, known->tag, receive->comm);
    int error = MPI_OK;
    known->brought = false; // set by the last message, or by a query while it was not active
    if (probed == NULL) {
        return CALL Start(request);
    }
    if (probed->rts.bytes != 0) {
        known->incoming = mpi_gpu_incoming_make(receive, &probed->rts, probed->status);
        error = known->incoming != NULL ? MPI_OK : mpi_abi()->error_other;
    } else {
        error = mpi_gpu_receive_message(receive, probed->message, handle);
        known->probed = error == MPI_OK ? mpi_handle_at(handle, 0) : known->probed;
    }
    free(probed);
    return error;
}

int MPI_Start(void *request)
{
    struct mpi_gpu_request *known = find(mpi_handle_at(request, 0));
    if (known != NULL && known->receives) {
        return receive_start(known, request);
    }
    int error = known != NULL ? mpi_gpu_buffer_read(&known->receive.staged) : MPI_OK;
    return error != MPI_OK ? mpi_gpu_fail(known->receive.comm, error, "MPI_Start", known->receive.staged.device)
                           : CALL Start(request);
}

int MPI_Startall(int number, void *array)
{
    bool any = false;
    for (int i = 0; i < number; i++) {
        any = any || find(mpi_handle_at(array, i)) != NULL;
    }
    int error = any ? MPI_OK : CALL Startall(number, array);
    for (int i = 0; any && i < number && error == MPI_OK; i++) {
        error = MPI_Start(mpi_handle_slot(array, i));
    }
    return error;
}
