// The C interface of MPI in the binaries of Open MPI 4 and MPICH 4, so that one library serves programs of both;
// neither is linked. The values are facts of their mpi.h; tests/programs/mpi/gpu.c runs with both.
//
// A handle is an address in Open MPI and an int in MPICH, of which only the low half of a register is valid. The
// functions below therefore access arrays of handles and of statuses.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uintptr_t mpi_handle;
typedef ptrdiff_t mpi_aint;

enum { MPI_OK = 0, MPI_BAD_BUFFER = 1, MPI_BAD_COUNT = 2, MPI_BAD_TYPE = 3 };
#define MPI_ANY_TAG_INT       (-1)
#define MPI_THREADS_AT_A_TIME 3 // MPI_THREAD_MULTIPLE
#define MPI_UNDEFINED_INT     (-32766)
#define MPI_STATUS_MAX        64 // bytes; more than in either MPI

// How MPI_Type_get_envelope describes the construction of a datatype; Open MPI's numbers.
enum mpi_combiner {
    MPI_MADE_NAMED = 0,
    MPI_MADE_DUP = 1,
    MPI_MADE_CONTIGUOUS = 2,
    MPI_MADE_VECTOR = 3,
    MPI_MADE_HVECTOR = 5,
    MPI_MADE_INDEXED = 6,
    MPI_MADE_HINDEXED = 8,
    MPI_MADE_INDEXED_BLOCK = 9,
    MPI_MADE_STRUCT = 11,
    MPI_MADE_RESIZED = 17,
    MPI_MADE_HINDEXED_BLOCK = 18
};

typedef int mpi_send_fn(const void *buffer, int count, mpi_handle type, int to, int tag, mpi_handle comm);
typedef int mpi_start_fn(const void *buffer, int count, mpi_handle type, int to, int tag, mpi_handle comm,
                         void *request);
typedef int mpi_receive_fn(void *buffer, int count, mpi_handle type, int from, int tag, mpi_handle comm, void *result);
typedef int mpi_sendrecv_fn(const void *out, int out_count, mpi_handle out_type, int to, int out_tag, void *in,
                            int in_count, mpi_handle in_type, int from, int in_tag, mpi_handle comm, void *status);
typedef int mpi_bcast_fn(void *buffer, int count, mpi_handle type, int root, mpi_handle comm);
typedef int mpi_reduce_fn(const void *out, void *in, int count, mpi_handle type, mpi_handle op, int root,
                          mpi_handle comm);
typedef int mpi_allreduce_fn(const void *out, void *in, int count, mpi_handle type, mpi_handle op, mpi_handle comm);
typedef int mpi_gather_fn(const void *out, int out_count, mpi_handle out_type, void *in, int in_count,
                          mpi_handle in_type, int root, mpi_handle comm);
typedef int mpi_gatherv_fn(const void *out, int out_count, mpi_handle out_type, void *in, const int *in_counts,
                           const int *in_displs, mpi_handle in_type, int root, mpi_handle comm);
typedef int mpi_scatterv_fn(const void *out, const int *out_counts, const int *out_displs, mpi_handle out_type,
                            void *in, int in_count, mpi_handle in_type, int root, mpi_handle comm);
typedef int mpi_allgather_fn(const void *out, int out_count, mpi_handle out_type, void *in, int in_count,
                             mpi_handle in_type, mpi_handle comm);
typedef int mpi_allgatherv_fn(const void *out, int out_count, mpi_handle out_type, void *in, const int *in_counts,
                              const int *in_displs, mpi_handle in_type, mpi_handle comm);
typedef int mpi_alltoallv_fn(const void *out, const int *out_counts, const int *out_displs, mpi_handle out_type,
                             void *in, const int *in_counts, const int *in_displs, mpi_handle in_type, mpi_handle comm);
typedef int mpi_put_fn(const void *origin, int count, mpi_handle type, int target, mpi_aint displacement,
                       int target_count, mpi_handle target_type, mpi_handle win);
typedef int mpi_get_fn(void *origin, int count, mpi_handle type, int target, mpi_aint displacement, int target_count,
                       mpi_handle target_type, mpi_handle win);
typedef int mpi_accumulate_fn(const void *origin, int count, mpi_handle type, int target, mpi_aint displacement,
                              int target_count, mpi_handle target_type, mpi_handle op, mpi_handle win);

