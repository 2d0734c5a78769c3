// The kernel driver of the HCA for a process of the simulation: the firmware's commands, with the process's memory
// pinned for them.
#include <errno.h>
#include <unistd.h>
#include <stdlib.h>

#include "sim/platform/backend_inproc.h"

enum { PAGE_BYTES = 4096 };

static int to_errno(enum sim_status status)
{
    switch (status) {
    case SIM_OK:
        return 0;
    case SIM_ERR_NO_MEMORY:
        return -ENOMEM;
    case SIM_ERR_BUSY:
        return -EBUSY;
    case SIM_ERR_INVALID:
    case SIM_ERR_NOT_FOUND:
    case SIM_ERR_EXISTS:
    case SIM_ERR_IO:
    case SIM_ERR_RANGE:
    case SIM_ERR_FAULT:
    case SIM_ERR_TIMEOUT:
    case SIM_ERR_UNSUPPORTED:
        break;
    }
    return -EINVAL;
}

struct settling {
    struct hca_fence fence;
    sim_t *sim;
    sim_condition_t condition;
    bool done;
};

static void settled(void *ctx)
{
    struct settling *settling = ctx;
    settling->done = true;
    sim_condition_signal(settling->sim, &settling->condition);
}

// A command that destroys an object returns when no access to the object's memory is in flight any more. Outside
// threads the process has ended, so that nobody uses its memory.
static int settle(const struct plat_backend_inproc *backend)
{
    const struct sim_wait_reason reason = {"hca", "the adapter to settle", 0, 0};
    struct settling settling = {.fence = {.done = settled, .ctx = &settling}, .sim = backend->sim};
    if (!sim_thread_is_running(backend->sim)) {
        return 0;
    }
    sim_condition_init(&settling.condition);
    bool waits = hca_fw_fence(backend->hca, &settling.fence);
    while (waits && !settling.done) {
        (void)sim_condition_wait(backend->sim, &settling.condition, SIM_NEVER_PS, &reason);
    }
    return 0;
}

// --- removal of an HCA -----------------------------------------------------------------------------------------------
// As mlx4_core after a fatal error: every process is notified, no object can be created, and objects can be destroyed.

static bool event_there(host_memory_t *memory, const struct hca_eq_init *init, uint32_t count)
{
    const struct hca_eqe *ring = host_memory_at(memory, init->base);
    return ring[count & (init->entries - 1)].owner == ((count & init->entries) == 0);
}

// Writes the event after those that have arrived and were not read; others may have been lost in flight.
static void event_put(host_memory_t *memory, const struct hca_eq_init *init)
{
    uint32_t count = (uint32_t) * (const uint64_t *)host_memory_at(memory, init->record), left = init->entries - 1;
    while (left > 0 && event_there(memory, init, count)) {
        count++;
        left--;
    }
    const struct hca_eqe eqe = {.type = HCA_EVENT_DEVICE_FATAL, .owner = (count & init->entries) == 0};
    uint64_t address = init->base + (count & (init->entries - 1)) * sizeof eqe;
    (void)host_memory_pcie_ops.write(memory, address, &eqe, sizeof eqe);
}

static void hca_gone(void *ctx, hca_t *hca)
{
    struct hca_eq_init init;
    for (uint32_t eqn = 1; eqn <= HCA_UAR_PAGES; eqn++) { // one for each process
        if (hca_eq_query(hca, eqn, &init) == SIM_OK) {
            event_put(ctx, &init);
        }
    }
}

void plat_hca_watch(hca_t *hca, host_memory_t *memory)
{
    hca_set_gone(hca, hca_gone, memory);
}

// --- regions ---------------------------------------------------------------------------------------------------------

static int region_create(struct plat_backend_inproc *backend, const struct hca_command *wanted, const uint64_t *pages,
                         uint32_t *key_out)
{
    struct hca_command command = *wanted;
    command.mr_register.page_bytes = PAGE_BYTES;
    command.mr_register.pages = pages;
    int status = to_errno(hca_fw_command(backend->hca, &command));
    *key_out = command.number;
    return status;
}

