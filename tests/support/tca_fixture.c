#include "tca_fixture.h"

#include <errno.h>
#include <string.h>

#include "sim/platform/routes.h"

#define UNIT  65536u // allocations are whole pages
#define UNITS (TCA_FIXTURE_GPU_BYTES / UNIT)

struct tca_fixture {
    bool installed;
    struct cluster *cluster;
    struct backend_process *process;
    struct backend inner; // the node's backend
    struct backend_ops ops;
    peach2_handle_t *board, *old_board;
    struct backend_buffer memory[TCA_FIXTURE_GPUS];
    uint32_t units[TCA_FIXTURE_GPUS][UNITS]; // allocation: its pages at its first one
    uint32_t queues;
    unsigned pins;
    uint64_t tickets;
    struct { // the last submission, if it is a fill that nothing has waited for
        bool there;
        unsigned gpu;
        struct backend_gpu_work work;
    } fill;
};

static struct tca_fixture fixtures[SITE_NODES_MAX];

static struct tca_fixture *fixture_of(void *ctx)
{
    for (unsigned node = 0; node < SITE_NODES_MAX; node++) {
        if (fixtures[node].installed && fixtures[node].inner.ctx == ctx) {
            return &fixtures[node];
        }
    }
    return NULL;
}

// --- the driver -----------------------------------------------------------------------------------------------------

static unsigned count(void *ctx)
{
    (void)ctx;
    return TCA_FIXTURE_GPUS;
}

static int info(void *ctx, unsigned gpu, struct backend_gpu_info *info_out)
{
    (void)ctx;
    *info_out = (struct backend_gpu_info){.name = "Fixture",
                                          .memory_bytes = TCA_FIXTURE_GPU_BYTES,
                                          .bar_bytes = TCA_FIXTURE_GPU_BYTES,
                                          .pci_bus = gpu,
                                          .staging_bytes = 65536};
    return 0;
}

static bool is_free(const uint32_t *units, uint32_t first, uint32_t pages)
{
    for (uint32_t i = 0; i < UNITS; i++) {
        if (units[i] != 0 && i < first + pages && first < i + units[i]) {
            return false;
        }
    }
    return first + pages <= UNITS;
}

static int alloc(void *ctx, unsigned gpu, uint64_t bytes, uint64_t *device_address_out)
{
    uint32_t *units = fixture_of(ctx)->units[gpu], pages = (uint32_t)((bytes + UNIT - 1) / UNIT);
    for (uint32_t first = 0; bytes <= TCA_FIXTURE_GPU_BYTES && first < UNITS; first++) {
        if (is_free(units, first, pages)) {
            units[first] = pages;
            *device_address_out = (uint64_t)first * UNIT;
            return 0;
        }
    }
    return -ENOMEM;
}

static int free_memory(void *ctx, unsigned gpu, uint64_t device_address)
{
    fixture_of(ctx)->units[gpu][device_address / UNIT] = 0;
    return 0;
}

// All of the memory is in the BAR, at its own address.
static int pin(void *ctx, unsigned gpu, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out)
{
    (void)bytes;
    fixture_of(ctx)->pins++;
    *offset_out = device_address;
    *bus_address_out = fixture_of(ctx)->memory[gpu].bus_address + device_address;
    return 0;
}

static int unpin(void *ctx, unsigned gpu, uint64_t offset)
{
    (void)gpu, (void)offset;
    fixture_of(ctx)->pins--;
    return 0;
}

static int queue_create(void *ctx, unsigned gpu, uint32_t *queue_out)
{
    (void)gpu;
    *queue_out = fixture_of(ctx)->queues++;
    return 0;
}

static int queue_destroy(void *ctx, unsigned gpu, uint32_t queue)
{
    (void)ctx, (void)gpu, (void)queue;
    return 0;
}

static void fill_end(struct tca_fixture *fixture)
{
    if (fixture->fill.there) {
        fixture->fill.there = false;
        memset((uint8_t *)fixture->memory[fixture->fill.gpu].address + fixture->fill.work.device_address,
               fixture->fill.work.value, fixture->fill.work.bytes);
    }
}

