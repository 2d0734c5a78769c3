// Collectives on device memory: MPI computes and sends on copies in host memory, with the same datatypes.
#include <stdint.h>

#include "verbs-shim/mpi-gpu/gpu.h"

// A buffer of a collective: all its elements, with the gaps between them.
struct side {
    void *device;      // first byte of its data; NULL: MPI uses the program's buffer
    void *host;        // MPI uses it instead
    const void *given; // passed to MPI
    size_t bytes;
    bool dense; // no gaps: MPI writes every byte
};

struct sides {
    mpi_handle comm;
    const char *call;
    struct side out, in;
};

static int side_make(struct side *side, const void *buffer, size_t elements, mpi_handle type)
{
    mpi_aint lower = 0, extent = 0, true_lower = 0, true_extent = 0;
    int size = 0;
    *side = (struct side){.given = buffer};
    enum mpi_gpu_pointer_kind kind =
        buffer == mpi_abi()->in_place || elements == 0 ? MPI_GPU_HOST : mpi_gpu_pointer_kind(buffer);
    if (kind != MPI_GPU_DEVICE) {
        return kind == MPI_GPU_HOST ? MPI_OK : MPI_BAD_BUFFER;
    }
    if (CALL Type_get_extent(type, &lower, &extent) != MPI_OK ||
        CALL Type_get_true_extent(type, &true_lower, &true_extent) != MPI_OK || CALL Type_size(type, &size) != MPI_OK ||
        extent < 0) {
        return MPI_BAD_TYPE;
    }
    side->bytes = (elements - 1) * (size_t)extent + (size_t)true_extent;
    side->host = mpi_gpu_host_take(side->bytes);
    if (side->host == NULL) {
        return mpi_abi()->error_other;
    }
    side->dense = size == extent && size == true_extent;
    side->device = (char *)(uintptr_t)buffer + true_lower;
    side->given = (char *)side->host - true_lower;
    return MPI_OK;
}

static int side_read(const struct side *side)
{
    return side->device == NULL || mpi_gpu_read(side->host, side->device, side->bytes) ? MPI_OK : MPI_BAD_BUFFER;
}

static int side_write(const struct side *side)
{
    return side->device == NULL || mpi_gpu_write(side->device, side->host, side->bytes) ? MPI_OK : MPI_BAD_BUFFER;
}

static void side_free(struct side *side)
{
    if (side->host != NULL) {
        mpi_gpu_host_give(side->host);
    }
}

// Copies what MPI reads to host memory; also what MPI writes, if MPI does not write every byte of it.
static int sides_begin(struct sides *sides, const char *call, mpi_handle comm, const void *out, size_t out_elements,
                       mpi_handle out_type, void *in, size_t in_elements, mpi_handle in_type, bool gaps)
{
    *sides = (struct sides){.comm = comm, .call = call, .in = {.given = in}, .out = {.given = out}};
    int error = side_make(&sides->out, out, out_elements, out_type);
    error = error == MPI_OK ? side_make(&sides->in, in, in_elements, in_type) : error;
    error = error == MPI_OK ? side_read(&sides->out) : error;
    if (error == MPI_OK && (gaps || !sides->in.dense || out == mpi_abi()->in_place)) {
        error = side_read(&sides->in);
    }
    if (error != MPI_OK) {
        side_free(&sides->out);
        side_free(&sides->in);
        return mpi_gpu_fail(comm, error, call, in);
    }
    return MPI_OK;
}

static int sides_end(struct sides *sides, int error)
{
    int copied = error == MPI_OK ? side_write(&sides->in) : MPI_OK;
    side_free(&sides->out);
    side_free(&sides->in);
    return copied != MPI_OK ? mpi_gpu_fail(sides->comm, copied, sides->call, sides->in.device) : error;
}

#define IN(sides) ((void *)(uintptr_t)(sides).in.given)

// --- numbers of elements --------------------------------------------------------------------------------------------

static size_t of(int count, int ranks)
{
    return count > 0 && ranks > 0 ? (size_t)count * (size_t)ranks : 0;
}

// The number of ranks with which data is exchanged: for an intercommunicator, those of the other group.
static int peers(mpi_handle comm)
{
    int inter = 0, ranks = 0;
    (void)CALL Comm_test_inter(comm, &inter);
    (void)(inter ? CALL Comm_remote_size(comm, &ranks) : CALL Comm_size(comm, &ranks));
    return ranks;
}

static bool is_root(mpi_handle comm, int root)
{
    int inter = 0, rank = 0;
    (void)CALL Comm_test_inter(comm, &inter);
    (void)CALL Comm_rank(comm, &rank);
    return inter ? root < 0 && root != mpi_abi()->proc_null : rank == root; // MPI_ROOT is negative
}

static size_t spread(const int *counts, const int *displs, int ranks)
{
    size_t elements = 0;
    for (int i = 0; i < ranks; i++) {
        size_t end = counts[i] > 0 && displs[i] >= 0 ? (size_t)displs[i] + (size_t)counts[i] : 0;
        elements = end > elements ? end : elements;
    }
    return elements;
}

// --- from and to all ------------------------------------------------------------------------------------------------

int MPI_Bcast(void *buffer, int count, mpi_handle type, int root, mpi_handle comm)
{
    struct sides sides;
    // The root's data is read, that of the others written; in an intercommunicator only the root's group sends.
    int error = sides_begin(&sides, "MPI_Bcast", comm, NULL, 0, type, buffer, of(count, 1), type, is_root(comm, root));
    return error != MPI_OK ? error : sides_end(&sides, CALL Bcast(IN(sides), count, type, root, comm));
}

