// Long staged messages are split into chunks, so that the copies at both ends and the transfer between them overlap.
//
// Instead of the message the sender sends an RTS, with the program's communicator and tag, so that MPI matches it like
// the message, and the chunks on a communicator of the library's own, each when its copy has ended. The receiver
// recognises an RTS by its length and a number of 192 bits, posts receives for the chunks, and copies each to the
// device while the next one is in flight.
//
// A wait for a send ends when its chunks are taken, but does not wait for a receiver that takes none: that receiver may
// be in a call that receives no chunks, after MPI_Irecv. The data is in host memory then, and the send is complete like
// a buffered one.
//
// Both ends have the same settings. Only in staged mode, to ranks of MPI_COMM_WORLD, through the C interface.
//
// Source: the pipeline of MVAPICH2 (MV2_CUDA_BLOCK_SIZE, 256 KiB), whose RTS is inside its rendezvous protocol.
#pragma once

#include "verbs-shim/mpi-gpu/gpu.h"

#define MPI_GPU_RTS_BYTES 64

struct mpi_gpu_rts {
    uint64_t magic[3];
    uint64_t bytes, chunk_bytes;
    int32_t sender; // rank in MPI_COMM_WORLD
    int32_t chunk_tag;
    int32_t source, tag; // of the message, for its status; negative: those of the RTS
    int32_t unused[2];
};
_Static_assert(sizeof(struct mpi_gpu_rts) == MPI_GPU_RTS_BYTES, "the length tells an RTS");

// --- sending --------------------------------------------------------------------------------------------------------

struct mpi_gpu_outgoing {
    struct mpi_gpu_outgoing *next;
    struct mpi_gpu_rts rts; // the caller sends it before the chunks
    struct mpi_gpu_buffer buffer;
    char data[MPI_GPU_RTS_BYTES]; // a message with the length of an RTS
    char *requests;
    int peer, chunks, started, taken, error;
};

// true: a buffer that is not staged yet is sent in chunks; *peer is then the peer's rank in MPI_COMM_WORLD.
bool mpi_gpu_pipelines(const struct mpi_gpu_buffer *buffer, int to, mpi_handle comm, int *peer);
// Stages the buffer and takes ownership of it. NULL: no memory.
struct mpi_gpu_outgoing *mpi_gpu_outgoing_make(struct mpi_gpu_buffer *buffer, int peer);
// Copies and sends the chunks.
int mpi_gpu_outgoing_send(struct mpi_gpu_outgoing *outgoing);
// Waits until the chunks are taken, or none was taken for a while.
void mpi_gpu_outgoing_wait(struct mpi_gpu_outgoing *outgoing);
// It is freed when its chunks are taken.
void mpi_gpu_outgoing_release(struct mpi_gpu_outgoing *outgoing);
// The same for a send of MPI whose request the program frees before its end.
void mpi_gpu_outgoing_abandon(struct mpi_gpu_buffer *staged, mpi_handle request);
// Sends an RTS to this process itself, on the library's communicator: for an RTS that was received before the program
// asked for it, or for the data of a message that only had an RTS's length.
int mpi_gpu_resend_rts(const struct mpi_gpu_rts *rts, void *message_out);
bool mpi_gpu_rts_of_data(const void *data, int source, int tag, struct mpi_gpu_rts *rts_out);

// --- receiving ------------------------------------------------------------------------------------------------------

// true: messages can be pipelined.
bool mpi_gpu_pipeline_is_open(void);
// true: the received message is an RTS.
bool mpi_gpu_rts_in(const struct mpi_gpu_receive *receive, const void *status, struct mpi_gpu_rts *rts_out);
// true: an RTS may arrive for this receive.
bool mpi_gpu_may_get_rts(const struct mpi_gpu_receive *receive);
bool mpi_gpu_is_rts(const struct mpi_gpu_rts *rts);

struct mpi_gpu_incoming {
    struct mpi_gpu_rts rts;
    char *into; // host memory for all chunks in order
    bool apart; // `into` is neither the program's buffer nor a staged one
    bool brought;
    char *requests;
    int chunks, next;
    int error;
    char status[MPI_STATUS_MAX]; // of the message
};

// Posts receives for the chunks. status: of the RTS. NULL: no memory.
struct mpi_gpu_incoming *mpi_gpu_incoming_make(const struct mpi_gpu_receive *receive, const struct mpi_gpu_rts *rts,
                                               const void *status);
mpi_handle mpi_gpu_incoming_request(const struct mpi_gpu_incoming *incoming); // of the next chunk
mpi_handle mpi_gpu_incoming_last(const struct mpi_gpu_incoming *incoming);
// Called when the next chunk has arrived. False: it was not the last one.
bool mpi_gpu_incoming_chunk(struct mpi_gpu_incoming *incoming, const struct mpi_gpu_receive *receive,
                            const void *status);
// When the last chunk has arrived, before it is reported: brings the data to its target.
int mpi_gpu_incoming_bring(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive);
// When all chunks have arrived: brings the data to its target, sets the message's status, frees. Returns an error of
// MPI's.
int mpi_gpu_incoming_end(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive, void *status);
// Waits for all chunks.
int mpi_gpu_incoming_wait(struct mpi_gpu_incoming *incoming, struct mpi_gpu_receive *receive, void *status);

// --- probes ---------------------------------------------------------------------------------------------------------

// Messages that a probe has received from MPI to check whether they are an RTS, until the program asks for them.
struct mpi_gpu_probed {
    struct mpi_gpu_probed *next;
    mpi_handle comm;
    struct mpi_gpu_rts rts; // bytes 0: none; MPI still has the message
    _Alignas(16) char message[sizeof(mpi_handle)];
    _Alignas(16) char status[MPI_STATUS_MAX]; // of the message, as reported to the program
};

// The first message that matches; the caller frees it. NULL: none, the caller must ask MPI.
struct mpi_gpu_probed *mpi_gpu_probed_take(int from, int tag, mpi_handle comm);
