#include "verbs-shim/mpi-gpu/chunks.h"

#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verbs-shim/mpi-gpu/requests.h"

// A random number. A program can see it only in the library's own memory.
static const uint64_t magic[3] = {0x9d3f61c7e40b28a5, 0x5be21f8c70d6943a, 0xc84a07b5f19e6d32};

#define CHUNK_TAGS          32768   // MPI_TAG_UB is at least this number minus one
#define RECEIVER_TIMEOUT_NS 1000000 // for a receiver that takes no chunk

struct mpi_gpu_chunks mpi_gpu_chunks;

static mpi_handle world_group;
static bool threaded; // several threads call MPI concurrently
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct mpi_gpu_outgoing *outgoing_first;

// --- the communicator of the chunks ---------------------------------------------------------------------------------

static void pipeline_open(void)
{
    _Alignas(16) char comm[sizeof(mpi_handle)], group[sizeof(mpi_handle)];
    mpi_handle world = mpi_abi()->world;
    if (mpi_gpu_settings()->direct || mpi_gpu_settings()->chunk_bytes == 0 || CALL Comm_dup(world, comm) != MPI_OK ||
        CALL Comm_group(world, group) != MPI_OK || CALL Comm_rank(world, &mpi_gpu_chunks.self) != MPI_OK) {
        return;
    }
    mpi_gpu_chunks.comm = mpi_handle_at(comm, 0);
    world_group = mpi_handle_at(group, 0);
    mpi_gpu_chunks.open = true;
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

// When all ranks are here, messages that were not received never will be.
int MPI_Finalize(void)
{
    if (mpi_gpu_chunks.open) {
        _Alignas(16) char handle[sizeof(mpi_handle)];
        (void)CALL Barrier(mpi_gpu_chunks.comm);
        mpi_gpu_chunks.open = false;
        for (struct mpi_gpu_outgoing *outgoing = outgoing_first; outgoing != NULL; outgoing = outgoing->next) {
            for (int i = 0; i < outgoing->started; i++) {
                if (mpi_handle_at(outgoing->requests, i) != mpi_abi()->request_null) {
                    (void)CALL Request_free(mpi_handle_slot(outgoing->requests, i));
                }
            }
        }
        mpi_handle_put(handle, 0, world_group);
        (void)CALL Group_free(handle);
        mpi_handle_put(handle, 0, mpi_gpu_chunks.comm);
        (void)CALL Comm_free(handle);
    }
    return CALL Finalize();
}

bool mpi_gpu_pipeline_is_open(void)
{
    return mpi_gpu_chunks.open;
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
    return world; // not in MPI_COMM_WORLD: MPI_UNDEFINED, which is negative
}

int mpi_gpu_chunk_count(const struct mpi_gpu_rts *rts)
{
    return (int)((rts->bytes + rts->chunk_bytes - 1) / rts->chunk_bytes);
}

int mpi_gpu_chunk_length(const struct mpi_gpu_rts *rts, int chunk)
{
    uint64_t left = rts->bytes - (uint64_t)chunk * rts->chunk_bytes;
    return (int)(left < rts->chunk_bytes ? left : rts->chunk_bytes);
}

char *mpi_gpu_handles_make(int count)
{
    char *handles = calloc((size_t)count, mpi_abi()->handle_bytes);
    for (int i = 0; handles != NULL && i < count; i++) {
        mpi_handle_put(handles, i, mpi_abi()->request_null);
    }
    return handles;
}

struct mpi_gpu_rts mpi_gpu_rts_make(uint64_t bytes, uint64_t chunk_bytes)
{
    static unsigned tags;
    (void)pthread_mutex_lock(&lock);
    int tag = (int)(tags++ % CHUNK_TAGS);
    (void)pthread_mutex_unlock(&lock);
    struct mpi_gpu_rts rts = {.bytes = bytes,
                              .chunk_bytes = chunk_bytes,
                              .sender = mpi_gpu_chunks.self,
                              .chunk_tag = tag,
                              .source = -1,
                              .tag = -1};
    memcpy(rts.magic, magic, sizeof magic);
    return rts;
}

bool mpi_gpu_is_rts(const struct mpi_gpu_rts *rts)
{
    return memcmp(rts->magic, magic, sizeof magic) == 0 && rts->bytes > 0 && rts->bytes <= INT_MAX &&
           rts->chunk_bytes >= MPI_GPU_RTS_BYTES && rts->chunk_bytes <= INT_MAX;
}

// --- sending --------------------------------------------------------------------------------------------------------

bool mpi_gpu_pipelines(const struct mpi_gpu_buffer *buffer, int to, mpi_handle comm, int *peer)
{
    *peer = -1;
    if (mpi_gpu_chunks.open && buffer->device != NULL && buffer->bytes > mpi_gpu_settings()->chunk_bytes &&
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
    outgoing->rts = mpi_gpu_rts_make(buffer->bytes, mpi_gpu_settings()->chunk_bytes);
    outgoing->peer = peer;
    outgoing->chunks = mpi_gpu_chunk_count(&outgoing->rts);
    outgoing->requests = mpi_gpu_handles_make(outgoing->chunks);
    if (outgoing->requests == NULL) {
        free(outgoing);
        return NULL;
    }
    outgoing->buffer = *buffer;
    *buffer = (struct mpi_gpu_buffer){0};
    return outgoing;
}

// A chunk whose copy failed is sent without data, so that the receiver's wait ends.
static void chunk_send(void *argument, bool good)
{
    struct mpi_gpu_outgoing *outgoing = argument;
    int chunk = outgoing->started++;
    const char *from = (const char *)outgoing->buffer.host + (size_t)chunk * outgoing->rts.chunk_bytes;
    int error =
        CALL Isend(from, good ? mpi_gpu_chunk_length(&outgoing->rts, chunk) : 0, mpi_abi()->byte, outgoing->peer,
                   outgoing->rts.chunk_tag, mpi_gpu_chunks.comm, mpi_handle_slot(outgoing->requests, chunk));
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
        (void)CALL Test(mpi_handle_slot(outgoing->requests, outgoing->taken), &taken, mpi_abi()->status_ignore);
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

// Not for requests for which other threads may wait.
static void progress(void)
{
    if (!threaded) {
        mpi_gpu_requests_progress();
    }
}

void mpi_gpu_outgoing_wait(struct mpi_gpu_outgoing *outgoing)
{
    int64_t last = now_ns();
    for (int before = outgoing->taken; !is_taken(outgoing) && now_ns() - last < RECEIVER_TIMEOUT_NS;) {
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

// Also frees earlier messages whose chunks were taken. It does not wait, as a receiver may be late.
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

static struct mpi_gpu_outgoing *outgoing_of_one(void)
{
    struct mpi_gpu_outgoing *outgoing = calloc(1, sizeof *outgoing);
    if (outgoing == NULL || (outgoing->requests = mpi_gpu_handles_make(1)) == NULL) {
        free(outgoing);
        return NULL;
    }
    outgoing->chunks = outgoing->started = 1;
    return outgoing;
}

void mpi_gpu_outgoing_abandon(struct mpi_gpu_buffer *staged, mpi_handle request)
{
    struct mpi_gpu_outgoing *outgoing = outgoing_of_one();
    if (outgoing != NULL) { // otherwise the host memory stays with MPI
        mpi_handle_put(outgoing->requests, 0, request);
        outgoing->buffer = *staged;
        mpi_gpu_outgoing_release(outgoing);
    }
    *staged = (struct mpi_gpu_buffer){0};
}

// Sends a message of this process to itself.
static bool self_send(const void *data, int tag)
{
    struct mpi_gpu_outgoing *outgoing = outgoing_of_one();
    if (outgoing == NULL) {
        return false;
    }
    memcpy(outgoing->data, data, sizeof outgoing->data);
    bool sent = CALL Isend(outgoing->data, MPI_GPU_RTS_BYTES, mpi_abi()->byte, mpi_gpu_chunks.self, tag,
                           mpi_gpu_chunks.comm, outgoing->requests) == MPI_OK;
    mpi_gpu_outgoing_release(outgoing); // if it was not sent, its request is null
    return sent;
}

int mpi_gpu_resend_rts(const struct mpi_gpu_rts *rts, void *message_out)
{
    struct mpi_gpu_rts carrier = mpi_gpu_rts_make(0, 0); // only its tag is used
    _Alignas(16) char status[MPI_STATUS_MAX];
    return self_send(rts, carrier.chunk_tag)
               ? CALL Mprobe(mpi_gpu_chunks.self, carrier.chunk_tag, mpi_gpu_chunks.comm, message_out, status)
               : mpi_abi()->error_other;
}

bool mpi_gpu_rts_of_data(const void *data, int source, int tag, struct mpi_gpu_rts *rts_out)
{
    *rts_out = mpi_gpu_rts_make(MPI_GPU_RTS_BYTES, MPI_GPU_RTS_BYTES);
    rts_out->source = source;
    rts_out->tag = tag;
    return self_send(data, rts_out->chunk_tag);
}
