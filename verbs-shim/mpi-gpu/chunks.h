// Shared by both sides of the pipeline: the communicator of the chunks, and the split of a message. Private to
// pipeline.c and incoming.c.
#pragma once

#include "verbs-shim/mpi-gpu/pipeline.h"

struct mpi_gpu_chunks {
    mpi_handle comm;
    int self; // own rank in it, and in MPI_COMM_WORLD
    bool open;
};
extern struct mpi_gpu_chunks mpi_gpu_chunks;

int mpi_gpu_chunk_count(const struct mpi_gpu_rts *rts);
int mpi_gpu_chunk_length(const struct mpi_gpu_rts *rts, int chunk);
// Null requests; NULL: no memory.
char *mpi_gpu_handles_make(int count);
// An RTS with a tag of its own.
struct mpi_gpu_rts mpi_gpu_rts_make(uint64_t bytes, uint64_t chunk_bytes);
