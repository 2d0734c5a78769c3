// Device pointers in calls of MPI: messages of all kinds and lengths, datatypes with gaps, collectives and one-sided
// calls. Every byte is checked, and those beside it. At least two ranks; each rank has its own device memory. Prints
// "LENGTH B half a round trip's us", and how many bytes were wrong.
#include "gpu_check.h"

enum { INTS = 1000, COLUMNS = 40, ROWS = 30, TURNS = 10, LONG_INTS = 65536 };

// --- messages -------------------------------------------------------------------------------------------------------

static void one_way(size_t bytes)
{
    int count = 0;
    MPI_Status status;
    if (rank == 0) {
        fill(device, bytes, 0, 1);
        MPI_Send(device, (int)bytes, MPI_BYTE, 1, 3, MPI_COMM_WORLD);
    } else {
        clear(device, bytes + AROUND);
        MPI_Recv(device, (int)bytes + AROUND, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        THAT((size_t)count == bytes && status.MPI_SOURCE == 0 && status.MPI_TAG == 3);
        expect(device, bytes, 0, 1, "a message");
        untouched(device + bytes, AROUND, "a message");
    }
}

// From a device's to a host's memory and back, shorter than the receive buffer.
static void between(size_t bytes)
{
    if (rank == 0) {
        fill(device, bytes, 0, 2);
        MPI_Send(device, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        clear(device, bytes + AROUND);
        MPI_Recv(device, (int)bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(device, bytes, 0, 2, "there and back");
    } else {
        int count = 0;
        MPI_Status status;
        MPI_Recv(host, ROOM, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        THAT((size_t)count == bytes);
        MPI_Send(host, count, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void exchange(size_t bytes, int way)
{
    MPI_Request requests[2];
    int partner = 1 - rank, left = 2, flag = 0, index, indices[2];
    fill(device, bytes, rank, way);
    clear(other, bytes + AROUND);
    if (way == 0) {
        MPI_Sendrecv(device, (int)bytes, MPI_BYTE, partner, way, other, (int)bytes, MPI_BYTE, partner, way,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Irecv(other, (int)bytes, MPI_BYTE, partner, way, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(device, (int)bytes, MPI_BYTE, partner, way, MPI_COMM_WORLD, &requests[1]);
    }
    switch (way) {
    case 1:
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        break;
    case 2:
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        while (!flag) {
            MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        }
        break;
    case 3:
        for (; left > 0; left--) {
            MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        }
        break;
    case 4:
        while (left > 0) {
            MPI_Testsome(2, requests, &index, indices, MPI_STATUSES_IGNORE);
            left -= index;
        }
        break;
    case 5:
        while (!flag) {
            MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
        }
        break;
    }
    expect(other, bytes, partner, way, "an exchange");
    untouched(other + bytes, AROUND, "an exchange");
}

static void persistent(size_t bytes)
{
    MPI_Request requests[2];
    int partner = 1 - rank;
    MPI_Recv_init(other, (int)bytes, MPI_BYTE, partner, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(device, (int)bytes, MPI_BYTE, partner, 8, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 3; i++) {
        fill(device, bytes, rank, 20 + i);
        clear(other, bytes);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(other, bytes, partner, 20 + i, "a persistent request");
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
}

// What replaces the buffer is there before the other end asks for what was sent from it.
static void replaced(size_t bytes)
{
    fill(device, bytes, rank, 50);
    clear(other, bytes);
    if (rank == 0) {
        MPI_Sendrecv_replace(device, (int)bytes, MPI_BYTE, 1, 6, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(device, bytes, 1, 50, "what replaces a buffer");
    } else {
        MPI_Send(device, (int)bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD);
        MPI_Recv(other, (int)bytes, MPI_BYTE, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        expect(other, bytes, 0, 50, "a replaced buffer");
    }
}

static double round_trip(char *memory, size_t bytes)
{
    double start = 0;
    for (int i = 0; i < TURNS + 2; i++) {
        if (i == 2) {
            start = MPI_Wtime();
        }
        for (int side = 0; side < 2; side++) {
            if (rank == side) {
                MPI_Send(memory, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
            } else {
                MPI_Recv(memory, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            }
        }
    }
    return (MPI_Wtime() - start) * 1e6 / (2.0 * TURNS);
}

// Memory that is freed, and allocated again at the same address: what the library knows of it is made anew, so that a
// message takes no longer.
static void reallocated(void)
{
    char *first = NULL, *again;
    double first_us = 0;
    for (int i = 0; i < 3; i++) {
        CUDA(cudaMalloc((void **)&again, 100 + AROUND));
        THAT(first == NULL || again == first);
        first = again;
        if (rank == 0) {
            fill(again, 100, 0, 60 + i);
            MPI_Send(again, 100, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        } else {
            clear(again, 100 + AROUND);
            MPI_Recv(again, 100, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            expect(again, 100, 0, 60 + i, "a message to memory that is allocated again");
        }
        double us = round_trip(again, 100);
        first_us = i == 0 ? us : first_us;
        THAT(us < first_us + 1);
        CUDA(cudaFree(again));
    }
}

// --- datatypes ------------------------------------------------------------------------------------------------------

// Sends the datatype's data from a device to a host's packed buffer, and back.
static void type_check(MPI_Datatype type, int count, const char *what)
{
    MPI_Aint lower, extent;
    int size, position = 0;
    static unsigned char packed[ROOM], wanted[ROOM];
    MPI_Type_commit(&type);
    MPI_Type_size(type, &size);
    MPI_Type_get_extent(type, &lower, &extent);
    size_t span =
        (size_t)(extent * count) + 2 * sizeof(float) * ROWS * COLUMNS; // a datatype may reach beyond its extent
    fill(device, span, 0, 30);                                         // the host has the same
    MPI_Pack(host, count, type, wanted, ROOM, &position, MPI_COMM_SELF);
    THAT(position == size * count);
    if (rank == 0) {
        MPI_Send(device, count, type, 1, 0, MPI_COMM_WORLD);
        MPI_Send(wanted, position, MPI_PACKED, 1, 0, MPI_COMM_WORLD);
    } else {
        MPI_Recv(packed, ROOM, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        that(memcmp(packed, wanted, (size_t)position) == 0, what);
        clear(other, span);
        MPI_Recv(other, count, type, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CUDA(cudaMemcpy(seen, other, span, cudaMemcpyDeviceToHost));
        memset(host, 0xee, span);
        position = 0;
        MPI_Unpack(wanted, size * count, &position, host, count, type, MPI_COMM_SELF);
        that(memcmp(seen, host, span) == 0, what);
    }
    MPI_Type_free(&type);
}

static void types(void)
{
    MPI_Datatype column, pairs, indexed, structure, resized, row;
    int lengths[] = {3, 1, 5}, displacements[] = {0, 7, 10};
    MPI_Aint bytes[] = {0, 100, 40};
    MPI_Datatype parts[3];
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_FLOAT, &column);
    MPI_Type_contiguous(2, MPI_DOUBLE, &row);
    MPI_Type_vector(5, 2, 3, row, &pairs); // uses a datatype that is freed before this one is used
    MPI_Type_free(&row);
    MPI_Type_indexed(3, lengths, displacements, MPI_INT, &indexed);
    parts[0] = MPI_INT;
    parts[1] = MPI_DOUBLE;
    parts[2] = MPI_CHAR;
    MPI_Type_create_struct(3, lengths, bytes, parts, &structure);
    MPI_Type_vector(ROWS, 1, COLUMNS, MPI_FLOAT, &row);
    MPI_Type_create_resized(row, 0, sizeof(float), &resized);
    MPI_Type_free(&row);
    type_check(column, 1, "a column");
    type_check(pairs, 3, "a vector of pairs");
    type_check(indexed, 4, "blocks");
    type_check(structure, 2, "a structure");
    type_check(resized, 4, "columns side by side");
    MPI_Type_create_hindexed_block(3, 2, bytes, MPI_INT, &row);
    type_check(row, 2, "blocks of one length");
    MPI_Type_create_indexed_block(3, 2, displacements, MPI_INT, &row);
    type_check(row, 2, "blocks of one length by their elements");
    MPI_Type_create_hvector(5, 2, 20, MPI_INT, &row); // 20 B
    type_check(row, 2, "pairs by their bytes");
    MPI_Type_create_resized(MPI_INT, 0, 2 * sizeof(int), &row);
    type_check(row, 5, "elements with room between them");
}

// --- collectives ----------------------------------------------------------------------------------------------------

static void reductions(void)
{
    int sum = ranks * (ranks - 1) / 2;
    ints_put(device, INTS, rank);
    clear(other, INTS * sizeof(int));
    MPI_Allreduce(device, other, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints_expect(other, INTS, sum, ranks, "MPI_Allreduce");
    MPI_Allreduce(MPI_IN_PLACE, device, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints_expect(device, INTS, sum, ranks, "MPI_Allreduce in place");
    ints_put(device, INTS, rank);
    MPI_Reduce(device, other, INTS, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        ints_expect(other, INTS, ranks - 1, 1, "MPI_Reduce");
    }
    MPI_Scan(device, other, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints_expect(other, INTS, rank * (rank + 1) / 2, rank + 1, "MPI_Scan");
    clear(other, INTS * sizeof(int));
    MPI_Exscan(device, other, INTS, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank > 0) {
        ints_expect(other, INTS, rank * (rank - 1) / 2, rank, "MPI_Exscan");
    } else {
        untouched(other, INTS * sizeof(int), "MPI_Exscan of the first rank");
    }
    clear(other, INTS * sizeof(int));
    ints_put(device, INTS, rank + 500); // nothing that an earlier call has seen
    MPI_Reduce_scatter_block(device, other, INTS / ranks, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    ints_expect(other, INTS / ranks, sum + ranks * (500 + rank * (INTS / ranks)), ranks, "MPI_Reduce_scatter_block");
}

static void collectives(void)
{
    int counts[64], displacements[64];
    ints_put(device, INTS, rank == 1 ? 5 : 0);
    MPI_Bcast(device, INTS, MPI_INT, 1, MPI_COMM_WORLD);
    ints_expect(device, INTS, 5, 1, "MPI_Bcast");
    ints_put(device, INTS, INTS * rank);
    MPI_Allgather(device, INTS, MPI_INT, other, INTS, MPI_INT, MPI_COMM_WORLD);
    ints_expect(other, INTS * ranks, 0, 1, "MPI_Allgather");
    clear(other, ROOM);
    MPI_Gather(device, INTS, MPI_INT, other, INTS, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        ints_expect(other, INTS * ranks, 0, 1, "MPI_Gather");
        MPI_Scatter(other, INTS, MPI_INT, MPI_IN_PLACE, INTS, MPI_INT, 0, MPI_COMM_WORLD);
    } else {
        MPI_Scatter(NULL, 0, MPI_INT, device, INTS, MPI_INT, 0, MPI_COMM_WORLD);
        ints_expect(device, INTS, INTS * rank, 1, "MPI_Scatter");
    }
    for (int i = 0; i < ranks; i++) {
        counts[i] = INTS / ranks;
        displacements[i] = i * (INTS / ranks + 2);
    }
    clear(other, ROOM);
    MPI_Allgatherv(device, counts[0], MPI_INT, other, counts, displacements, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        ints_expect(other + displacements[i] * (int)sizeof(int), counts[i], INTS * i, 1, "MPI_Allgatherv");
        untouched(other + (displacements[i] + counts[i]) * (int)sizeof(int), 2 * sizeof(int), "MPI_Allgatherv");
    }
    MPI_Alltoallv(device, counts, displacements, MPI_INT, other, counts, displacements, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        ints_expect(other + displacements[i] * (int)sizeof(int),
                    displacements[rank] + counts[i] <= INTS ? counts[i] : 0, INTS * i + displacements[rank], 1,
                    "MPI_Alltoallv");
    }
    MPI_Alltoall(device, INTS / ranks, MPI_INT, other, INTS / ranks, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < ranks; i++) {
        ints_expect(other + i * (INTS / ranks) * (int)sizeof(int), INTS / ranks, INTS * i + rank * (INTS / ranks), 1,
                    "MPI_Alltoall");
    }
}

// Of a datatype whose declared lower bound is before its data.
static void bounds(void)
{
    enum { COUNT = 10, STEP = 4 };
    MPI_Datatype spaced;
    int numbers[COUNT * STEP];
    for (int i = 0; i < COUNT * STEP; i++) {
        numbers[i] = rank == 1 ? 70 + i : -1;
    }
    MPI_Type_create_resized(MPI_INT, -2 * (MPI_Aint)sizeof(int), STEP * sizeof(int), &spaced);
    MPI_Type_commit(&spaced);
    CUDA(cudaMemcpy(device + AROUND, numbers, sizeof numbers, cudaMemcpyHostToDevice));
    CUDA(cudaDeviceSynchronize());
    MPI_Bcast(device + AROUND, COUNT, spaced, 1, MPI_COMM_WORLD);
    CUDA(cudaMemcpy(numbers, device + AROUND, sizeof numbers, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT * STEP; i++) {
        wrong += numbers[i] != (rank == 1 || i % STEP == 0 ? 70 + i : -1);
    }
    MPI_Type_free(&spaced);
}

// --- one-sided ------------------------------------------------------------------------------------------------------

static void one_sided(void)
{
    int *memory, partner = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    MPI_Win win;
    MPI_Win_allocate(2 * INTS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
    memset(memory, 0, 2 * INTS * sizeof *memory);
    ints_put(device, INTS, 100 * rank);
    MPI_Win_fence(0, win);
    MPI_Put(device, INTS, MPI_INT, partner, 0, INTS, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < INTS; i++) {
        wrong += memory[i] != 100 * before + i;
    }
    clear(other, INTS * sizeof *memory + AROUND);
    MPI_Get(other, INTS, MPI_INT, partner, 0, INTS, MPI_INT, win);
    MPI_Win_fence(0, win);
    ints_expect(other, INTS, 100 * rank, 1, "MPI_Get");
    untouched(other + INTS * sizeof *memory, AROUND, "MPI_Get");
    MPI_Accumulate(device, INTS, MPI_INT, partner, INTS, INTS, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    for (int i = 0; i < INTS; i++) {
        wrong += memory[INTS + i] != 100 * before + i;
    }
    MPI_Win_fence(0, win);
    clear(other, INTS * sizeof *memory);
    MPI_Win_lock(MPI_LOCK_SHARED, partner, 0, win);
    MPI_Get(other, INTS, MPI_INT, partner, INTS, INTS, MPI_INT, win);
    MPI_Win_flush(partner, win);
    ints_expect(other, INTS, 100 * rank, 1, "MPI_Get and a flush");
    MPI_Win_unlock(partner, win);
    MPI_Win_free(&win);
}

static int *long_window(MPI_Win *win)
{
    int *memory;
    MPI_Win_allocate(LONG_INTS * sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, win);
    for (int i = 0; i < LONG_INTS; i++) {
        memory[i] = 1000 * rank + i;
    }
    return memory;
}

// What one rank, or one window, has been waited for says nothing of another.
static void two_windows(void)
{
    MPI_Win win, beside;
    (void)long_window(&win);
    (void)long_window(&beside);
    MPI_Barrier(MPI_COMM_WORLD);
    clear(other, LONG_INTS * sizeof(int));
    MPI_Win_lock_all(0, win);
    MPI_Get(device, 1, MPI_INT, 0, 0, 1, MPI_INT, win);
    MPI_Get(other, LONG_INTS, MPI_INT, 1, 0, LONG_INTS, MPI_INT, win);
    MPI_Win_flush(0, win);
    ints_expect(device, 1, 0, 1, "MPI_Get from the first rank");
    MPI_Win_flush(1, win);
    ints_expect(other, LONG_INTS, 1000, 1, "MPI_Get from the second rank");
    MPI_Win_unlock_all(win);
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, beside);
    clear(other, LONG_INTS * sizeof(int));
    MPI_Get(other, LONG_INTS, MPI_INT, 1, 0, LONG_INTS, MPI_INT, beside);
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, beside);
    ints_expect(other, LONG_INTS, 1000, 1, "MPI_Get in the window beside another one's fence");
    MPI_Win_free(&win);
    MPI_Win_free(&beside);
}

// --- mistakes -------------------------------------------------------------------------------------------------------

static void mistakes(void)
{
    char *freed;
    int truncated;
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    CUDA(cudaMalloc((void **)&freed, 4096));
    CUDA(cudaFree(freed));
    THAT(MPI_Send(freed, 8, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD) == MPI_ERR_BUFFER);
    if (rank == 0) {
        fill(device, 128, 0, 40);
        MPI_Send(device, 128, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    } else {
        clear(device, 256);
        truncated = MPI_Recv(device, 64, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Error_class(truncated, &truncated);
        THAT(truncated == MPI_ERR_TRUNCATE);
        untouched(device + 64, 192, "a message that was too long");
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}

int main(int argc, char **argv)
{
    static const size_t lengths[] = {0, 1, 8, 100, 4096, 8192, 8193, 20000, 65536, 300001, ROOM};
    double us = 0, before_us;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    CUDA(cudaMalloc((void **)&device, ROOM + AROUND));
    CUDA(cudaMalloc((void **)&other, ROOM + AROUND));
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0] && rank < 2; i++) {
        one_way(lengths[i]);
        between(lengths[i]);
        for (int way = 0; way < 6; way++) {
            exchange(lengths[i], way);
        }
        persistent(lengths[i]);
        replaced(lengths[i]);
        before_us = us;
        us = round_trip(device, lengths[i]);
        if (rank == 0) {
            printf("%zu B %.3f us\n", lengths[i], us);
        }
        // The longest copy by the processor, and the shortest by the device (TCASIM_MPI_GPU_GDRCOPY_BYTES).
        THAT(lengths[i] != 8193 || us < before_us - 1 || us > before_us + 1);
    }
    if (rank < 2) {
        reallocated();
        types();
        mistakes();
    }
    reductions();
    collectives();
    bounds();
    one_sided();
    two_windows();
    MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%d ranks, %ld wrong\n", ranks, wrong);
    }
    MPI_Finalize();
    return wrong != 0;
}
