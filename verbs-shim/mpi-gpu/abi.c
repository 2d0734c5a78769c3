#include "verbs-shim/mpi-gpu/abi.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mpi_abi abi;

static void *call_find(const char *name)
{
    void *call = dlsym(RTLD_DEFAULT, name);
    if (call == NULL) {
        fprintf(stderr, "libtcasim-mpi-gpu: the program's MPI has no %s\n", name);
        abort();
    }
    return call;
}

static void abi_find(void)
{
    const mpi_handle *null = dlsym(RTLD_DEFAULT, "ompi_request_null");
    abi.open_mpi = null != NULL;
    abi.handle_bytes = abi.open_mpi ? sizeof(void *) : sizeof(int);
    abi.status_bytes = abi.open_mpi ? 24 : 20;
    abi.request_null = abi.open_mpi ? (mpi_handle)null : 0x2c000000;
    abi.byte = abi.open_mpi ? (mpi_handle)dlsym(RTLD_DEFAULT, "ompi_mpi_byte") : 0x4c00010d;
    abi.world = abi.open_mpi ? (mpi_handle)dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world") : 0x44000000;
    abi.in_place = abi.open_mpi ? (const void *)1 : (const void *)-1;
    abi.status_ignore = abi.open_mpi ? NULL : (void *)1;
    abi.proc_null = abi.open_mpi ? -2 : -1;
    abi.any_source = abi.open_mpi ? -1 : -2;
    abi.error_truncate = abi.open_mpi ? 15 : 14;
    abi.error_other = abi.open_mpi ? 16 : 15;
    abi.error_in_status = abi.open_mpi ? 18 : 17;
#define MPI_FIND(name, type) abi.calls.name = (__typeof__(abi.calls.name))call_find("PMPI_" #name);
    MPI_CALLS(MPI_FIND)
#undef MPI_FIND
}

const struct mpi_abi *mpi_abi(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, abi_find);
    return &abi;
}

mpi_handle mpi_handle_at(const void *handles, int index)
{
    if (mpi_abi()->open_mpi) {
        return ((const mpi_handle *)handles)[index];
    }
    return (mpi_handle)(unsigned)((const int *)handles)[index];
}

void mpi_handle_put(void *handles, int index, mpi_handle handle)
{
    if (mpi_abi()->open_mpi) {
        ((mpi_handle *)handles)[index] = handle;
    } else {
        ((int *)handles)[index] = (int)handle;
    }
}

void *mpi_handle_slot(void *handles, int index)
{
    return (char *)handles + (size_t)index * mpi_abi()->handle_bytes;
}

bool mpi_status_is_ignored(const void *status)
{
    return status == NULL || status == mpi_abi()->status_ignore;
}

void *mpi_status_or(void *status, void *own)
{
    return mpi_status_is_ignored(status) ? own : status;
}

void *mpi_status_at(void *statuses, int index)
{
    return mpi_status_is_ignored(statuses) ? statuses : (char *)statuses + (size_t)index * mpi_abi()->status_bytes;
}

int *mpi_status_source(void *status)
{
    return (int *)status + (mpi_abi()->open_mpi ? 0 : 2);
}

int *mpi_status_tag(void *status)
{
    return mpi_status_source(status) + 1;
}

int *mpi_status_error(void *status)
{
    return mpi_status_source(status) + 2;
}
