// Probes: a program that asks for the length of a message must get the message's length, not the RTS's.
//
// A message with the length of an RTS is received from MPI to check it, together with all earlier messages of the same
// rank, so that later calls of the program still find the first message that matches.
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/mpi-gpu/pipeline.h"

static struct mpi_gpu_probed *probed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool matches(struct mpi_gpu_probed *entry, int from, int tag, mpi_handle comm)
{
    return entry->comm == comm && (from == mpi_abi()->any_source || from == *mpi_status_source(entry->status)) &&
           (tag == MPI_ANY_TAG_INT || tag == *mpi_status_tag(entry->status));
}

static struct mpi_gpu_probed **link_of(int from, int tag, mpi_handle comm)
{
    struct mpi_gpu_probed **link = &probed;
    comm = mpi_handle_at(&comm, 0); // only the low half of an int is valid
    while (*link != NULL && !matches(*link, from, tag, comm)) {
        link = &(*link)->next;
    }
    return link;
}

struct mpi_gpu_probed *mpi_gpu_probed_take(int from, int tag, mpi_handle comm)
{
    if (probed == NULL) {
        return NULL;
    }
    (void)pthread_mutex_lock(&lock);
    struct mpi_gpu_probed **link = link_of(from, tag, comm), *entry = *link;
    if (entry != NULL) {
        *link = entry->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return entry;
}

static bool taken_find(int from, int tag, mpi_handle comm, void *status_out)
{
    if (probed == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&lock);
    const struct mpi_gpu_probed *entry = *link_of(from, tag, comm);
    if (entry != NULL && !mpi_status_is_ignored(status_out)) {
        memcpy(status_out, entry->status, mpi_abi()->status_bytes);
    }
    (void)pthread_mutex_unlock(&lock);
    return entry != NULL;
}

// Receives a message with the length of an RTS: it is an RTS, or becomes one that this process sends to itself.
static int open_message(struct mpi_gpu_probed *entry)
{
    int error = CALL Mrecv(&entry->rts, sizeof entry->rts, mpi_abi()->byte, entry->message, entry->status);
    if (error != MPI_OK) {
        return error;
    }
    struct mpi_gpu_rts data = entry->rts;
    int source = *mpi_status_source(entry->status), tag = *mpi_status_tag(entry->status);
    if (!mpi_gpu_is_rts(&data) && !mpi_gpu_rts_of_data(&data, source, tag, &entry->rts)) {
        return mpi_abi()->error_other;
    }
    entry->rts.source = source;
    entry->rts.tag = tag;
    return CALL Status_set_elements(entry->status, mpi_abi()->byte, (int)entry->rts.bytes);
}

// MPICH does not set in a probe's status whether a message was cancelled.
static bool has_rts_length(const void *status)
{
    int bytes = 0;
    return mpi_gpu_pipeline_is_open() && CALL Get_count(status, mpi_abi()->byte, &bytes) == MPI_OK &&
           bytes == MPI_GPU_RTS_BYTES;
}

// Appends the first message of a rank to the list of taken messages.
static int take_next(int from, mpi_handle comm, int *tag_out)
{
    struct mpi_gpu_probed *entry = calloc(1, sizeof *entry), **link = &probed;
    int error = entry != NULL ? CALL Mprobe(from, MPI_ANY_TAG_INT, comm, entry->message, entry->status)
                              : mpi_abi()->error_other;
    if (error == MPI_OK && has_rts_length(entry->status)) {
        error = open_message(entry);
    }
    if (error != MPI_OK) {
        free(entry);
        return error;
    }
    *tag_out = *mpi_status_tag(entry->status);
    entry->comm = mpi_handle_at(&comm, 0);
    (void)pthread_mutex_lock(&lock);
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = entry;
    (void)pthread_mutex_unlock(&lock);
    return MPI_OK;
}

// Handles a message that MPI's probe has found.
static int found(mpi_handle comm, void *status)
{
    int source = *mpi_status_source(status), tag = *mpi_status_tag(status), taken = -1, error = MPI_OK;
    if (!has_rts_length(status)) {
        return MPI_OK;
    }
    while (error == MPI_OK && taken != tag) {
        error = take_next(source, comm, &taken);
    }
    return error == MPI_OK && !taken_find(source, tag, comm, status) ? mpi_abi()->error_other : error;
}

int MPI_Probe(int from, int tag, mpi_handle comm, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX];
    if (taken_find(from, tag, comm, status)) {
        return MPI_OK;
    }
    status = mpi_status_or(status, own);
    int error = CALL Probe(from, tag, comm, status);
    return error == MPI_OK ? found(comm, status) : error;
}

int MPI_Iprobe(int from, int tag, mpi_handle comm, int *flag, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX];
    *flag = 1;
    if (taken_find(from, tag, comm, status)) {
        return MPI_OK;
    }
    status = mpi_status_or(status, own);
    int error = CALL Iprobe(from, tag, comm, flag, status);
    return error == MPI_OK && *flag ? found(comm, status) : error;
}

// --- matched probes -------------------------------------------------------------------------------------------------

// The program gets a message of MPI: for an RTS, a message that this process sends to itself.
static int hand_over(struct mpi_gpu_probed *entry, void *message, void *status)
{
    int error = MPI_OK;
    if (entry->rts.bytes != 0) {
        error = mpi_gpu_resend_rts(&entry->rts, message);
    } else {
        memcpy(message, entry->message, mpi_abi()->handle_bytes);
    }
    if (!mpi_status_is_ignored(status)) {
        memcpy(status, entry->status, mpi_abi()->status_bytes);
    }
    free(entry);
    return error;
}

static int matched(void *message, void *status)
{
    struct mpi_gpu_probed *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        return mpi_abi()->error_other;
    }
    memcpy(entry->message, message, mpi_abi()->handle_bytes);
    memcpy(entry->status, status, mpi_abi()->status_bytes);
    int error = has_rts_length(status) ? open_message(entry) : MPI_OK;
    if (error != MPI_OK) {
        free(entry);
        return error;
    }
    return hand_over(entry, message, status);
}

int MPI_Mprobe(int from, int tag, mpi_handle comm, void *message, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX];
    struct mpi_gpu_probed *entry = mpi_gpu_probed_take(from, tag, comm);
    status = mpi_status_or(status, own);
    if (entry != NULL) {
        return hand_over(entry, message, status);
    }
    int error = CALL Mprobe(from, tag, comm, message, status);
    return error == MPI_OK ? matched(message, status) : error;
}

int MPI_Improbe(int from, int tag, mpi_handle comm, int *flag, void *message, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX];
    struct mpi_gpu_probed *entry = mpi_gpu_probed_take(from, tag, comm);
    status = mpi_status_or(status, own);
    if (entry != NULL) {
        *flag = 1;
        return hand_over(entry, message, status);
    }
    int error = CALL Improbe(from, tag, comm, flag, message, status);
    return error == MPI_OK && *flag ? matched(message, status) : error;
}
