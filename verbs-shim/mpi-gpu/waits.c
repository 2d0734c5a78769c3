// MPI's calls that wait for requests or test them.
#include <stdlib.h>
#include <string.h>

#include "verbs-shim/mpi-gpu/requests.h"

// The requests that MPI waits for instead of the program's.
struct many {
    int number;
    char *array;                    // the program's requests
    char *handles;                  // the stand-ins
    struct mpi_gpu_request **known; // NULL: not tracked
    char *statuses;
    struct mpi_gpu_outgoing *sent; // pipelined sends that have ended
    bool waits;
};

static void many_free(struct many *many)
{
    free(many->handles);
    free((void *)many->known);
    free(many->statuses);
}

// False: the library tracks none of them, or there is no memory.
static bool many_begin(struct many *many, int number, void *array, bool waits)
{
    bool any = false;
    *many = (struct many){.number = number, .array = array, .waits = waits};
    for (int i = 0; i < number && !any; i++) {
        any = mpi_gpu_request_is_known(mpi_handle_at(array, i));
    }
    if (!any) {
        return false;
    }
    many->handles = calloc((size_t)number, mpi_abi()->handle_bytes);
    many->known = calloc((size_t)number, sizeof(struct mpi_gpu_request *));
    many->statuses = calloc((size_t)number, MPI_STATUS_MAX);
    if (many->handles == NULL || many->known == NULL || many->statuses == NULL) {
        many_free(many);
        return false;
    }
    for (int i = 0; i < number; i++) {
        many->known[i] = mpi_gpu_request_claim(mpi_handle_at(array, i));
        mpi_handle_put(many->handles, i,
                       many->known[i] != NULL ? mpi_gpu_request_stand_in(many->known[i]) : mpi_handle_at(array, i));
    }
    return true;
}

// Gives back requests that have not ended, and waits until the chunks of sent messages are taken.
static int many_end(struct many *many, int error)
{
    for (int i = 0; i < many->number; i++) {
        struct mpi_gpu_request *known = many->known[i];
        if (known != NULL && mpi_handle_at(many->handles, i) == mpi_abi()->request_null) {
            mpi_handle_put(mpi_handle_slot(many->array, i), 0, mpi_abi()->request_null); // failed together with another
            mpi_gpu_request_forget(known);
        } else if (known != NULL) {
            mpi_gpu_request_give_back(known);
        }
    }
    while (many->sent != NULL) {
        struct mpi_gpu_outgoing *sent = many->sent;
        many->sent = sent->next;
        sent->next = NULL;
        if (many->waits) {
            mpi_gpu_outgoing_wait(sent);
        }
        mpi_gpu_outgoing_release(sent);
    }
    many_free(many);
    return error;
}

// Called when a stand-in has ended. true: the program's request has ended.
static bool ended(struct many *many, int index, void *status, int *error)
{
    struct mpi_gpu_request *known = many->known[index];
    struct mpi_gpu_outgoing *sent;
    void *slot = mpi_handle_slot(many->array, index);
    int own;
    if (known == NULL) {
        mpi_handle_put(slot, 0, mpi_handle_at(many->handles, index));
        return true;
    }
    bool over = mpi_gpu_request_ended(known, slot, status, &own, &sent);
    *error = *error != MPI_OK ? *error : own;
    mpi_handle_put(many->handles, index, over ? mpi_handle_at(slot, 0) : mpi_gpu_request_stand_in(known));
    if (over && mpi_handle_at(slot, 0) == mpi_abi()->request_null) {
        many->known[index] = NULL; // a persistent request stays
    }
    if (sent != NULL) {
        sent->next = many->sent;
        many->sent = sent;
    }
    return over;
}

// --- one, or any ----------------------------------------------------------------------------------------------------

int MPI_Wait(void *request, void *status)
{
    struct many many;
    if (!many_begin(&many, 1, request, true)) {
        return CALL Wait(request, status);
    }
    int error;
    status = mpi_status_or(status, many.statuses);
    do {
        error = CALL Wait(many.handles, status);
    } while (!ended(&many, 0, status, &error));
    return many_end(&many, error);
}

int MPI_Test(void *request, int *flag, void *status)
{
    struct many many;
    if (!many_begin(&many, 1, request, false)) {
        return CALL Test(request, flag, status);
    }
    int error;
    status = mpi_status_or(status, many.statuses);
    do {
        error = CALL Test(many.handles, flag, status);
    } while (*flag && !ended(&many, 0, status, &error));
    return many_end(&many, error);
}

