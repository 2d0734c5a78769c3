#include "verbs-shim/mpi-gpu/pipeline.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs-shim/mpi-gpu/requests.h"

// A random number. No program sees it but in the library's own memory.
static const uint64_t magic[3] = {0x9d3f61c7e40b28a5, 0x5be21f8c70d6943a, 0xc84a07b5f19e6d32};

#define CHUNK_TAGS  32768   // MPI_TAG_UB is at least that, less one
#define PATIENCE_NS 1000000 // with a receiver that takes no chunk

static mpi_handle chunks_comm, world_group;
static int self;
static bool opened, threaded; // threaded: several threads call MPI at a time
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct mpi_gpu_outgoing *outgoing_first;

// --- the communicator of the chunks ---------------------------------------------------------------------------------

static void pipeline_open(void)
{
    _Alignas(16) char comm[sizeof(mpi_handle)], group[sizeof(mpi_handle)];
    mpi_handle world = mpi_abi()->world;
    if (mpi_gpu_settings()->direct || mpi_gpu_settings()->chunk_bytes == 0 || CALL Comm_dup(world, comm) != MPI_OK ||
        CALL Comm_group(world, group) != MPI_OK || CALL Comm_rank(world, &self) != MPI_OK) {
        return;
    }
    chunks_comm = mpi_handle_at(comm, 0);
    world_group = mpi_handle_at(group, 0);
    opened = true;
}

int MPI_Init(int *argc, char ***argv)
{
    int error = CALL Init(argc, argv);
    if (error == MPI_OK) {
        pipeline_open();
    }
    return error;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int error = CALL Init_thread(argc, argv, required, provided);
    if (error == MPI_OK) {
        threaded = *provided == MPI_THREADS_AT_A_TIME;
        pipeline_open();
    }
    return error;
}

// When all ranks are here, what was not received never will be.
int MPI_Finalize(void)
{
    if (opened) {
        _Alignas(16) char handle[sizeof(mpi_handle)];
        (void)CALL Barrier(chunks_comm);
        opened = false;
        for (struct mpi_gpu_outgoing *outgoing = outgoing_first; outgoing != NULL; outgoing = outgoing->next) {
            for (int i = 0; i < outgoing->started; i++) {
                if (mpi_handle_at(outgoing->requests, i) != mpi_abi()->request_null) {
                    (void)CALL Request_free(outgoing->requests + (size_t)i * mpi_abi()->handle_bytes);
                }
            }
        }
        mpi_handle_put(handle, 0, world_group);
        (void)CALL Group_free(handle);
        mpi_handle_put(handle, 0, chunks_comm);
        (void)CALL Comm_free(handle);
    }
    return CALL Finalize();
}

bool mpi_gpu_pipeline_is_open(void)
{
    return opened;
}

static int world_rank(int rank, mpi_handle comm)
{
    _Alignas(16) char group[sizeof(mpi_handle)];
    int inter = 1, world = -1;
    if (CALL Comm_test_inter(comm, &inter) != MPI_OK || inter || CALL Comm_group(comm, group) != MPI_OK) {
        return -1;
    }
    if (CALL Group_translate_ranks(mpi_handle_at(group, 0), 1, &rank, world_group, &world) != MPI_OK) {
        world = -1;
    }
    (void)CALL Group_free(group);
    return world; // of another world: MPI_UNDEFINED, which is negative
}

static int chunk_count(const struct mpi_gpu_rts *rts)
{
    return (int)((rts->bytes + rts->chunk_bytes - 1) / rts->chunk_bytes);
}

static int chunk_length(const struct mpi_gpu_rts *rts, int chunk)
{
    uint64_t left = rts->bytes - (uint64_t)chunk * rts->chunk_bytes;
    return (int)(left < rts->chunk_bytes ? left : rts->chunk_bytes);
}

static void *handle_of(char *requests, int chunk)
{
    return requests + (size_t)chunk * mpi_abi()->handle_bytes;
}

static char *handles_make(int count)
{
    char *handles = calloc((size_t)count, mpi_abi()->handle_bytes);
    for (int i = 0; handles != NULL && i < count; i++) {
        mpi_handle_put(handles, i, mpi_abi()->request_null);
    }
    return handles;
}

static struct mpi_gpu_rts rts_make(uint64_t bytes, uint64_t chunk_bytes)
{
    static unsigned tags;
    (void)pthread_mutex_lock(&lock);
    int tag = (int)(tags++ % CHUNK_TAGS);
    (void)pthread_mutex_unlock(&lock);
    struct mpi_gpu_rts rts = {
        .bytes = bytes, .chunk_bytes = chunk_bytes, .sender = self, .chunk_tag = tag, .source = -1, .tag = -1};
    memcpy(rts.magic, magic, sizeof magic);
    return rts;
}

// --- sending --------------------------------------------------------------------------------------------------------

