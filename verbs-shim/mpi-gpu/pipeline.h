// Long staged messages in chunks, so that the copies at both ends and the transfer between them overlap.
//
// In place of the message the sender sends an RTS, with the program's communicator and tag, so that MPI matches it as
// it would the message, and the chunks on a communicator of the library's own, each when its copy has ended. The
// receiver knows an RTS by its length and a number of 192 bits, asks for the chunks, and copies each to the device
// while the next is under way.
//
// What waits for a send waits until its chunks are taken, but not for a receiver that takes none: that may sit in a
// call that asks for no chunks, after MPI_Irecv. The data are in host memory then, and the send is over as a buffered
// one.
//
// Both ends have the same settings. Only in staged mode, to ranks of MPI_COMM_WORLD, by the C interface.
//
// Source: the pipeline of MVAPICH2 (MV2_CUDA_BLOCK_SIZE, 256 KiB), whose RTS is inside its rendezvous.
#pragma once

#include "verbs-shim/mpi-gpu/gpu.h"

#define MPI_GPU_RTS_BYTES 64

struct mpi_gpu_rts {
    uint64_t magic[3];
    uint64_t bytes, chunk_bytes;
    int32_t sender; // in MPI_COMM_WORLD
    int32_t chunk_tag;
    int32_t source, tag; // of the message, for its status; negative: those of the RTS
    int32_t unused[2];
};
_Static_assert(sizeof(struct mpi_gpu_rts) == MPI_GPU_RTS_BYTES, "the length tells an RTS");

// --- sending --------------------------------------------------------------------------------------------------------

struct mpi_gpu_outgoing {
    struct mpi_gpu_outgoing *next;
    struct mpi_gpu_rts rts; // to be sent by the caller, before the chunks
    struct mpi_gpu_buffer buffer;
    char data[MPI_GPU_RTS_BYTES]; // of a message that looked like an RTS
    char *requests;
    int peer, chunks, started, taken, error;
};

// Whether a buffer, not yet staged, is sent in chunks; the peer's number is its rank in MPI_COMM_WORLD then.
bool mpi_gpu_pipelines(const struct mpi_gpu_buffer *buffer, int to, mpi_handle comm, int *peer);
// Stages the buffer and takes it. NULL: there is no memory.
struct mpi_gpu_outgoing *mpi_gpu_outgoing_make(struct mpi_gpu_buffer *buffer, int peer);
// The copies and the sends of the chunks.
int mpi_gpu_outgoing_send(struct mpi_gpu_outgoing *outgoing);
// Until the chunks are taken, or none was for a while.
void mpi_gpu_outgoing_wait(struct mpi_gpu_outgoing *outgoing);
// It frees itself when the chunks are taken.
void mpi_gpu_outgoing_release(struct mpi_gpu_outgoing *outgoing);
// The same for a send of MPI's whose request the program frees before it is over.
void mpi_gpu_outgoing_abandon(struct mpi_gpu_buffer *staged, mpi_handle request);
// An RTS to this process itself, on the library's communicator: for one that was received before the program asked
// for it, or for the data of a message that only looked like one.
int mpi_gpu_resend_rts(const struct mpi_gpu_rts *rts, void *message_out);
bool mpi_gpu_rts_of_data(const void *data, int source, int tag, struct mpi_gpu_rts *rts_out);

// --- receiving ------------------------------------------------------------------------------------------------------

// Whether messages are pipelined at all.
bool mpi_gpu_pipeline_is_open(void);
// Whether what came is an RTS.
bool mpi_gpu_rts_in(const struct mpi_gpu_receive *receive, const void *status, struct mpi_gpu_rts *rts_out);
// Whether an RTS may come for this receive.
bool mpi_gpu_may_get_rts(const struct mpi_gpu_receive *receive);
bool mpi_gpu_is_rts(const struct mpi_gpu_rts *rts);

struct mpi_gpu_incoming {
    struct mpi_gpu_rts rts;
    char *into; // host memory, the chunks one after the other
    bool apart; // into is not the program's buffer nor a staged one's
    bool brought;
    char *requests;
    int chunks, next;
    int error;
    char status[MPI_STATUS_MAX]; // of the message
};

// Asks for the chunks. status: of the RTS. NULL: there is no memory.
struct mpi_gpu_incoming *mpi_gpu_incoming_make(const struct mpi_gpu_receive *receive, const struct mpi_gpu_rts *rts,
                                               const void *status);
mpi_handle mpi_gpu_incoming_request(const struct mpi_gpu_incoming *incoming); // the next chunk's
mpi_handle mpi_gpu_incoming_last(const struct mpi_gpu_incoming *incoming);
// The next chunk has come. False: it was not the last.
bool mpi_gpu_incoming_chunk(struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive,
                            const void *status);
// When the last has come, before it is told: brings the data where they belong.
int mpi_gpu_incoming_bring(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive);
// When all have come: brings the data where they belong, sets the message's status, frees. An error of MPI's.
int mpi_gpu_incoming_end(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive, void *status);
// Waits for all of it.
int mpi_gpu_incoming_wait(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive, void *status);

// --- probes ---------------------------------------------------------------------------------------------------------

// Messages that a probe has taken from MPI to see whether they are an RTS, until the program asks for them.
struct mpi_gpu_probed {
    struct mpi_gpu_probed *next;
    mpi_handle comm;
    struct mpi_gpu_rts rts; // bytes 0: none, MPI has the message
    _Alignas(16) char message[sizeof(mpi_handle)];
    _Alignas(16) char status[MPI_STATUS_MAX]; // of the message as the program sees it
};

// The first that matches, which is the caller's to free. NULL: none, MPI is to be asked.
struct mpi_gpu_probed *mpi_gpu_probed_take(int from, int tag, mpi_handle comm);