#define MPI_CALLS(X)                                                                                                   \
    X(Send, mpi_send_fn)                                                                                               \
    X(Ssend, mpi_send_fn)                                                                                              \
    X(Rsend, mpi_send_fn)                                                                                              \
    X(Bsend, mpi_send_fn)                                                                                              \
    X(Isend, mpi_start_fn)                                                                                             \
    X(Issend, mpi_start_fn)                                                                                            \
    X(Irsend, mpi_start_fn)                                                                                            \
    X(Ibsend, mpi_start_fn)                                                                                            \
    X(Send_init, mpi_start_fn)                                                                                         \
    X(Ssend_init, mpi_start_fn)                                                                                        \
    X(Rsend_init, mpi_start_fn)                                                                                        \
    X(Bsend_init, mpi_start_fn)                                                                                        \
    X(Recv, mpi_receive_fn)                                                                                            \
    X(Irecv, mpi_receive_fn)                                                                                           \
    X(Recv_init, mpi_receive_fn)                                                                                       \
    X(Sendrecv, mpi_sendrecv_fn)                                                                                       \
    X(Sendrecv_replace, int(void *buffer, int count, mpi_handle type, int to, int out_tag, int from, int in_tag,       \
                            mpi_handle comm, void *status))                                                            \
    X(Probe, int(int from, int tag, mpi_handle comm, void *status))                                                    \
    X(Iprobe, int(int from, int tag, mpi_handle comm, int *flag, void *status))                                        \
    X(Mprobe, int(int from, int tag, mpi_handle comm, void *message, void *status))                                    \
    X(Improbe, int(int from, int tag, mpi_handle comm, int *flag, void *message, void *status))                        \
    X(Mrecv, int(void *buffer, int count, mpi_handle type, void *message, void *status))                               \
    X(Imrecv, int(void *buffer, int count, mpi_handle type, void *message, void *request))                             \
    X(Start, int(void *request))                                                                                       \
    X(Startall, int(int count, void *requests))                                                                        \
    X(Wait, int(void *request, void *status))                                                                          \
    X(Waitall, int(int count, void *requests, void *statuses))                                                         \
    X(Waitany, int(int count, void *requests, int *index, void *status))                                               \
    X(Waitsome, int(int count, void *requests, int *done, int *indices, void *statuses))                               \
    X(Test, int(void *request, int *flag, void *status))                                                               \
    X(Testall, int(int count, void *requests, int *flag, void *statuses))                                              \
    X(Testany, int(int count, void *requests, int *index, int *flag, void *status))                                    \
    X(Testsome, int(int count, void *requests, int *done, int *indices, void *statuses))                               \
    X(Request_free, int(void *request))                                                                                \
    X(Request_get_status, int(mpi_handle request, int *flag, void *status))                                            \
    X(Cancel, int(void *request))                                                                                      \
    X(Get_count, int(const void *status, mpi_handle type, int *count))                                                 \
    X(Status_set_elements, int(void *status, mpi_handle type, int count))                                              \
    X(Test_cancelled, int(const void *status, int *flag))                                                              \
    X(Bcast, mpi_bcast_fn)                                                                                             \
    X(Reduce, mpi_reduce_fn)                                                                                           \
    X(Allreduce, mpi_allreduce_fn)                                                                                     \
    X(Scan, mpi_allreduce_fn)                                                                                          \
    X(Exscan, mpi_allreduce_fn)                                                                                        \
    X(Reduce_scatter_block, mpi_allreduce_fn)                                                                          \
    X(Gather, mpi_gather_fn)                                                                                           \
    X(Gatherv, mpi_gatherv_fn)                                                                                         \
    X(Scatter, mpi_gather_fn)                                                                                          \
    X(Scatterv, mpi_scatterv_fn)                                                                                       \
    X(Allgather, mpi_allgather_fn)                                                                                     \
    X(Allgatherv, mpi_allgatherv_fn)                                                                                   \
    X(Alltoall, mpi_allgather_fn)                                                                                      \
    X(Alltoallv, mpi_alltoallv_fn)                                                                                     \
    X(Put, mpi_put_fn)                                                                                                 \
    X(Get, mpi_get_fn)                                                                                                 \
    X(Accumulate, mpi_accumulate_fn)                                                                                   \
    X(Win_fence, int(int assertion, mpi_handle win))                                                                   \
    X(Win_complete, int(mpi_handle win))                                                                               \
    X(Win_unlock, int(int rank, mpi_handle win))                                                                       \
    X(Win_unlock_all, int(mpi_handle win))                                                                             \
    X(Win_flush, int(int rank, mpi_handle win))                                                                        \
    X(Win_flush_all, int(mpi_handle win))                                                                              \
    X(Win_flush_local, int(int rank, mpi_handle win))                                                                  \
    X(Win_flush_local_all, int(mpi_handle win))                                                                        \
    X(Init, int(int *argc, char ***argv))                                                                              \
    X(Init_thread, int(int *argc, char ***argv, int required, int *provided))                                          \
    X(Finalize, int(void))                                                                                             \
    X(Barrier, int(mpi_handle comm))                                                                                   \
    X(Comm_dup, int(mpi_handle comm, void *copy))                                                                      \
    X(Comm_free, int(void *comm))                                                                                      \
    X(Comm_group, int(mpi_handle comm, void *group))                                                                   \
    X(Group_translate_ranks, int(mpi_handle group, int count, const int *ranks, mpi_handle other, int *others))        \
    X(Group_free, int(void *group))                                                                                    \
    X(Comm_rank, int(mpi_handle comm, int *rank))                                                                      \
    X(Comm_size, int(mpi_handle comm, int *size))                                                                      \
    X(Comm_remote_size, int(mpi_handle comm, int *size))                                                               \
    X(Comm_test_inter, int(mpi_handle comm, int *flag))                                                                \
    X(Comm_call_errhandler, int(mpi_handle comm, int error))                                                           \
    X(Win_call_errhandler, int(mpi_handle win, int error))                                                             \
    X(Type_size, int(mpi_handle type, int *size))                                                                      \
    X(Type_get_extent, int(mpi_handle type, mpi_aint * lower, mpi_aint * extent))                                      \
    X(Type_get_true_extent, int(mpi_handle type, mpi_aint * lower, mpi_aint * extent))                                 \
    X(Type_get_envelope, int(mpi_handle type, int *integers, int *addresses, int *types, int *combiner))               \
    X(Type_get_contents, int(mpi_handle type, int max_integers, int max_addresses, int max_types, int *integers,       \
                             mpi_aint *addresses, void *types))                                                        \
    X(Type_dup, int(mpi_handle type, void *copy))                                                                      \
    X(Type_free, int(void *type))                                                                                      \
    X(Pack, int(const void *in, int count, mpi_handle type, void *out, int bytes, int *position, mpi_handle comm))     \
    X(Unpack, int(const void *in, int bytes, int *position, void *out, int count, mpi_handle type, mpi_handle comm))