bool mpi_gpu_pipelines(const struct mpi_gpu_buffer *buffer, int to, mpi_handle comm, int *peer)
{
    *peer = -1;
    if (opened && buffer->device != NULL && buffer->bytes > mpi_gpu_settings()->chunk_bytes &&
        mpi_gpu_settings()->chunk_bytes <= INT_MAX && buffer->bytes <= INT_MAX) {
        *peer = world_rank(to, comm);
    }
    return *peer >= 0;
}

struct mpi_gpu_outgoing *mpi_gpu_outgoing_make(struct mpi_gpu_buffer *buffer, int peer)
{
    struct mpi_gpu_outgoing *outgoing = calloc(1, sizeof *outgoing);
    if (outgoing == NULL || mpi_gpu_buffer_stage(buffer) != MPI_OK) {
        free(outgoing);
        return NULL;
    }
    outgoing->rts = rts_make(buffer->bytes, mpi_gpu_settings()->chunk_bytes);
    outgoing->peer = peer;
    outgoing->chunks = chunk_count(&outgoing->rts);
    outgoing->requests = handles_make(outgoing->chunks);
    if (outgoing->requests == NULL) {
        free(outgoing);
        return NULL;
    }
    outgoing->buffer = *buffer;
    *buffer = (struct mpi_gpu_buffer){0};
    return outgoing;
}

// A chunk that did not come from the device is sent without data, for which the receiver does not wait in vain.
static void chunk_send(void *argument, bool good)
{
    struct mpi_gpu_outgoing *outgoing = argument;
    int chunk = outgoing->started++;
    const char *from = (const char *)outgoing->buffer.host + (size_t)chunk * outgoing->rts.chunk_bytes;
    int error = CALL Isend(from, good ? chunk_length(&outgoing->rts, chunk) : 0, mpi_abi()->byte, outgoing->peer,
                           outgoing->rts.chunk_tag, chunks_comm, handle_of(outgoing->requests, chunk));
    outgoing->error = outgoing->error != MPI_OK ? outgoing->error : error;
}

int mpi_gpu_outgoing_send(struct mpi_gpu_outgoing *outgoing)
{
    int error = mpi_gpu_buffer_read_chunks(&outgoing->buffer, outgoing->rts.chunk_bytes, chunk_send, outgoing);
    return outgoing->error != MPI_OK ? outgoing->error : error;
}

static bool is_taken(struct mpi_gpu_outgoing *outgoing)
{
    int taken = 1;
    while (taken && outgoing->taken < outgoing->started) {
        (void)CALL Test(handle_of(outgoing->requests, outgoing->taken), &taken, mpi_abi()->status_ignore);
        outgoing->taken += taken != 0;
    }
    return taken;
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

// Not of requests for which other threads may wait.
static void progress(void)
{
    if (!threaded) {
        mpi_gpu_requests_progress();
    }
}

void mpi_gpu_outgoing_wait(struct mpi_gpu_outgoing *outgoing)
{
    int64_t last = now_ns();
    for (int before = outgoing->taken; !is_taken(outgoing) && now_ns() - last < PATIENCE_NS;) {
        progress();
        last = outgoing->taken != before ? now_ns() : last;
        before = outgoing->taken;
    }
}

static void outgoing_add(struct mpi_gpu_outgoing *outgoing)
{
    (void)pthread_mutex_lock(&lock);
    struct mpi_gpu_outgoing **link = &outgoing_first;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = outgoing;
    (void)pthread_mutex_unlock(&lock);
}

static struct mpi_gpu_outgoing *outgoing_take_all(void)
{
    (void)pthread_mutex_lock(&lock);
    struct mpi_gpu_outgoing *all = outgoing_first;
    outgoing_first = NULL;
    (void)pthread_mutex_unlock(&lock);
    return all;
}

// Also frees those before it that have been taken meanwhile. None is waited for: a receiver may be late.
void mpi_gpu_outgoing_release(struct mpi_gpu_outgoing *outgoing)
{
    outgoing_add(outgoing);
    for (struct mpi_gpu_outgoing *next, *oldest = outgoing_take_all(); oldest != NULL; oldest = next) {
        next = oldest->next;
        oldest->next = NULL;
        if (!is_taken(oldest)) {
            outgoing_add(oldest);
            continue;
        }
        mpi_gpu_buffer_free(&oldest->buffer);
        free(oldest->requests);
        free(oldest);
    }
}

void mpi_gpu_outgoing_abandon(struct mpi_gpu_buffer *staged, mpi_handle request)
{
    struct mpi_gpu_outgoing *outgoing = calloc(1, sizeof *outgoing);
    if (outgoing != NULL && (outgoing->requests = handles_make(1)) != NULL) {
        mpi_handle_put(outgoing->requests, 0, request);
        outgoing->buffer = *staged;
        outgoing->chunks = outgoing->started = 1;
        mpi_gpu_outgoing_release(outgoing);
    } else {
        free(outgoing); // the host memory stays MPI's
    }
    *staged = (struct mpi_gpu_buffer){0};
}

// A message of this process to itself.
static bool self_send(const void *data, int tag)
{
    struct mpi_gpu_outgoing *outgoing = calloc(1, sizeof *outgoing);
    if (outgoing == NULL || (outgoing->requests = handles_make(1)) == NULL) {
        free(outgoing);
        return false;
    }
    memcpy(outgoing->data, data, sizeof outgoing->data);
    outgoing->chunks = 1;
    outgoing->started = CALL Isend(outgoing->data, MPI_GPU_RTS_BYTES, mpi_abi()->byte, self, tag, chunks_comm,
                                   outgoing->requests) == MPI_OK;
    bool sent = outgoing->started != 0;
    mpi_gpu_outgoing_release(outgoing);
    return sent;
}

int mpi_gpu_resend_rts(const struct mpi_gpu_rts *rts, void *message_out)
{
    struct mpi_gpu_rts carrier = rts_make(0, 0); // for its tag
    _Alignas(16) char status[MPI_STATUS_MAX];
    return self_send(rts, carrier.chunk_tag) ? CALL Mprobe(self, carrier.chunk_tag, chunks_comm, message_out, status)
                                             : mpi_abi()->error_other;
}

bool mpi_gpu_rts_of_data(const void *data, int source, int tag, struct mpi_gpu_rts *rts_out)
{
    *rts_out = rts_make(MPI_GPU_RTS_BYTES, MPI_GPU_RTS_BYTES);
    rts_out->source = source;
    rts_out->tag = tag;
    return self_send(data, rts_out->chunk_tag);
}

// --- receiving ------------------------------------------------------------------------------------------------------

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
    return opened && capacity_of(receive) >= MPI_GPU_RTS_BYTES;
}

