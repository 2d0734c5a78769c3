// Requests of the program's that the library has to do with: those of staged messages, and receives for which an RTS
// may come (pipeline.h). A request of the program's is MPI's own request; when a pipelined message comes for one that
// is not persistent, it becomes MPI's request for the message's last chunk.
#pragma once

#include "verbs-shim/mpi-gpu/gpu.h"
#include "verbs-shim/mpi-gpu/pipeline.h"

struct mpi_gpu_request;

// --- making them ----------------------------------------------------------------------------------------------------

// Each takes the staged buffer, or the pipelined message, until the request is over or freed. False: no memory.
bool mpi_gpu_request_send(mpi_handle handle, const struct mpi_gpu_buffer *staged, mpi_handle comm, bool persistent);
bool mpi_gpu_request_pipelined(mpi_handle handle, struct mpi_gpu_outgoing *outgoing); // handle: the RTS's
bool mpi_gpu_request_receive(mpi_handle handle, const struct mpi_gpu_receive *receive);
bool mpi_gpu_request_receive_init(mpi_handle handle, const struct mpi_gpu_receive *receive, int from, int tag);
// A receive whose RTS had come before it. The request is that of the last chunk.
bool mpi_gpu_request_incoming(const struct mpi_gpu_receive *receive, struct mpi_gpu_incoming *incoming);

// --- waiting for them -----------------------------------------------------------------------------------------------

// A call claims what it waits for, and gives back what is not over: MPI may use the handle of a request that is over
// again, and sends that are over at once may all have the same. NULL: it is the program's and MPI's alone.
bool mpi_gpu_request_is_known(mpi_handle handle);
struct mpi_gpu_request *mpi_gpu_request_claim(mpi_handle handle);
void mpi_gpu_request_give_back(struct mpi_gpu_request *request);
void mpi_gpu_request_forget(struct mpi_gpu_request *request); // MPI has freed it for an error
bool mpi_gpu_request_receives(const struct mpi_gpu_request *request);
// Of which MPI is to be asked in place of the program's request.
mpi_handle mpi_gpu_request_stand_in(const struct mpi_gpu_request *request);
// MPI has said that the stand-in is over, with that status. False: the program's request is not, and has another
// stand-in. True: its data are where they belong, status is the message's, and unless it is persistent, what was
// claimed is gone. slot: the program's handle. sent_out: the pipelined message that was sent, the caller's to release;
// else NULL.
bool mpi_gpu_request_ended(struct mpi_gpu_request *request, void *slot, void *status, int *error_out,
                           struct mpi_gpu_outgoing **sent_out);
// Goes on with a receive as far as it can without waiting. Whether its stand-in is over, and the request with it.
bool mpi_gpu_request_progress(struct mpi_gpu_request *request);
void mpi_gpu_requests_progress(void); // with all
