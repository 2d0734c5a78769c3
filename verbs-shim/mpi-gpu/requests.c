// Requests whose data are in host memory in place of a device's: when one is over, they go where they belong.
//
// The program's request is MPI's own, so that all that MPI says of it is true. Data that come are in the device when
// the call returns that says that the request is over.
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/mpi-gpu/gpu.h"

struct request {
    struct request *next;
    mpi_handle handle;
    struct mpi_gpu_buffer buffer;
    bool receives, persistent;
};

static struct request *requests;
static unsigned count; // of them, so that programs without device memory pay nothing
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

bool mpi_gpu_request_add(mpi_handle handle, const struct mpi_gpu_buffer *buffer, bool receives, bool persistent)
{
    struct request *request = malloc(sizeof *request);
    if (request == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&lock);
    *request = (struct request){requests, handle, *buffer, receives, persistent};
    requests = request;
    count++;
    (void)pthread_mutex_unlock(&lock);
    return true;
}

static struct request **link_of(mpi_handle handle)
{
    struct request **link = &requests;
    while (*link != NULL && (*link)->handle != handle) {
        link = &(*link)->next;
    }
    return link;
}

static struct request *find(mpi_handle handle)
{
    (void)pthread_mutex_lock(&lock);
    struct request *request = count != 0 ? *link_of(handle) : NULL;
    (void)pthread_mutex_unlock(&lock);
    return request;
}

static void drop(mpi_handle handle)
{
    (void)pthread_mutex_lock(&lock);
    struct request **link = link_of(handle);
    struct request *request = *link;
    if (request != NULL) {
        *link = request->next;
        count--;
    }
    (void)pthread_mutex_unlock(&lock);
    if (request != NULL) {
        mpi_gpu_buffer_free(&request->buffer);
        free(request);
    }
}

size_t mpi_gpu_received(const void *status, const struct mpi_gpu_buffer *buffer)
{
    int bytes = 0, cancelled = 0;
    if (CALL Test_cancelled(status, &cancelled) != MPI_OK || cancelled ||
        CALL Get_count(status, mpi_abi()->byte, &bytes) != MPI_OK || bytes < 0) {
        return 0;
    }
    return (size_t)bytes < buffer->bytes ? (size_t)bytes : buffer->bytes;
}

// The request of that handle is over with that status. Not the request of a device's: nothing.
static int over(mpi_handle handle, const void *status)
{
    struct request *request = find(handle);
    int error = MPI_OK;
    if (request == NULL) {
        return error;
    }
    if (request->receives) {
        error = mpi_gpu_buffer_write(&request->buffer, mpi_gpu_received(status, &request->buffer));
    }
    if (!request->persistent) {
        drop(handle);
    }
    return error;
}

// --- calls for one request ------------------------------------------------------------------------------------------

static void *status_or(void *status, void *own)
{
    return mpi_status_is_ignored(status) ? own : status;
}

int MPI_Wait(void *request, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX];
    mpi_handle handle = mpi_handle_at(request, 0);
    if (find(handle) == NULL) {
        return CALL Wait(request, status);
    }
    status = status_or(status, own);
    int error = CALL Wait(request, status);
    int copied = over(handle, status);
    return error != MPI_OK ? error : copied;
}

int MPI_Test(void *request, int *flag, void *status)
{
    _Alignas(16) char own[MPI_STATUS_MAX];
    mpi_handle handle = mpi_handle_at(request, 0);
    if (find(handle) == NULL) {
        return CALL Test(request, flag, status);
    }
    status = status_or(status, own);
    int error = CALL Test(request, flag, status);
    int copied = *flag ? over(handle, status) : MPI_OK;
    return error != MPI_OK ? error : copied;
}

int MPI_Request_free(void *request)
{
    mpi_handle handle = mpi_handle_at(request, 0);
    struct request *known = find(handle);
    // Of one that is under way the host memory is MPI's until nobody knows when.
    if (known != NULL && known->persistent) {
        drop(handle);
    }
    return CALL Request_free(request);
}

int MPI_Start(void *request)
{
    struct request *known = find(mpi_handle_at(request, 0));
    int error = known != NULL && !known->receives ? mpi_gpu_buffer_read(&known->buffer) : MPI_OK;
    return error != MPI_OK ? error : CALL Start(request);
}

int MPI_Startall(int number, void *array)
{
    for (int i = 0; i < number; i++) {
        struct request *known = find(mpi_handle_at(array, i));
        int error = known != NULL && !known->receives ? mpi_gpu_buffer_read(&known->buffer) : MPI_OK;
        if (error != MPI_OK) {
            return error;
        }
    }
    return CALL Startall(number, array);
}

// --- calls for many -------------------------------------------------------------------------------------------------

// What a call for many requests needs beside them: their handles before it, and places for statuses.
struct many {
    mpi_handle *handles;
    char *statuses;
};

