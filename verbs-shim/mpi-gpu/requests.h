// The program's requests that the library tracks: those of staged messages, and receives for which an RTS may arrive
// (pipeline.h). A request of the program is MPI's own request; when a pipelined message arrives for one that is not
// persistent, it becomes MPI's request for the message's last chunk.
#pragma once

#include "verbs-shim/mpi-gpu/gpu.h"
#include "verbs-shim/mpi-gpu/pipeline.h"

struct mpi_gpu_request;

// --- creation -------------------------------------------------------------------------------------------------------

// Each owns the staged buffer, or the pipelined message, until the request has ended or is freed. False: no memory.
bool mpi_gpu_request_send(mpi_handle handle, const struct mpi_gpu_buffer *staged, mpi_handle comm, bool persistent);
bool mpi_gpu_request_pipelined(mpi_handle handle, struct mpi_gpu_outgoing *outgoing); // handle: of the RTS
bool mpi_gpu_request_receive(mpi_handle handle, const struct mpi_gpu_receive *receive);
bool mpi_gpu_request_receive_init(mpi_handle handle, const struct mpi_gpu_receive *receive, int from, int tag);
// A receive whose RTS arrived before it. The request is that of the last chunk.
bool mpi_gpu_request_incoming(const struct mpi_gpu_receive *receive, struct mpi_gpu_incoming *incoming);

// --- completion -----------------------------------------------------------------------------------------------------

// A call claims the requests that it waits for, and gives back those that have not ended: MPI may use the handle of an
// ended request again, and sends that end at once may all have the same handle. NULL: the library does not track the
// request.
bool mpi_gpu_request_is_known(mpi_handle handle);
struct mpi_gpu_request *mpi_gpu_request_claim(mpi_handle handle);
void mpi_gpu_request_give_back(struct mpi_gpu_request *request);
void mpi_gpu_request_forget(struct mpi_gpu_request *request); // MPI has freed it after an error
bool mpi_gpu_request_receives(const struct mpi_gpu_request *request);
// MPI's request to wait for instead of the program's request.
mpi_handle mpi_gpu_request_stand_in(const struct mpi_gpu_request *request);
// Called when the stand-in has ended, with its status. False: the program's request has not ended, and has another
// stand-in. True: its data has reached its target, status is the message's, and unless it is persistent, the claimed
// request is freed. slot: the program's handle. sent_out: the pipelined message that was sent, which the caller must
// release; otherwise NULL.
bool mpi_gpu_request_ended(struct mpi_gpu_request *request, void *slot, void *status, int *error_out,
                           struct mpi_gpu_outgoing **sent_out);
// Continues a receive as far as possible without waiting. true: its stand-in has ended, and the request with it.
bool mpi_gpu_request_progress(struct mpi_gpu_request *request);
void mpi_gpu_requests_progress(void); // all of them
