// A Jacobi solver of Himeno's shape on GPUs, for `tcasim run` and `tcasim exec --gpu-mpi`: a pressure equation with a
// stencil of 19 points in single precision, split over i and j, as sato2015 (5.2) measured it. MPI sends the halos from
// and to device memory; a kernel packs faces of j. Then MPI_Allreduce adds the 4 B of the residual. Nothing overlaps.
//
//     himeno SIZE SPLIT NAME [check]    tiny, small, middle, large (sato2015 table 3); 2x4: 2 ranks along i, 4 along j
//
// Ranks form a ladder of pairs, 2c and 2c+1 on its rung c, so that with hosts in this order neighbours of the grid are
// neighbours of the network; only 4x4 has no such order. Iterations differ a little because of polls and other
// messages, so ten are measured, after three others; the paper's 1000 iterations take 1000 times their mean. Prints
// comma-separated values: microseconds of an iteration, of calculation, halo exchange and all-reduce (means over the
// ranks), and the shortest and the longest iteration. With check, compares the pressures bit by bit with those of the
// same iterations on one host, and the residuals.
#include <cuda_runtime.h>
#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tcasim_kernel.h>

enum { ARRAYS = 14, WARM_UP = 3, MEASURED = 10, FLOPS = 34, TAG_I = 1, TAG_J = 2 };
// A K20X makes three times as many flops in single as in double precision (vendor); kernels declare these.
#define SINGLE_PER_DOUBLE 3
// Of the memory's rate a stencil reaches about 70 % on a Kepler with ECC (range 60-80 %), as streams do.
#define OCCUPANCY 0.7
#define OMEGA     0.8f

struct grid {
    int i, j, k; // points
};

// A block of the grid, with a border of one point along i and j.
struct block {
    struct grid whole, size, first; // first: its first point in the whole grid
    size_t plane, points;           // of one i, and of all, including the border
};

// Arrays of a block: the pressure now and next, coefficients, boundary, work.
struct fields {
    float *p, *next, *a[4], *b[3], *c[3], *bnd, *wrk1;
};

static int rank, ranks;

