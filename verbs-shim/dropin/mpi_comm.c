// libtcacomm.so: the ranks of tcaCreateHandleList are those of MPI_COMM_WORLD, as on HA-PACS/TCA.
//
// The program has its own MPI, of any kind; none is linked here. The two kinds of handles are facts of the MPIs' binary
// interfaces: addresses of objects (Open MPI), numbers (MPICH and its relatives).
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "verbs-shim/libtca/internal.h"

#define MPICH_COMM_WORLD ((uintptr_t)0x44000000)
#define MPICH_BYTE       ((uintptr_t)0x4c00010d)
#define TAG(givers)      (0x7ca0 + (givers)) // tag of a list's messages, among those of the program

static uintptr_t constant(const char *open_mpi, uintptr_t mpich)
{
    void *object = dlsym(RTLD_DEFAULT, open_mpi);
    return object != NULL ? (uintptr_t)object : mpich;
}

static int allgather(void *ctx, const void *mine, void *all, size_t bytes)
{
    int (*gather)(const void *, int, uintptr_t, void *, int, uintptr_t, uintptr_t) =
        (__typeof__(gather))dlsym(RTLD_DEFAULT, "MPI_Allgather");
    uintptr_t byte = constant("ompi_mpi_byte", MPICH_BYTE);
    uintptr_t world = constant("ompi_mpi_comm_world", MPICH_COMM_WORLD);
    (void)ctx;
    if (gather == NULL || bytes > INT_MAX) {
        return -ENOSYS;
    }
    return gather(mine, (int)bytes, byte, all, (int)bytes, byte, world) == 0 ? 0 : -EIO;
}

// Uses messages, as ranks without a contribution may be in other calls: they do not receive theirs.
int tca_gather_of_environment(const void *mine, void *all, size_t bytes, int givers)
{
    int (*send)(const void *, int, uintptr_t, int, int, uintptr_t) = (__typeof__(send))dlsym(RTLD_DEFAULT, "MPI_Send");
    int (*receive)(void *, int, uintptr_t, int, int, uintptr_t, void *) =
        (__typeof__(receive))dlsym(RTLD_DEFAULT, "MPI_Recv");
    uintptr_t byte = constant("ompi_mpi_byte", MPICH_BYTE);
    uintptr_t world = constant("ompi_mpi_comm_world", MPICH_COMM_WORLD);
    struct tcaComm self;
    _Alignas(16) char status[64]; // larger than any MPI_Status
    if (send == NULL || receive == NULL || bytes > INT_MAX || !tca_comm_of_environment(&self)) {
        return -ENOSYS;
    }
    int failed = 0;
    for (int to = 0; self.rank < givers && to < self.ranks; to++) {
        failed |= to != self.rank ? send(mine, (int)bytes, byte, to, TAG(givers), world) : 0;
    }
    for (int from = 0; from < givers; from++) {
        char *into = (char *)all + (size_t)from * bytes;
        if (from == self.rank) {
            memcpy(into, mine, bytes);
        } else {
            failed |= receive(into, (int)bytes, byte, from, TAG(givers), world, status);
        }
    }
    return failed == 0 ? 0 : -EIO;
}

static bool mpi_runs(void)
{
    int (*initialized)(int *) = (__typeof__(initialized))dlsym(RTLD_DEFAULT, "MPI_Initialized");
    int flag = 0;
    return initialized != NULL && initialized(&flag) == 0 && flag != 0;
}

bool tca_comm_of_environment(struct tcaComm *comm_out)
{
    int (*rank)(uintptr_t, int *) = (__typeof__(rank))dlsym(RTLD_DEFAULT, "MPI_Comm_rank");
    int (*size)(uintptr_t, int *) = (__typeof__(size))dlsym(RTLD_DEFAULT, "MPI_Comm_size");
    uintptr_t world = constant("ompi_mpi_comm_world", MPICH_COMM_WORLD);
    *comm_out = (struct tcaComm){.allgather = allgather};
    return mpi_runs() && rank != NULL && size != NULL && rank(world, &comm_out->rank) == 0 &&
           size(world, &comm_out->ranks) == 0;
}