int MPI_Waitany(int number, void *array, int *index, void *status)
{
    struct many many;
    if (!many_begin(&many, number, array, true)) {
        return CALL Waitany(number, array, index, status);
    }
    int error;
    status = mpi_status_or(status, many.statuses);
    do {
        error = CALL Waitany(number, many.handles, index, status);
    } while (*index != MPI_UNDEFINED_INT && !ended(&many, *index, status, &error));
    return many_end(&many, error);
}

int MPI_Testany(int number, void *array, int *index, int *flag, void *status)
{
    struct many many;
    if (!many_begin(&many, number, array, false)) {
        return CALL Testany(number, array, index, flag, status);
    }
    int error;
    status = mpi_status_or(status, many.statuses);
    do {
        error = CALL Testany(number, many.handles, index, flag, status);
    } while (*flag && *index != MPI_UNDEFINED_INT && !ended(&many, *index, status, &error));
    return many_end(&many, error);
}

// --- some -----------------------------------------------------------------------------------------------------------

// Keeps those that MPI reports as ended and whose requests have no further stand-in.
static int some_of(struct many *many, int done, int *indices, void *statuses, int *error)
{
    int over = 0;
    for (int i = 0; i < done; i++) {
        void *status = mpi_status_at(statuses, i);
        if (ended(many, indices[i], status, error)) {
            indices[over] = indices[i];
            memmove(mpi_status_at(statuses, over), status, mpi_abi()->status_bytes);
            over++;
        }
    }
    return done > 0 ? over : done; // MPI_UNDEFINED is negative
}

int MPI_Waitsome(int number, void *array, int *done, int *indices, void *statuses)
{
    struct many many;
    if (!many_begin(&many, number, array, true)) {
        return CALL Waitsome(number, array, done, indices, statuses);
    }
    int error;
    void *kept = mpi_status_or(statuses, many.statuses);
    do {
        error = CALL Waitsome(number, many.handles, done, indices, kept);
        *done = some_of(&many, *done, indices, kept, &error);
    } while (*done == 0 && error == MPI_OK);
    return many_end(&many, error);
}

int MPI_Testsome(int number, void *array, int *done, int *indices, void *statuses)
{
    struct many many;
    if (!many_begin(&many, number, array, false)) {
        return CALL Testsome(number, array, done, indices, statuses);
    }
    void *kept = mpi_status_or(statuses, many.statuses);
    int error = CALL Testsome(number, many.handles, done, indices, kept);
    *done = some_of(&many, *done, indices, kept, &error);
    return many_end(&many, error);
}

// --- all ------------------------------------------------------------------------------------------------------------

// Handles each when it ends, so that the next message moves while the previous data goes to the device.
int MPI_Waitall(int number, void *array, void *statuses)
{
    _Alignas(16) char status[MPI_STATUS_MAX] = {0}, null[sizeof(mpi_handle)];
    struct many many;
    if (!many_begin(&many, number, array, true)) {
        return CALL Waitall(number, array, statuses);
    }
    void *kept = mpi_status_or(statuses, many.statuses);
    int error = MPI_OK, index = 0;
    mpi_handle_put(null, 0, mpi_abi()->request_null);
    (void)CALL Wait(null, status); // the status of inactive requests
    for (int i = 0; i < number; i++) {
        memcpy(mpi_status_at(kept, i), status, mpi_abi()->status_bytes);
    }
    while (index != MPI_UNDEFINED_INT) {
        index = MPI_UNDEFINED_INT;
        int own = CALL Waitany(number, many.handles, &index, status);
        if (index != MPI_UNDEFINED_INT && ended(&many, index, status, &own)) {
            *mpi_status_error(status) = own;
            memcpy(mpi_status_at(kept, index), status, mpi_abi()->status_bytes);
        }
        error = own != MPI_OK ? mpi_abi()->error_in_status : error;
    }
    return many_end(&many, error);
}

// MPI frees all or none, so all must be checked for an RTS before.
static bool all_are_over(const struct many *many)
{
    bool all = true;
    for (int i = 0; i < many->number; i++) {
        struct mpi_gpu_request *known = many->known[i];
        if (known != NULL && mpi_gpu_request_receives(known)) {
            all = mpi_gpu_request_progress(known) && all;
            mpi_handle_put(many->handles, i, mpi_gpu_request_stand_in(known));
        }
    }
    return all;
}

int MPI_Testall(int number, void *array, int *flag, void *statuses)
{
    struct many many;
    if (!many_begin(&many, number, array, false)) {
        return CALL Testall(number, array, flag, statuses);
    }
    void *kept = mpi_status_or(statuses, many.statuses);
    int error = MPI_OK;
    *flag = all_are_over(&many);
    if (*flag) {
        error = CALL Testall(number, many.handles, flag, kept);
    }
    for (int i = 0; i < number && *flag; i++) {
        (void)ended(&many, i, mpi_status_at(kept, i), &error);
    }
    return many_end(&many, error);
}
