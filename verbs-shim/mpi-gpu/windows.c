// One-sided calls whose origin is device memory. MPI uses the host memory instead until the end of the epoch: the calls
// that end an epoch release it, and copy fetched data to the device.
//
// The windows themselves belong to MPI: windows in device memory work if MPI moves the data by RDMA.
#include <pthread.h>
#include <stdlib.h>

#include "verbs-shim/mpi-gpu/gpu.h"

struct access {
    struct access *next;
    mpi_handle win;
    int target;
    bool gets;
    struct mpi_gpu_buffer buffer;
};

static struct access *accesses;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int fail(mpi_handle win, int error)
{
    (void)CALL Win_call_errhandler(win, error);
    return error;
}

static bool access_add(mpi_handle win, int target, bool gets, const struct mpi_gpu_buffer *buffer)
{
    struct access *access = malloc(sizeof *access);
    if (access == NULL) {
        return false;
    }
    (void)pthread_mutex_lock(&lock);
    *access = (struct access){accesses, win, target, gets, *buffer};
    accesses = access;
    (void)pthread_mutex_unlock(&lock);
    return true;
}

static struct access *access_take(mpi_handle win, int target)
{
    (void)pthread_mutex_lock(&lock);
    struct access **link = &accesses;
    while (*link != NULL && ((*link)->win != win || (target >= 0 && (*link)->target != target))) {
        link = &(*link)->next;
    }
    struct access *access = *link;
    if (access != NULL) {
        *link = access->next;
    }
    (void)pthread_mutex_unlock(&lock);
    return access;
}

// target: the rank; negative: all ranks.
static int over(mpi_handle win, int target, int error)
{
    struct access *access;
    win = mpi_handle_at(&win, 0); // only the low half of an int is valid
    while (accesses != NULL && (access = access_take(win, target)) != NULL) {
        int copied = access->gets ? mpi_gpu_buffer_write(&access->buffer, access->buffer.bytes) : MPI_OK;
        mpi_gpu_buffer_free(&access->buffer);
        free(access);
        error = error != MPI_OK || copied == MPI_OK ? error : fail(win, copied);
    }
    return error;
}

// MPI_OK and no device: MPI executes the call as it is.
static int stage(struct mpi_gpu_buffer *staged, const void *origin, int count, mpi_handle type, int target,
                 mpi_handle win, bool gets)
{
    *staged = (struct mpi_gpu_buffer){0};
    int error = target == mpi_abi()->proc_null ? MPI_OK : mpi_gpu_buffer_make(origin, count, type, staged);
    error = error == MPI_OK ? mpi_gpu_buffer_stage(staged) : error;
    error = error == MPI_OK && !gets ? mpi_gpu_buffer_read(staged) : error;
    if (error == MPI_OK && staged->device != NULL && !access_add(mpi_handle_at(&win, 0), target, gets, staged)) {
        error = mpi_abi()->error_other;
    }
    if (error != MPI_OK) {
        mpi_gpu_buffer_free(staged);
        return fail(win, error);
    }
    return MPI_OK;
}

int MPI_Put(const void *origin, int count, mpi_handle type, int target, mpi_aint displacement, int target_count,
            mpi_handle target_type, mpi_handle win)
{
    struct mpi_gpu_buffer staged;
    int error = stage(&staged, origin, count, type, target, win, false);
    if (error != MPI_OK || staged.device == NULL) {
        return error != MPI_OK ? error
                               : CALL Put(origin, count, type, target, displacement, target_count, target_type, win);
    }
    return CALL Put(staged.host, (int)staged.bytes, mpi_abi()->byte, target, displacement, target_count, target_type,
                    win);
}

int MPI_Get(void *origin, int count, mpi_handle type, int target, mpi_aint displacement, int target_count,
            mpi_handle target_type, mpi_handle win)
{
    struct mpi_gpu_buffer staged;
    int error = stage(&staged, origin, count, type, target, win, true);
    if (error != MPI_OK || staged.device == NULL) {
        return error != MPI_OK ? error
                               : CALL Get(origin, count, type, target, displacement, target_count, target_type, win);
    }
    return CALL Get(staged.host, (int)staged.bytes, mpi_abi()->byte, target, displacement, target_count, target_type,
                    win);
}

// The operation needs the elements' own type: for a datatype without gaps, the copies are an array of it.
int MPI_Accumulate(const void *origin, int count, mpi_handle type, int target, mpi_aint displacement, int target_count,
                   mpi_handle target_type, mpi_handle op, mpi_handle win)
{
    struct mpi_gpu_buffer staged;
    int error = stage(&staged, origin, count, type, target, win, false);
    if (error != MPI_OK || staged.device == NULL) {
        return error != MPI_OK
                   ? error
                   : CALL Accumulate(origin, count, type, target, displacement, target_count, target_type, op, win);
    }
    if (!mpi_gpu_layout_is_run(&staged.layout, count) ||
        (staged.layout.count > 0 && staged.layout.runs[0].offset != 0)) {
        return fail(win, MPI_BAD_TYPE);
    }
    return CALL Accumulate(staged.host, count, type, target, displacement, target_count, target_type, op, win);
}

// --- ends of epochs -------------------------------------------------------------------------------------------------

int MPI_Win_fence(int assertion, mpi_handle win)
{
    return over(win, -1, CALL Win_fence(assertion, win));
}

#define ENDS_OF_ALL(name)                                                                                              \
    int MPI_##name(mpi_handle win)                                                                                     \
    {                                                                                                                  \
        return over(win, -1, CALL name(win));                                                                          \
    }
ENDS_OF_ALL(Win_complete)
ENDS_OF_ALL(Win_unlock_all)
ENDS_OF_ALL(Win_flush_all)
ENDS_OF_ALL(Win_flush_local_all)

#define ENDS_OF_ONE(name)                                                                                              \
    int MPI_##name(int rank, mpi_handle win)                                                                           \
    {                                                                                                                  \
        return over(win, rank, CALL name(rank, win));                                                                  \
    }
ENDS_OF_ONE(Win_unlock)
ENDS_OF_ONE(Win_flush)
ENDS_OF_ONE(Win_flush_local)
