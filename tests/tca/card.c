#include "card.h"

#include <errno.h>
#include <string.h>

#include "sim/platform/routes.h"

#define UNIT  65536u // allocations are whole pages here
#define UNITS (CARD_GPU_BYTES / UNIT)

struct card {
    bool installed;
    struct cluster *cluster;
    struct backend_process *process;
    struct backend inner; // the node's own
    struct backend_ops ops;
    peach2_handle_t *board, *old_board;
    struct backend_buffer memory[CARD_GPUS];
    uint32_t units[CARD_GPUS][UNITS]; // allocation: its pages at its first one
    uint32_t queues;
    unsigned pins;
    uint64_t tickets;
};

static struct card cards[SITE_NODES_MAX];

static struct card *card_of(void *ctx)
{
    for (unsigned node = 0; node < SITE_NODES_MAX; node++) {
        if (cards[node].installed && cards[node].inner.ctx == ctx) {
            return &cards[node];
        }
    }
    return NULL;
}

// --- the driver -----------------------------------------------------------------------------------------------------

static unsigned count(void *ctx)
{
    (void)ctx;
    return CARD_GPUS;
}

static int info(void *ctx, unsigned gpu, struct backend_gpu_info *info_out)
{
    (void)ctx;
    *info_out = (struct backend_gpu_info){.name = "Card",
                                          .memory_bytes = CARD_GPU_BYTES,
                                          .bar_bytes = CARD_GPU_BYTES,
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
    uint32_t *units = card_of(ctx)->units[gpu], pages = (uint32_t)((bytes + UNIT - 1) / UNIT);
    for (uint32_t first = 0; bytes <= CARD_GPU_BYTES && first < UNITS; first++) {
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
    card_of(ctx)->units[gpu][device_address / UNIT] = 0;
    return 0;
}

// All of the memory lies in the BAR, where it is.
static int pin(void *ctx, unsigned gpu, uint64_t device_address, uint64_t bytes, uint64_t *offset_out,
               uint64_t *bus_address_out)
{
    (void)bytes;
    card_of(ctx)->pins++;
    *offset_out = device_address;
    *bus_address_out = card_of(ctx)->memory[gpu].bus_address + device_address;
    return 0;
}

static int unpin(void *ctx, unsigned gpu, uint64_t offset)
{
    (void)gpu, (void)offset;
    card_of(ctx)->pins--;
    return 0;
}

static int queue_create(void *ctx, unsigned gpu, uint32_t *queue_out)
{
    (void)gpu;
    *queue_out = card_of(ctx)->queues++;
    return 0;
}

static int queue_destroy(void *ctx, unsigned gpu, uint32_t queue)
{
    (void)ctx, (void)gpu, (void)queue;
    return 0;
}

static int submit(void *ctx, unsigned gpu, uint32_t queue, const struct backend_gpu_work *work, uint64_t *ticket_out)
{
    struct card *card = card_of(ctx);
    (void)queue;
    uint8_t *device = (uint8_t *)card->memory[gpu].address + work->device_address;
    uint8_t *host = site_memory(&card->cluster->site, peach2_node(card->board), work->other_address);
    if (work->kind == BACKEND_GPU_SET) {
        memset(device, work->value, work->bytes);
    } else if (work->kind == BACKEND_GPU_TO_DEVICE) {
        memcpy(device, host, work->bytes);
    } else if (work->kind == BACKEND_GPU_TO_HOST) {
        memcpy(host, device, work->bytes);
    }
    *ticket_out = ++card->tickets;
    return 0;
}

static int poll(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket, uint64_t *ended_ps_out)
{
    (void)ctx, (void)gpu, (void)queue, (void)ticket, (void)ended_ps_out;
    return 1;
}

static int wait(void *ctx, unsigned gpu, uint32_t queue, uint64_t ticket)
{
    (void)ctx, (void)gpu, (void)queue, (void)ticket;
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
    return bar >= BACKEND_BAR_GPU0 && bar < BACKEND_BAR_GPU0 + CARD_GPUS;
}

static uint64_t bar_bytes(void *ctx, enum backend_bar bar)
{
    return is_gpu(bar) ? CARD_GPU_BYTES : card_of(ctx)->inner.ops->bar_bytes(ctx, bar);
}

static uint64_t bar_bus_address(void *ctx, enum backend_bar bar)
{
    struct card *card = card_of(ctx);
    return is_gpu(bar) ? card->memory[bar - BACKEND_BAR_GPU0].bus_address : card->inner.ops->bar_bus_address(ctx, bar);
}

// --- life -----------------------------------------------------------------------------------------------------------

void card_install(struct cluster *cluster, peach2_handle_t *board)
{
    struct backend_process *process = backend_current();
    uint32_t node = peach2_node(board);
    struct card *card = &cards[node];
    *card = (struct card){.installed = true, .cluster = cluster, .process = process, .inner = process->backend};
    for (unsigned gpu = 0; gpu < CARD_GPUS; gpu++) {
        card->memory[gpu] = site_pinned(board, CARD_GPU_BYTES);
        memset(card->memory[gpu].address, 0xee, CARD_GPU_BYTES);
    }
    card->ops = *card->inner.ops;
    card->ops.gpu = &gpu_ops;
    card->ops.bar_bytes = bar_bytes;
    card->ops.bar_bus_address = bar_bus_address;
    process->backend.ops = &card->ops;
    card->old_board = process->board;
    const struct peach2_routing routing = plat_routes_find(cluster->site.scene, node);
    EXPECT_EQ(peach2_open(&process->backend, &routing, &card->board), 0);
    process->board = card->board;
}

void card_remove(struct cluster *cluster, peach2_handle_t *board)
{
    struct card *card = &cards[peach2_node(board)];
    (void)cluster;
    card->process->backend = card->inner;
    card->process->board = card->old_board;
    peach2_close(card->board);
    for (unsigned gpu = 0; gpu < CARD_GPUS; gpu++) {
        card->inner.ops->free_pinned(card->inner.ctx, &card->memory[gpu]);
    }
    card->installed = false;
}

uint8_t *card_memory(uint32_t node, const void *pointer)
{
    uint64_t place = (uint64_t)(uintptr_t)pointer - 0x2300000000ull;
    return (uint8_t *)cards[node].memory[place >> 36].address + (place & 0xfffffffffull);
}

unsigned card_allocations(uint32_t node)
{
    unsigned allocations = 0;
    for (unsigned gpu = 0; gpu < CARD_GPUS; gpu++) {
        for (unsigned i = 0; i < UNITS; i++) {
            allocations += cards[node].units[gpu][i] != 0;
        }
    }
    return allocations;
}

unsigned card_pins(uint32_t node)
{
    return cards[node].pins;
}
