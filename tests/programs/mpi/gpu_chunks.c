// Messages of device memory that are longer than a chunk, received in different ways: with probes, into host memory
// with and without gaps, with too little room, and while both ends send. Two ranks. Every byte is checked. A message
// takes clearly less time than its copies and its transfer one after the other; MPI_Send does not wait for a receiver
// that does not expect chunks. Prints half a round trip in us of a long message, and "2 ranks, N wrong".
#include <cuda_runtime.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 3 << 20, LENGTHS = 3, RTS = 64 /* of the library's own messages */ };
static const int lengths[LENGTHS] = {300000, 1 << 20, (2 << 20) + 4};

static int rank;
static long wrong;
static char *device, *other;
static unsigned char host[ROOM], seen[ROOM];

static void that(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "rank %d: %s does not hold\n", rank, what);
        wrong++;
    }
}
#define THAT(condition) that(condition, #condition)
#define CUDA(call)      THAT((call) == cudaSuccess)

static unsigned char byte_of(size_t index, int seed)
{
    return (unsigned char)(index * 7 + index / 251 + (size_t)seed * 31);
}

static void fill(int bytes, int seed)
{
    for (int i = 0; i < bytes; i++) {
        seen[i] = byte_of((size_t)i, seed);
    }
    CUDA(cudaMemcpy(device, seen, (size_t)bytes, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
}

static void is(const unsigned char *data, int bytes, int seed, const char *what)
{
    long before = wrong;
    for (int i = 0; i < bytes; i++) {
        wrong += data[i] != byte_of((size_t)i, seed);
    }
    if (wrong != before) {
        fprintf(stderr, "rank %d: %s of %d B: %ld wrong\n", rank, what, bytes, wrong - before);
    }
}

static void other_is(int bytes, int seed, const char *what)
{
    CUDA(cudaMemcpy(seen, other, (size_t)bytes, cudaMemcpyDeviceToHost));
    is(seen, bytes, seed, what);
}

static void clear(void)
{
    memset(host, 0xee, sizeof host);
    CUDA(cudaMemset(other, 0xee, ROOM));
    CUDA(cudaDeviceSynchronize());
}

static void status_is(MPI_Status *status, int tag, int bytes, const char *what)
{
    int count = -1;
    MPI_Get_count(status, MPI_BYTE, &count);
    that(count == bytes && status->MPI_SOURCE == 0 && status->MPI_TAG == tag, what);
}

// --- probes ---------------------------------------------------------------------------------------------------------

// A long message, and one of the size of the library's own messages, between short ones.
static void probed_send(int bytes)
{
    memset(host, 7, RTS);
    fill(bytes, 1);
    MPI_Send(host, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Send(device, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    MPI_Send(host, RTS, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    MPI_Send(device, bytes, MPI_BYTE, 1, 4, MPI_COMM_WORLD);
    MPI_Send(device, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD);
}

static void probed_receive(int bytes, int way)
{
    MPI_Status status;
    MPI_Request request;
    int flag = 0;
    while (!flag) {
        MPI_Iprobe(0, 4, MPI_COMM_WORLD, &flag, &status);
    }
    status_is(&status, 4, bytes, "a probe of the second long message");
    MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
    status_is(&status, 3, RTS, "a probe of 64 B");
    clear();
    MPI_Recv(other, 100, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status); // the first of all
    status_is(&status, 1, 8, "the first message");
    if (way == 0) {
        MPI_Recv(other, ROOM, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    } else if (way == 1) {
        MPI_Irecv(other, ROOM, MPI_BYTE, MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, &status);
    } else {
        MPI_Recv_init(other, ROOM, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Wait(&request, &status);
        MPI_Request_free(&request);
    }
    status_is(&status, 2, bytes, "the first long message");
    other_is(bytes, 1, "the first long message");
    MPI_Recv(host, RTS, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    status_is(&status, 3, RTS, "64 B");
    THAT(host[0] == 7 && host[RTS - 1] == 7);
    MPI_Recv(host, ROOM, MPI_BYTE, 0, 4, MPI_COMM_WORLD, &status);
    status_is(&status, 4, bytes, "the second long message");
    is(host, bytes, 1, "the second long message");
}

static void matched(int bytes, int way)
{
    MPI_Message message;
    MPI_Request request;
    MPI_Status status;
    int flag = 0;
    if (way == 0) {
        MPI_Mprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &message, &status);
    } else {
        while (!flag) {
            MPI_Improbe(0, 5, MPI_COMM_WORLD, &flag, &message, &status);
        }
    }
    status_is(&status, 5, bytes, "a matched probe");
    clear();
    if (way == 0) {
        MPI_Mrecv(other, bytes, MPI_BYTE, &message, &status);
    } else {
        MPI_Imrecv(other, bytes, MPI_BYTE, &message, &request);
        MPI_Wait(&request, &status);
    }
    status_is(&status, 5, bytes, "a matched message");
    other_is(bytes, 1, "a matched message");
}

// A communicator in which the ranks have each other's numbers.
static void reversed(int bytes)
{
    MPI_Comm comm;
    MPI_Status status;
    MPI_Comm_split(MPI_COMM_WORLD, 0, -rank, &comm);
    if (rank == 0) {
        fill(bytes, 10);
        MPI_Send(device, bytes, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        fill(bytes, 11);
        MPI_Send(device, bytes, MPI_BYTE, 0, 2, comm);
    } else {
        MPI_Probe(0, 2, MPI_COMM_WORLD, &status);
        clear();
        MPI_Recv(other, bytes, MPI_BYTE, MPI_ANY_SOURCE, 2, comm, &status);
        THAT(status.MPI_SOURCE == 1);
        other_is(bytes, 11, "a message of another communicator");
        MPI_Recv(other, bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        other_is(bytes, 10, "a probed message");
    }
    MPI_Comm_free(&comm);
}

// A persistent receive whose first message a probe has taken; its status is queried before it is started, and once
// before it is complete.
static void again(void)
{
    MPI_Request request;
    int flag;
    for (int i = 0; i < 3 && rank == 0; i++) {
        memset(host, 20 + i, RTS);
        MPI_Send(host, 8, MPI_BYTE, 1, 6, MPI_COMM_WORLD);
        MPI_Send(host, i < 1 ? RTS : 8, MPI_BYTE, 1, 7, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        return;
    }
    MPI_Recv_init(other, 8, MPI_BYTE, 0, 6, MPI_COMM_WORLD, &request);
    for (int i = 0; i < 3; i++) {
        MPI_Probe(0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        THAT(MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag);
        MPI_Start(&request);
        for (flag = i != 1; !flag;) {
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CUDA(cudaMemcpy(seen, other, 8, cudaMemcpyDeviceToHost));
        THAT(seen[0] == 20 + i && seen[7] == 20 + i);
        MPI_Recv(host, RTS, MPI_BYTE, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Request_free(&request);
}

// --- requests -------------------------------------------------------------------------------------------------------

// Both ranks send before either receives; a request's status can be queried before it is complete.
static void across(int bytes)
{
    MPI_Request requests[2];
    int flag = 0;
    fill(bytes, rank);
    clear();
    MPI_Irecv(other, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(host, bytes, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Send(device, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD);
    MPI_Ssend(device, bytes, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD);
    while (!flag) {
        MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    }
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    other_is(bytes, 1 - rank, "a message across");
    is(host, bytes, 1 - rank, "a message across to host memory");
    fill(bytes, rank + 4);
    MPI_Sendrecv_replace(device, bytes, MPI_BYTE, 1 - rank, 3, 1 - rank, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    CUDA(cudaMemcpy(seen, device, (size_t)bytes, cudaMemcpyDeviceToHost));
    is(seen, bytes, 1 - rank + 4, "MPI_Sendrecv_replace");
}

static double round_trip(void *memory, int bytes)
{
    double start = 0;
    for (int i = 0; i < 4; i++) {
        start = i == 1 ? MPI_Wtime() : start;
        for (int side = 0; side < 2; side++) {
            if (rank == side) {
                MPI_Send(memory, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
            } else {
                MPI_Recv(memory, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
    }
    return (MPI_Wtime() - start) / 6;
}

static double copies(void *pinned, int bytes)
{
    double start = MPI_Wtime();
    CUDA(cudaMemcpy(pinned, device, (size_t)bytes, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(device, pinned, (size_t)bytes, cudaMemcpyHostToDevice));
    return MPI_Wtime() - start;
}

static double overlap(int bytes)
{
    void *pinned;
    CUDA(cudaMallocHost(&pinned, (size_t)bytes));
    double apart = copies(pinned, bytes) + round_trip(pinned, bytes), together = round_trip(device, bytes);
    if (together > 0.8 * apart) {
        fprintf(stderr, "rank %d: %d B take %.3f us, %.3f us one after the other\n", rank, bytes, together * 1e6,
                apart * 1e6);
        wrong++;
    }
    CUDA(cudaFreeHost(pinned));
    return together * 1e6;
}

// The receiver has posted the receive, and waits for the sender in another call.
static void late(int bytes)
{
    MPI_Request request;
    if (rank == 0) {
        fill(bytes, 6);
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        MPI_Send(device, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        double ms = (MPI_Wtime() - start) * 1e3;
        THAT(ms < 2);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        clear();
        MPI_Irecv(other, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        other_is(bytes, 6, "a message that waited");
    }
}

// Sends that complete at once share MPI's request, and so does MPI_PROC_NULL.
static void at_once(int bytes)
{
    MPI_Request requests[5];
    fill(bytes, rank);
    clear();
    MPI_Irecv(other, 8, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(other + bytes, bytes, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(device, 8, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(device, 8, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Isend(device, bytes, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    other_is(8, 1 - rank, "a short message");
    CUDA(cudaMemcpy(seen, other + bytes, (size_t)bytes, cudaMemcpyDeviceToHost));
    is(seen, bytes, 1 - rank, "a long one beside it");
}

// The short message is complete when the chunks of the long one, to the memory of another device, begin to come.
static void some(int bytes)
{
    MPI_Request requests[2];
    int done, indices[2], left = 2, devices = 1, current = -1;
    char *far = other;
    if (rank == 0) {
        fill(bytes, 12);
        MPI_Isend(device, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Send(device, 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
        return;
    }
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(devices - 1));
    CUDA(cudaMalloc((void **)&far, (size_t)bytes));
    CUDA(cudaSetDevice(0));
    clear();
    MPI_Irecv(far, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(other, 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Barrier(MPI_COMM_WORLD);
    while (left > 0) {
        MPI_Waitsome(2, requests, &done, indices, MPI_STATUSES_IGNORE);
        for (int i = 0; i < done; i++) {
            THAT(requests[indices[i]] == MPI_REQUEST_NULL);
        }
        left -= done;
    }
    CUDA(cudaGetDevice(&current));
    THAT(current == 0);
    other_is(8, 12, "a short message of some");
    CUDA(cudaMemcpy(seen, far, (size_t)bytes, cudaMemcpyDeviceToHost));
    is(seen, bytes, 12, "a long message of some");
    CUDA(cudaFree(far));
}

// A send request that is freed before it is complete; and data that are there when the request's status reports it.
static void freed(int bytes)
{
    MPI_Request request;
    clear();
    if (rank == 0) {
        fill(bytes, 8);
        MPI_Send_init(device, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Start(&request);
        MPI_Request_free(&request);
        THAT(request == MPI_REQUEST_NULL);
        fill(bytes, 9);
        MPI_Send(device, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    } else {
        for (int i = 1; i >= 0; i--) { // the first message last
            MPI_Irecv(other, bytes, MPI_BYTE, 0, i, MPI_COMM_WORLD, &request);
            for (int flag = 0; !flag;) {
                MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
            }
            other_is(bytes, 8 + i, "a message whose request was freed");
            CUDA(cudaMemset(other, 0, 16));
            CUDA(cudaDeviceSynchronize());
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            CUDA(cudaMemcpy(seen, other, 16, cudaMemcpyDeviceToHost));
            THAT(seen[0] == 0 && seen[15] == 0); // delivered once
        }
    }
}

// --- datatypes, mistakes --------------------------------------------------------------------------------------------

// Every other group of four bytes, from a device's to a host's memory, and back; freed while the message is in flight.
static void gaps(int bytes)
{
    MPI_Datatype type;
    MPI_Request request;
    int groups = bytes / 8;
    MPI_Type_vector(groups, 4, 8, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    clear();
    if (rank == 0) {
        fill(bytes, 3);
        MPI_Send(device, 1, type, 1, 0, MPI_COMM_WORLD);
        MPI_Irecv(other, 1, type, 1, 0, MPI_COMM_WORLD, &request);
        MPI_Type_free(&type);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CUDA(cudaMemcpy(host, other, (size_t)bytes, cudaMemcpyDeviceToHost));
    } else {
        MPI_Irecv(host, 1, type, 0, 0, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        CUDA(cudaMemcpy(device, host, (size_t)bytes, cudaMemcpyHostToDevice));
        CUDA(cudaDeviceSynchronize());
        MPI_Send(device, 1, type, 0, 0, MPI_COMM_WORLD);
        MPI_Type_free(&type);
    }
    for (int i = 0; i < groups * 8; i++) {
        wrong += host[i] != (i % 8 < 4 ? byte_of((size_t)i, 3) : 0xee);
    }
}

// A message shorter than an element with gaps.
static void part(int bytes)
{
    MPI_Datatype type;
    int groups = bytes / 8;
    if (rank == 0) {
        fill(bytes / 2 - 6, 5);
        MPI_Send(device, bytes / 2 - 6, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        return;
    }
    MPI_Type_vector(groups, 4, 8, MPI_BYTE, &type);
    MPI_Type_commit(&type);
    clear();
    MPI_Recv(host, 1, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&type);
    for (int i = 0, at = 0; at < bytes / 2 - 6; i++) {
        wrong += host[i] != (i % 8 < 4 ? byte_of((size_t)at, 5) : 0xee);
        at += i % 8 < 4;
    }
}

static void truncated(int bytes)
{
    if (rank == 0) {
        fill(bytes, 2);
        MPI_Send(device, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Send(device, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
        clear();
        int error = MPI_Recv(other, bytes - 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Error_class(error, &error);
        THAT(error == MPI_ERR_TRUNCATE);
        error = MPI_Recv(host, 1000, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Error_class(error, &error);
        THAT(error == MPI_ERR_TRUNCATE);
        CUDA(cudaMemcpy(seen, other + bytes - 1, 64, cudaMemcpyDeviceToHost));
        THAT(seen[0] == 0xee && seen[63] == 0xee && host[1000] == 0xee);
    }
}

// A message that goes on in the middle of a chunk beyond the end of its memory: both ends are told. And one of two requests that fails.
static void refused(int bytes)
{
    MPI_Request requests[2];
    MPI_Status statuses[2];
    if (rank == 0) {
        THAT(MPI_Send(device + ROOM - bytes / 2 - 100, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD) != MPI_SUCCESS);
        fill(RTS, 14);
        MPI_Send(device, RTS, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
        MPI_Send(device, 8, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
    } else {
        THAT(MPI_Recv(other, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        MPI_Irecv(other, RTS / 2, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[0]);
        MPI_Irecv(other + RTS, 8, MPI_BYTE, 0, 2, MPI_COMM_WORLD, &requests[1]);
        THAT(MPI_Waitall(2, requests, statuses) == MPI_ERR_IN_STATUS);
        THAT(statuses[0].MPI_ERROR != MPI_SUCCESS);
        THAT(statuses[1].MPI_ERROR == MPI_SUCCESS);
    }
}

int main(int argc, char **argv)
{
    double us = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    CUDA(cudaMalloc((void **)&device, ROOM));
    CUDA(cudaMalloc((void **)&other, ROOM));
    for (int i = 0; i < LENGTHS; i++) {
        for (int way = 0; way < 3; way++) {
            if (rank == 0) {
                probed_send(lengths[i]);
            } else {
                probed_receive(lengths[i], way);
                matched(lengths[i], way % 2);
            }
        }
        across(lengths[i]);
        late(lengths[i]);
        us = lengths[i] > 1000000 ? overlap(lengths[i]) : 0;
        gaps(lengths[i]);
        part(lengths[i]);
        at_once(lengths[i] / 2);
        freed(lengths[i]);
        reversed(lengths[i]);
        again();
        some(lengths[i]);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        truncated(lengths[i]);
        refused(lengths[i]);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    }
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d B %.3f us\n2 ranks, %ld wrong\n", lengths[LENGTHS - 1], us, wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