int MPI_Reduce(const void *out, void *in, int count, mpi_handle type, mpi_handle op, int root, mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Reduce", comm, out, of(count, 1), type, in,
                            is_root(comm, root) ? of(count, 1) : 0, type, false);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Reduce(sides.out.given, IN(sides), count, type, op, root, comm));
}

#define REDUCE(name, in_elements, gaps)                                                                                \
    int MPI_##name(const void *out, void *in, int count, mpi_handle type, mpi_handle op, mpi_handle comm)              \
    {                                                                                                                  \
        struct sides sides;                                                                                            \
        size_t out_elements = in_elements;                                                                             \
        int error = sides_begin(&sides, "MPI_" #name, comm, out, out_elements, type, in,                               \
                                out == mpi_abi()->in_place ? out_elements : of(count, 1), type, gaps);                 \
        return error != MPI_OK ? error                                                                                 \
                               : sides_end(&sides, CALL name(sides.out.given, IN(sides), count, type, op, comm));      \
    }
REDUCE(Allreduce, of(count, 1), false)
REDUCE(Scan, of(count, 1), false)
REDUCE(Exscan, of(count, 1), true) // the first rank receives nothing
REDUCE(Reduce_scatter_block, of(count, peers(comm)), false)

int MPI_Gather(const void *out, int out_count, mpi_handle out_type, void *in, int in_count, mpi_handle in_type,
               int root, mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Gather", comm, out, of(out_count, 1), out_type, in,
                            is_root(comm, root) ? of(in_count, peers(comm)) : 0, in_type, false);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Gather(sides.out.given, out_count, out_type, IN(sides), in_count,
                                                           in_type, root, comm));
}

int MPI_Gatherv(const void *out, int out_count, mpi_handle out_type, void *in, const int *in_counts,
                const int *in_displs, mpi_handle in_type, int root, mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Gatherv", comm, out, of(out_count, 1), out_type, in,
                            is_root(comm, root) ? spread(in_counts, in_displs, peers(comm)) : 0, in_type, true);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Gatherv(sides.out.given, out_count, out_type, IN(sides), in_counts,
                                                            in_displs, in_type, root, comm));
}

int MPI_Scatter(const void *out, int out_count, mpi_handle out_type, void *in, int in_count, mpi_handle in_type,
                int root, mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Scatter", comm, out, is_root(comm, root) ? of(out_count, peers(comm)) : 0,
                            out_type, in, in == mpi_abi()->in_place ? 0 : of(in_count, 1), in_type, false);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Scatter(sides.out.given, out_count, out_type, IN(sides), in_count,
                                                            in_type, root, comm));
}

int MPI_Scatterv(const void *out, const int *out_counts, const int *out_displs, mpi_handle out_type, void *in,
                 int in_count, mpi_handle in_type, int root, mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Scatterv", comm, out,
                            is_root(comm, root) ? spread(out_counts, out_displs, peers(comm)) : 0, out_type, in,
                            in == mpi_abi()->in_place ? 0 : of(in_count, 1), in_type, false);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Scatterv(sides.out.given, out_counts, out_displs, out_type,
                                                             IN(sides), in_count, in_type, root, comm));
}

int MPI_Allgather(const void *out, int out_count, mpi_handle out_type, void *in, int in_count, mpi_handle in_type,
                  mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Allgather", comm, out, of(out_count, 1), out_type, in,
                            of(in_count, peers(comm)), in_type, false);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Allgather(sides.out.given, out_count, out_type, IN(sides), in_count,
                                                              in_type, comm));
}

int MPI_Allgatherv(const void *out, int out_count, mpi_handle out_type, void *in, const int *in_counts,
                   const int *in_displs, mpi_handle in_type, mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Allgatherv", comm, out, of(out_count, 1), out_type, in,
                            spread(in_counts, in_displs, peers(comm)), in_type, true);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Allgatherv(sides.out.given, out_count, out_type, IN(sides),
                                                               in_counts, in_displs, in_type, comm));
}

int MPI_Alltoall(const void *out, int out_count, mpi_handle out_type, void *in, int in_count, mpi_handle in_type,
                 mpi_handle comm)
{
    struct sides sides;
    int error = sides_begin(&sides, "MPI_Alltoall", comm, out, of(out_count, peers(comm)), out_type, in,
                            of(in_count, peers(comm)), in_type, false);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Alltoall(sides.out.given, out_count, out_type, IN(sides), in_count,
                                                             in_type, comm));
}

int MPI_Alltoallv(const void *out, const int *out_counts, const int *out_displs, mpi_handle out_type, void *in,
                  const int *in_counts, const int *in_displs, mpi_handle in_type, mpi_handle comm)
{
    struct sides sides;
    size_t out_elements = out == mpi_abi()->in_place ? 0 : spread(out_counts, out_displs, peers(comm));
    int error = sides_begin(&sides, "MPI_Alltoallv", comm, out, out_elements, out_type, in,
                            spread(in_counts, in_displs, peers(comm)), in_type, true);
    return error != MPI_OK ? error
                           : sides_end(&sides, CALL Alltoallv(sides.out.given, out_counts, out_displs, out_type,
                                                              IN(sides), in_counts, in_displs, in_type, comm));
}