// False: none of them is of a device's memory, or there is no memory for more.
static bool many_begin(struct many *many, int number, const void *array)
{
    bool known = false;
    *many = (struct many){0};
    for (int i = 0; i < number && count != 0 && !known; i++) {
        known = find(mpi_handle_at(array, i)) != NULL;
    }
    if (!known) {
        return false;
    }
    many->handles = calloc((size_t)number, sizeof *many->handles);
    many->statuses = calloc((size_t)number, MPI_STATUS_MAX);
    if (many->handles == NULL || many->statuses == NULL) {
        free(many->handles);
        free(many->statuses);
        return false;
    }
    for (int i = 0; i < number; i++) {
        many->handles[i] = mpi_handle_at(array, i);
    }
    return true;
}

static void many_end(struct many *many)
{
    free(many->handles);
    free(many->statuses);
}

// Each as it comes, so that the next message moves while the data of the last go to the device.
int MPI_Waitall(int number, void *array, void *statuses)
{
    struct many many;
    if (!many_begin(&many, number, array)) {
        return CALL Waitall(number, array, statuses);
    }
    void *kept = mpi_status_is_ignored(statuses) ? many.statuses : statuses;
    int error = MPI_OK, index = 0;
    for (int i = 0; i < number; i++) { // those that are not active have an empty status
        if (many.handles[i] == mpi_abi()->request_null) {
            int flag;
            error = CALL Test((char *)array + (size_t)i * mpi_abi()->handle_bytes, &flag, mpi_status_at(kept, i));
        }
    }
    while (index != MPI_UNDEFINED_INT && error == MPI_OK) {
        _Alignas(16) char status[MPI_STATUS_MAX];
        error = CALL Waitany(number, array, &index, status);
        if (index != MPI_UNDEFINED_INT) {
            int copied = over(many.handles[index], status);
            memcpy(mpi_status_at(kept, index), status, mpi_abi()->status_bytes);
            error = error != MPI_OK ? error : copied;
        }
    }
    many_end(&many);
    return error;
}

int MPI_Testall(int number, void *array, int *flag, void *statuses)
{
    struct many many;
    if (!many_begin(&many, number, array)) {
        return CALL Testall(number, array, flag, statuses);
    }
    void *kept = mpi_status_is_ignored(statuses) ? many.statuses : statuses;
    int error = CALL Testall(number, array, flag, kept);
    for (int i = 0; i < number && *flag; i++) {
        int copied = over(many.handles[i], mpi_status_at(kept, i));
        error = error != MPI_OK ? error : copied;
    }
    many_end(&many);
    return error;
}

static int one_of(struct many *many, int error, int index, const void *status)
{
    int copied = index != MPI_UNDEFINED_INT ? over(many->handles[index], status) : MPI_OK;
    many_end(many);
    return error != MPI_OK ? error : copied;
}

int MPI_Waitany(int number, void *array, int *index, void *status)
{
    struct many many;
    if (!many_begin(&many, number, array)) {
        return CALL Waitany(number, array, index, status);
    }
    status = status_or(status, many.statuses);
    int error = CALL Waitany(number, array, index, status);
    return one_of(&many, error, *index, status);
}

int MPI_Testany(int number, void *array, int *index, int *flag, void *status)
{
    struct many many;
    if (!many_begin(&many, number, array)) {
        return CALL Testany(number, array, index, flag, status);
    }
    status = status_or(status, many.statuses);
    int error = CALL Testany(number, array, index, flag, status);
    return one_of(&many, error, *flag ? *index : MPI_UNDEFINED_INT, status);
}

static int some_of(struct many *many, int error, int done, const int *indices, void *statuses)
{
    for (int i = 0; i < done; i++) { // MPI_UNDEFINED is negative
        int copied = over(many->handles[indices[i]], mpi_status_at(statuses, i));
        error = error != MPI_OK ? error : copied;
    }
    many_end(many);
    return error;
}

int MPI_Waitsome(int number, void *array, int *done, int *indices, void *statuses)
{
    struct many many;
    if (!many_begin(&many, number, array)) {
        return CALL Waitsome(number, array, done, indices, statuses);
    }
    void *kept = mpi_status_is_ignored(statuses) ? many.statuses : statuses;
    int error = CALL Waitsome(number, array, done, indices, kept);
    return some_of(&many, error, *done, indices, kept);
}

int MPI_Testsome(int number, void *array, int *done, int *indices, void *statuses)
{
    struct many many;
    if (!many_begin(&many, number, array)) {
        return CALL Testsome(number, array, done, indices, statuses);
    }
    void *kept = mpi_status_is_ignored(statuses) ? many.statuses : statuses;
    int error = CALL Testsome(number, array, done, indices, kept);
    return some_of(&many, error, *done, indices, kept);
}