static void fail(const char *what)
{
    fprintf(stderr, "himeno: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void cuda(cudaError_t error)
{
    if (error != cudaSuccess) {
        fail(cudaGetErrorString(error));
    }
}

// --- arithmetic, on the device and on the host ----------------------------------------------------------------------

static size_t at(const struct block *block, int i, int j, int k)
{
    return (size_t)(i + 1) * block->plane + (size_t)(j + 1) * (size_t)block->size.k + (size_t)k;
}

static void fields_fill(const struct block *block, struct fields f)
{
    for (int i = -1; i <= block->size.i; i++) {
        float whole = (float)(block->whole.i - 1), here = (float)(i + block->first.i);
        for (size_t n = at(block, i, -1, 0); n < at(block, i, -1, 0) + block->plane; n++) {
            f.p[n] = f.next[n] = here * here / (whole * whole);
            for (int m = 0; m < 3; m++) {
                f.a[m][n] = f.c[m][n] = 1;
                f.b[m][n] = 0;
            }
            f.a[3][n] = 1.0f / 6.0f;
            f.bnd[n] = 1;
            f.wrk1[n] = 0;
        }
    }
}

// Computes one point; returns the square of its change.
static inline float point(const struct block *block, const struct fields *f, size_t n)
{
    const float *p = f->p;
    size_t i = block->plane, j = (size_t)block->size.k;
    float s0 = f->a[0][n] * p[n + i] + f->a[1][n] * p[n + j] + f->a[2][n] * p[n + 1] +
               f->b[0][n] * (p[n + i + j] - p[n + i - j] - p[n - i + j] + p[n - i - j]) +
               f->b[1][n] * (p[n + j + 1] - p[n - j + 1] - p[n + j - 1] + p[n - j - 1]) +
               f->b[2][n] * (p[n + i + 1] - p[n - i + 1] - p[n + i - 1] + p[n - i - 1]) + f->c[0][n] * p[n - i] +
               f->c[1][n] * p[n - j] + f->c[2][n] * p[n - 1] + f->wrk1[n];
    float ss = (s0 * f->a[3][n] - p[n]) * f->bnd[n];
    f->next[n] = p[n] + OMEGA * ss;
    return ss * ss;
}

// Computes all points of the block except those on the boundary of the whole grid. Returns the residual.
static float sweep(const struct block *block, const struct fields *f)
{
    float residual = 0;
    int i0 = block->first.i == 0, i1 = block->size.i - (block->first.i + block->size.i == block->whole.i);
    int j0 = block->first.j == 0, j1 = block->size.j - (block->first.j + block->size.j == block->whole.j);
    for (int i = i0; i < i1; i++) {
        for (int j = j0; j < j1; j++) {
            for (int k = 1; k < block->size.k - 1; k++) {
                residual += point(block, f, at(block, i, j, k));
            }
        }
    }
    return residual;
}

// --- kernels --------------------------------------------------------------------------------------------------------

static struct block block;

// The arrays follow each other; in odd iterations the first two are exchanged.
static struct fields fields_of(float *memory, int odd)
{
    float *arrays[ARRAYS];
    for (int i = 0; i < ARRAYS; i++) {
        arrays[i] = memory + (size_t)i * block.points;
    }
    return (struct fields){.p = arrays[odd],
                           .next = arrays[1 - odd],
                           .a = {arrays[2], arrays[3], arrays[4], arrays[5]},
                           .b = {arrays[6], arrays[7], arrays[8]},
                           .c = {arrays[9], arrays[10], arrays[11]},
                           .bnd = arrays[12],
                           .wrk1 = arrays[13]};
}

static void fill_kernel(void)
{
}
static void jacobi_kernel(void)
{
}
static void pack_kernel(void)
{
}
static void unpack_kernel(void)
{
}

#define ARG(launch, number, type) (*(type const *)(launch)->args[number])

static float *arrays_of(const struct tcasim_launch *launch)
{
    return tcasimKernelMemory(launch, ARG(launch, 0, float *), ARRAYS * block.points * sizeof(float));
}

static void fill_cost(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    (void)launch;
    cost->memory_bytes = ARRAYS * block.points * sizeof(float);
}

static void fill_run(const struct tcasim_launch *launch)
{
    fields_fill(&block, fields_of(arrays_of(launch), 0));
}

// A point is read from all arrays and written to one; its neighbours are in the caches.
static void jacobi_cost(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    uint64_t points = (uint64_t)block.size.i * (uint64_t)block.size.j * (uint64_t)block.size.k;
    (void)launch;
    cost->memory_bytes = points * ARRAYS * sizeof(float);
    cost->flops = points * FLOPS / SINGLE_PER_DOUBLE;
}

static void jacobi_run(const struct tcasim_launch *launch)
{
    struct fields f = fields_of(arrays_of(launch), ARG(launch, 1, int));
    float *residual = tcasimKernelMemory(launch, ARG(launch, 2, float *), sizeof *residual);
    *residual = sweep(&block, &f);
}

// Faces of j with the corners: as many rows as there are i, including the border.
static size_t face_floats(void)
{
    return (size_t)(block.size.i + 2) * (size_t)block.size.k;
}

static void face_cost(const struct tcasim_launch *launch, struct tcasim_kernel *cost)
{
    (void)launch;
    cost->memory_bytes = 2 * face_floats() * sizeof(float);
}

static void face_move(const struct tcasim_launch *launch, bool packs)
{
    float *p = fields_of(arrays_of(launch), ARG(launch, 1, int)).p;
    float *face = tcasimKernelMemory(launch, ARG(launch, 3, float *), face_floats() * sizeof *face);
    size_t row = (size_t)block.size.k;
    for (int i = -1; i <= block.size.i; i++) {
        float *inside = p + at(&block, i, ARG(launch, 2, int), 0), *outside = face + (size_t)(i + 1) * row;
        memcpy(packs ? outside : inside, packs ? inside : outside, row * sizeof *face);
    }
}

static void pack_run(const struct tcasim_launch *launch)
{
    face_move(launch, true);
}

static void unpack_run(const struct tcasim_launch *launch)
{
    face_move(launch, false);
}

static void kernels_register(void)
{
    static const size_t fill[] = {sizeof(float *)}, jacobi[] = {sizeof(float *), sizeof(int), sizeof(float *)},
                        face[] = {sizeof(float *), sizeof(int), sizeof(int), sizeof(float *)};
    static const struct {
        void (*kernel)(void);
        struct tcasim_kernel_definition definition;
    } kernels[] = {
        {fill_kernel, {"fill", 1, fill, fill_cost, OCCUPANCY, fill_run}},
        {jacobi_kernel, {"jacobi", 3, jacobi, jacobi_cost, OCCUPANCY, jacobi_run}},
        {pack_kernel, {"pack", 4, face, face_cost, OCCUPANCY, pack_run}},
        {unpack_kernel, {"unpack", 4, face, face_cost, OCCUPANCY, unpack_run}},
    };
    for (size_t i = 0; i < sizeof kernels / sizeof kernels[0]; i++) {
        cuda(tcasimKernelRegister((const void *)kernels[i].kernel, &kernels[i].definition));
    }
}

static void launch(void (*kernel)(void), void **args)
{
    const dim3 grid = {(unsigned)(block.points / 256 + 1), 1, 1}, threads = {256, 1, 1};
    cuda(cudaLaunchKernel((const void *)kernel, grid, threads, args, 0, NULL));
}

// --- halo -----------------------------------------------------------------------------------------------------------

static float *memory, *device_residual, *faces[4]; // of the device; faces: to and from both sides of j
static int lower_i, upper_i, lower_j, upper_j;     // neighbouring ranks, or MPI_PROC_NULL

// Planes of i are contiguous; their border points along j are still old and come with the faces of j.
static void halo_i(int odd)
{
    float *p = fields_of(memory, odd).p;
    int floats = (int)block.plane;
    MPI_Request requests[4];
    MPI_Irecv(p, floats, MPI_FLOAT, lower_i, TAG_I, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(p + (size_t)(block.size.i + 1) * block.plane, floats, MPI_FLOAT, upper_i, TAG_I, MPI_COMM_WORLD,
              &requests[1]);
    MPI_Isend(p + block.plane, floats, MPI_FLOAT, lower_i, TAG_I, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(p + (size_t)block.size.i * block.plane, floats, MPI_FLOAT, upper_i, TAG_I, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

static void face(void (*kernel)(void), int odd, int j, float *buffer, int partner)
{
    void *args[] = {&memory, &odd, &j, &buffer};
    if (partner != MPI_PROC_NULL) {
        launch(kernel, args);
    }
}

static void halo_j(int odd)
{
    int floats = (int)face_floats();
    MPI_Request requests[4];
    MPI_Irecv(faces[2], floats, MPI_FLOAT, lower_j, TAG_J, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(faces[3], floats, MPI_FLOAT, upper_j, TAG_J, MPI_COMM_WORLD, &requests[1]);
    face(pack_kernel, odd, 0, faces[0], lower_j);
    face(pack_kernel, odd, block.size.j - 1, faces[1], upper_j);
    cuda(cudaDeviceSynchronize());
    MPI_Isend(faces[0], floats, MPI_FLOAT, lower_j, TAG_J, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(faces[1], floats, MPI_FLOAT, upper_j, TAG_J, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    face(unpack_kernel, odd, -1, faces[2], lower_j);
    face(unpack_kernel, odd, block.size.j, faces[3], upper_j);
    cuda(cudaDeviceSynchronize());
}

// --- iterations -----------------------------------------------------------------------------------------------------

struct times {
    double calculation, halo, allreduce;
};

static double total(struct times t)
{
    return t.calculation + t.halo + t.allreduce;
}

static float iterate(int odd, struct times *t)
{
    float residual, sum;
    void *args[] = {&memory, &odd, &device_residual};
    double begin = MPI_Wtime();
    launch(jacobi_kernel, args);
    cuda(cudaMemcpy(&residual, device_residual, sizeof residual, cudaMemcpyDeviceToHost)); // waits for the kernel
    double calculated = MPI_Wtime();
    if (lower_i != MPI_PROC_NULL || upper_i != MPI_PROC_NULL) {
        halo_i(1 - odd);
    }
    if (lower_j != MPI_PROC_NULL || upper_j != MPI_PROC_NULL) {
        halo_j(1 - odd);
    }
    double exchanged = MPI_Wtime();
    MPI_Allreduce(&residual, &sum, 1, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double end = MPI_Wtime();
    *t = (struct times){calculated - begin, exchanged - calculated, end - exchanged};
    return sum;
}

static int iterations;
static struct times sums;
static double shortest = INFINITY, longest;

static float solve(void)
{
    float residual = 0;
    for (; iterations < WARM_UP + MEASURED; iterations++) {
        struct times t;
        residual = iterate(iterations % 2, &t);
        if (iterations >= WARM_UP) {
            sums.calculation += t.calculation / MEASURED;
            sums.halo += t.halo / MEASURED;
            sums.allreduce += t.allreduce / MEASURED;
            shortest = fmin(shortest, total(t));
            longest = fmax(longest, total(t));
        }
    }
    return residual;
}

// --- the reference --------------------------------------------------------------------------------------------------

static long compare_block(const struct block *whole, const float *p, const struct block *part, const float *values)
{
    long wrong = 0;
    for (int i = 0; i < part->size.i; i++) {
        for (int j = 0; j < part->size.j; j++) {
            wrong += memcmp(&p[at(whole, part->first.i + i, part->first.j + j, 0)], &values[at(part, i, j, 0)],
                            (size_t)part->size.k * sizeof *p) != 0;
        }
    }
    return wrong;
}

static struct block block_make(struct grid whole, int parts_i, int parts_j, int i, int j)
{
    struct block made = {.whole = whole, .size = whole};
    made.first = (struct grid){whole.i * i / parts_i, whole.j * j / parts_j, 0};
    made.size.i = whole.i * (i + 1) / parts_i - made.first.i;
    made.size.j = whole.j * (j + 1) / parts_j - made.first.j;
    made.plane = (size_t)(made.size.j + 2) * (size_t)made.size.k;
    made.points = (size_t)(made.size.i + 2) * made.plane;
    return made;
}

// Each rank compares its own block. Returns the number of rows that differ, plus one if the residual differs.
static long check(float residual)
{
    const struct block own = block;
    const struct block whole = block_make(block.whole, 1, 1, 0, 0);
    float *values = malloc(own.points * sizeof *values), expected = 0;
    cuda(cudaMemcpy(values, fields_of(memory, iterations % 2).p, own.points * sizeof *values, cudaMemcpyDeviceToHost));
    float *host = malloc(ARRAYS * whole.points * sizeof *host);
    if (values == NULL || host == NULL) {
        fail("out of memory");
    }
    block = whole;
    fields_fill(&block, fields_of(host, 0));
    for (int i = 0; i < iterations; i++) {
        struct fields f = fields_of(host, i % 2);
        expected = sweep(&block, &f);
    }
    long wrong = compare_block(&whole, fields_of(host, iterations % 2).p, &own, values), sum;
    block = own;
    wrong += fabsf(expected - residual) > 1e-3f * expected; // the order of the sums differs
    free(values);
    free(host);
    MPI_Allreduce(&wrong, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

// --- positions of ranks ---------------------------------------------------------------------------------------------

static int ladder(int rung, int side)
{
    return 2 * rung + side;
}

// The rank at a position of the grid of ranks.
static int rank_at(int parts_i, int parts_j, int i, int j)
{
    if (i < 0 || j < 0 || i >= parts_i || j >= parts_j) {
        return MPI_PROC_NULL;
    }
    if (parts_i == 1 || parts_j == 1) { // a line that alternates between the sides
        int position = i + j;
        return ladder(position / 2, position / 2 % 2 == 0 ? position % 2 : 1 - position % 2);
    }
    if (parts_j == 2) {
        return ladder(i, j);
    }
    if (parts_i == 2) {
        return ladder(j, i);
    }
    // Two columns of j on each half of the ladder, the second half backwards.
    return ladder(j / 2 % 2 == 0 ? j / 2 * parts_i + i : (j / 2 + 1) * parts_i - 1 - i, j % 2);
}

static void block_find(struct grid whole, int parts_i, int parts_j)
{
    for (int i = 0; i < parts_i; i++) {
        for (int j = 0; j < parts_j; j++) {
            if (rank_at(parts_i, parts_j, i, j) == rank) {
                block = block_make(whole, parts_i, parts_j, i, j);
                lower_i = rank_at(parts_i, parts_j, i - 1, j);
                upper_i = rank_at(parts_i, parts_j, i + 1, j);
                lower_j = rank_at(parts_i, parts_j, i, j - 1);
                upper_j = rank_at(parts_i, parts_j, i, j + 1);
                return;
            }
        }
    }
    fail("the split does not fit the number of ranks");
}

// --- main -----------------------------------------------------------------------------------------------------------

static struct grid size_of(const char *name)
{
    static const struct {
        const char *name;
        struct grid size;
    } sizes[] = {
        {"tiny", {16, 16, 32}}, {"small", {64, 64, 128}}, {"middle", {128, 128, 256}}, {"large", {256, 256, 512}}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        if (strcmp(sizes[i].name, name) == 0) {
            return sizes[i].size;
        }
    }
    fail("a size is one of tiny, small, middle, large");
    return (struct grid){0};
}

static void device_begin(void)
{
    void *args[] = {&memory};
    cuda(cudaMalloc((void **)&memory, ARRAYS * block.points * sizeof *memory));
    cuda(cudaMalloc((void **)&device_residual, sizeof *device_residual));
    for (int i = 0; i < 4; i++) {
        cuda(cudaMalloc((void **)&faces[i], face_floats() * sizeof *faces[i]));
    }
    kernels_register();
    launch(fill_kernel, args);
    cuda(cudaDeviceSynchronize());
    MPI_Barrier(MPI_COMM_WORLD);
}

static void print(const char *name, float residual)
{
    static const char *const what[] = {"calculation", "halo", "all-reduce"};
    double own[] = {sums.calculation, sums.halo, sums.allreduce, total(sums)}, all[4], least, most;
    MPI_Reduce(own, all, 4, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&shortest, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&longest, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank != 0) {
        return;
    }
    printf("# %s: residual %.6e after %d iterations\n", name, (double)residual, iterations);
    printf("series,operations,latency_us\n");
    for (int i = 0; i < 3; i++) {
        printf("%s %s,%d,%.3f\n", name, what[i], MEASURED, all[i] * 1e6 / ranks);
    }
    printf("series,operations,latency_us,min_latency_us,max_latency_us\n");
    printf("%s iteration,%d,%.3f,%.3f,%.3f\n", name, MEASURED, all[3] * 1e6 / ranks, least * 1e6, most * 1e6);
}

int main(int argc, char **argv)
{
    int parts_i, parts_j;
    long wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 4 || sscanf(argv[2], "%dx%d", &parts_i, &parts_j) != 2 || parts_i < 1 || parts_j < 1 ||
        parts_i * parts_j != ranks) {
        fail("usage: himeno SIZE SPLIT NAME [check], as many ranks as the split has parts");
    }
    block_find(size_of(argv[1]), parts_i, parts_j);
    device_begin();
    float residual = solve();
    print(argv[3], residual);
    if (argc > 4 && strcmp(argv[4], "check") == 0) {
        wrong = check(residual);
        if (rank == 0) {
            printf("# %ld wrong\n", wrong);
        }
    }
    MPI_Finalize();
    return wrong != 0;
}