// Pinned buffers, and memory that a caller has pinned elsewhere, are contiguous on the bus.
static int region_on_bus(struct plat_backend_inproc *backend, struct hca_command *command, uint64_t bus)
{
    const struct hca_mr_init *init = &command->mr_register;
    if (bus % PAGE_BYTES != init->iova % PAGE_BYTES) {
        return -EINVAL; // only whole pages are translated
    }
    uint64_t count = host_memory_page_count(init->iova, init->bytes);
    uint64_t *pages = malloc(count * sizeof *pages);
    if (pages == NULL) {
        return -ENOMEM;
    }
    for (uint64_t i = 0; i < count; i++) {
        pages[i] = bus - bus % PAGE_BYTES + i * PAGE_BYTES;
    }
    int status = region_create(backend, command, pages, &command->number);
    free(pages);
    return status;
}

// Any other memory of the program is pinned page by page until the region is destroyed.
static int region_of_program(struct plat_backend_inproc *backend, struct hca_command *command)
{
    const struct hca_mr_init *init = &command->mr_register;
    uint64_t address = init->iova + init->displacement;
    if (!plat_process_memory_exists(getpid(), address, init->bytes, (init->access & HCA_LOCAL_WRITE) != 0)) {
        return -EFAULT;
    }
    uint64_t count = host_memory_page_count(init->iova, init->bytes);
    struct plat_pinned_region *region = malloc(sizeof *region + count * sizeof *region->pages);
    if (region == NULL) {
        return -ENOMEM;
    }
    int status = to_errno(host_memory_pin(backend->memory, &backend->owner, address, init->bytes, region->pages));
    if (status != 0) {
        free(region);
        return status;
    }
    status = region_create(backend, command, region->pages, &command->number);
    if (status != 0) {
        host_memory_unpin(backend->memory, region->pages, count);
        free(region);
        return status;
    }
    region->key = command->number;
    region->count = count;
    region->next = backend->pinned;
    backend->pinned = region;
    return 0;
}

static int mr_register(struct plat_backend_inproc *backend, struct hca_command *command)
{
    const struct hca_mr_init *init = &command->mr_register;
    uint64_t first, last, address = init->iova + init->displacement;
    if (init->bytes == 0 || init->iova + init->bytes < init->iova || address + init->bytes < address ||
        init->displacement % PAGE_BYTES != 0) {
        return -EINVAL;
    }
    if (init->bus_address != 0) {
        return region_on_bus(backend, command, init->bus_address);
    }
    const host_memory_t *memory = backend->memory;
    bool pinned = host_memory_bus_address(memory, (const void *)(uintptr_t)address, &first) &&
                  host_memory_bus_address(memory, (const void *)(uintptr_t)(address + init->bytes - 1), &last);
    return pinned ? region_on_bus(backend, command, first) : region_of_program(backend, command);
}

static void region_forget(struct plat_backend_inproc *backend, uint32_t key)
{
    struct plat_pinned_region **link = &backend->pinned;
    while (*link != NULL && (*link)->key != key) {
        link = &(*link)->next;
    }
    struct plat_pinned_region *region = *link;
    if (region != NULL) {
        *link = region->next;
        host_memory_unpin(backend->memory, region->pages, region->count);
        free(region);
    }
}

// --- commands --------------------------------------------------------------------------------------------------------

static bool settles(const struct hca_command_info *info, const struct hca_command *command)
{
    bool resets = (info->traits & HCA_SETTLES_RESET) != 0 && (command->qp_modify.mask & HCA_QP_STATE) != 0 &&
                  command->qp_modify.attr.state == HCA_RESET;
    return resets || (info->traits & HCA_SETTLES) != 0;
}

static const struct sim_work commanding = {"command", "the adapter to stop a queue pair", false};

int plat_backend_hca_command(void *ctx, struct hca_command *command)
{
    struct plat_backend_inproc *backend = ctx;
    const struct hca_command_info *info = hca_command_info(command->id);
    if (info == NULL) {
        return -EINVAL;
    }
    if ((info->traits & HCA_NEEDS_DEVICE) != 0 && hca_is_gone(backend->hca)) {
        return -EIO;
    }
    if (command->id == HCA_CMD_MR_REGISTER) {
        return mr_register(backend, command);
    }
    if (sim_thread_is_running(backend->sim) && !hca_is_gone(backend->hca)) {
        host_core_spend(backend->core, hca_fw_command_ps(backend->hca, command), &commanding);
    }
    enum sim_status status = hca_fw_command(backend->hca, command);
    int error = status == SIM_OK && settles(info, command) ? settle(backend) : to_errno(status);
    if (error == 0 && command->id == HCA_CMD_MR_DEREGISTER) {
        region_forget(backend, command->number);
    }
    return error;
}