bool mpi_gpu_is_rts(const struct mpi_gpu_rts *rts)
{
    return memcmp(rts->magic, magic, sizeof magic) == 0 && rts->bytes > 0 && rts->bytes <= INT_MAX &&
           rts->chunk_bytes >= MPI_GPU_RTS_BYTES && rts->chunk_bytes <= INT_MAX;
}

// The first bytes of a message in host memory, in whatever datatype it came.
static bool first_bytes(const struct mpi_gpu_receive *receive, struct mpi_gpu_rts *rts_out)
{
    int size = 0, place = 0;
    if (CALL Type_size(receive->type, &size) != MPI_OK || size <= 0) {
        return false;
    }
    int elements = (MPI_GPU_RTS_BYTES + size - 1) / size;
    char *packed = calloc((size_t)elements, (size_t)size);
    bool good = packed != NULL && CALL Pack(receive->buffer, elements, receive->type, packed, elements * size, &place,
                                            chunks_comm) == MPI_OK;
    if (good) {
        memcpy(rts_out, packed, sizeof *rts_out);
    }
    free(packed);
    return good;
}

bool mpi_gpu_rts_in(const struct mpi_gpu_receive *receive, const void *status, struct mpi_gpu_rts *rts_out)
{
    if (!opened || mpi_gpu_received(status) != MPI_GPU_RTS_BYTES || !mpi_gpu_may_get_rts(receive)) {
        return false;
    }
    if (receive->staged.device != NULL) {
        memcpy(rts_out, receive->staged.host, sizeof *rts_out);
    } else if (!first_bytes(receive, rts_out)) {
        return false;
    }
    return mpi_gpu_is_rts(rts_out);
}

// The program's memory, if the elements lie in it without gaps.
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
    incoming->requests = handles_make(incoming->chunks);
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
    incoming->chunks = chunk_count(rts);
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
        int error = CALL Irecv(incoming->into + (size_t)i * rts->chunk_bytes, chunk_length(rts, i), mpi_abi()->byte,
                               rts->sender, rts->chunk_tag, chunks_comm, handle_of(incoming->requests, i));
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

// Where the message's chunks go one by one: to the device's memory, which they fill without gaps.
static char *device_run(const struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive)
{
    return receive->staged.device != NULL && !incoming->apart ? mpi_gpu_buffer_run(&receive->staged) : NULL;
}

static void chunk_bring(struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive, int chunk)
{
    size_t at = (size_t)chunk * incoming->rts.chunk_bytes, bytes = (size_t)chunk_length(&incoming->rts, chunk);
    char *device = device_run(incoming, receive);
    if (device != NULL && !mpi_gpu_write_begin(device + at, incoming->into + at, bytes)) {
        incoming->error = MPI_BAD_BUFFER;
    }
}

bool mpi_gpu_incoming_chunk(struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive,
                            const void *status)
{
    int chunk = incoming->next++;
    if (mpi_gpu_received(status) != (size_t)chunk_length(&incoming->rts, chunk)) {
        incoming->error = mpi_abi()->error_other; // the sender's device refused
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
    int tag = rts_make(0, 0).chunk_tag; // MPI takes it apart: it may end within an element
    return CALL Sendrecv(incoming->into, (int)incoming->rts.bytes, mpi_abi()->byte, self, tag, receive->buffer,
                         receive->count, receive->type, self, tag, chunks_comm, mpi_abi()->status_ignore);
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