// The calls of MPI's profiling interface (PMPI_...); they are found when the first one is needed.
#define MPI_MEMBER(name, type) __typeof__(type) *name;
struct mpi_calls {
    MPI_CALLS(MPI_MEMBER)
};
#undef MPI_MEMBER

// The names that the program calls; the library defines those that may get device memory.
#define MPI_DECLARATION(name, type) __typeof__(type) MPI_##name;
MPI_CALLS(MPI_DECLARATION)
#undef MPI_DECLARATION

struct mpi_abi {
    bool open_mpi;
    size_t handle_bytes, status_bytes;
    mpi_handle request_null, byte, world;
    const void *in_place;
    void *status_ignore; // also MPI_STATUSES_IGNORE
    int proc_null, any_source;
    int error_truncate, error_other, error_in_status;
    struct mpi_calls calls;
};

const struct mpi_abi *mpi_abi(void);

mpi_handle mpi_handle_at(const void *handles, int index);
void mpi_handle_put(void *handles, int index, mpi_handle handle);
void *mpi_handle_slot(void *handles, int index);
// true: MPI_STATUS_IGNORE or MPI_STATUSES_IGNORE.
bool mpi_status_is_ignored(const void *status);
void *mpi_status_or(void *status, void *own); // returns own if the status is ignored
void *mpi_status_at(void *statuses, int index);
int *mpi_status_source(void *status);
int *mpi_status_tag(void *status);
int *mpi_status_error(void *status);