static int submit(void *ctx, unsigned gpu, uint32_t queue, const struct backend_gpu_work *work, uint64_t *ticket_out)
{
    struct tca_fixture *fixture = fixture_of(ctx);
    (void)queue;
    uint8_t *device = (uint8_t *)fixture->memory[gpu].address + work->device_address;
    uint8_t *host = site_memory(&fixture->cluster->site, peach2_node(fixture->board), work->other_address);
    fill_end(fixture);
    if (work->kind == BACKEND_GPU_SET) {
        fixture->fill.there = true;
        fixture->fill.gpu = gpu;
        fixture->fill.work = *work;
    } else if (work->kind == BACKEND_GPU_TO_DEVICE) {
        memcpy(device, host, work->bytes);
    } else if (work->kind == BACKEND_GPU_TO_HOST) {
        memcpy(host, device, work->bytes);
    }
    *ticket_out = ++fixture->tickets;
    return 0;
}

static int poll(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket, uint64_t *ended_ps_out)
{
    (void)gpu, (void)queue, (void)ticket, (void)ended_ps_out;
    fill_end(fixture_of(ctx));
    return 1;
}

static int wait(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket)
{
    (void)gpu, (void)queue, (void)ticket;
    fill_end(fixture_of(ctx));
    return 0;
}

static const struct backend_gpu_ops gpu_ops = {
    .count = count,
    .info = info,
    .alloc = alloc,
    .free = free_memory,
    .pin = pin,
    .unpin = unpin,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .submit = submit,
    .poll = poll,
    .wait = wait,
};

static bool is_gpu(enum backend_bar bar)
{
    return bar >= BACKEND_BAR_GPU0 && bar < BACKEND_BAR_GPU0 + TCA_FIXTURE_GPUS;
}

static uint64_t bar_bytes(void *ctx, enum backend_bar bar)
{
    return is_gpu(bar) ? TCA_FIXTURE_GPU_BYTES : fixture_of(ctx)->inner.ops->bar_bytes(ctx, bar);
}

static uint64_t bar_bus_address(void *ctx, enum backend_bar bar)
{
    struct tca_fixture *fixture = fixture_of(ctx);
    return is_gpu(bar) ? fixture->memory[bar - BACKEND_BAR_GPU0].bus_address
                       : fixture->inner.ops->bar_bus_address(ctx, bar);
}

// --- life -----------------------------------------------------------------------------------------------------------

void tca_fixture_install(struct cluster *cluster, peach2_handle_t *board)
{
    struct backend_process *process = backend_current();
    uint32_t node = peach2_node(board);
    struct tca_fixture *fixture = &fixtures[node];
    *fixture =
        (struct tca_fixture){.installed = true, .cluster = cluster, .process = process, .inner = process->backend};
    for (unsigned gpu = 0; gpu < TCA_FIXTURE_GPUS; gpu++) {
        fixture->memory[gpu] = site_pinned(board, TCA_FIXTURE_GPU_BYTES);
        memset(fixture->memory[gpu].address, 0xee, TCA_FIXTURE_GPU_BYTES);
    }
    fixture->ops = *fixture->inner.ops;
    fixture->ops.gpu = &gpu_ops;
    fixture->ops.bar_bytes = bar_bytes;
    fixture->ops.bar_bus_address = bar_bus_address;
    process->backend.ops = &fixture->ops;
    fixture->old_board = process->board;
    const struct peach2_routing routing = plat_routing_of(plat_machine_routes(cluster->site.machine), node);
    EXPECT_EQ(peach2_open(&process->backend, &routing, &fixture->board), 0);
    process->board = fixture->board;
}

void tca_fixture_remove(struct cluster *cluster, peach2_handle_t *board)
{
    struct tca_fixture *fixture = &fixtures[peach2_node(board)];
    (void)cluster;
    fixture->process->backend = fixture->inner;
    fixture->process->board = fixture->old_board;
    peach2_close(fixture->board);
    for (unsigned gpu = 0; gpu < TCA_FIXTURE_GPUS; gpu++) {
        fixture->inner.ops->free_pinned(fixture->inner.ctx, &fixture->memory[gpu]);
    }
    fixture->installed = false;
}

uint8_t *tca_fixture_memory(uint32_t node, const void *pointer)
{
    uint64_t offset = (uint64_t)(uintptr_t)pointer - 0x2300000000ull;
    return (uint8_t *)fixtures[node].memory[offset >> 36].address + (offset & 0xfffffffffull);
}

unsigned tca_fixture_allocations(uint32_t node)
{
    unsigned allocations = 0;
    for (unsigned gpu = 0; gpu < TCA_FIXTURE_GPUS; gpu++) {
        for (unsigned i = 0; i < UNITS; i++) {
            allocations += fixtures[node].units[gpu][i] != 0;
        }
    }
    return allocations;
}

unsigned tca_fixture_pins(uint32_t node)
{
    return fixtures[node].pins;
}
