// The GPU as a target: writes become visible in order, reads are processed in order, a bounded number at a time, and see
// every write that arrived before them. The page of an address is looked up at the
// instant of the access itself: an unpinned page is never accessed, whatever is in flight.
#include "models/gpu/internal.h"
#include "models/pcie/completer.h"

enum { WATCHED_BYTES = 8, PROCESSOR_ID = 0 }; // requester ID of the root complex's loads

static const struct sim_work writing = {"GPU", "write becomes visible", false};
static const struct sim_work reading = {"GPU", "read", false};

static void commit_event_run(void *ctx);
static void read_event_run(void *ctx);

void gpu_target_init(gpu_t *gpu)
{
    gpu_fifo_init(&gpu->committing);
    gpu_fifo_init(&gpu->reads_waiting);
    gpu_fifo_init(&gpu->reads_active);
    sim_event_init(&gpu->commit_event, commit_event_run, gpu);
    sim_event_init(&gpu->read_event, read_event_run, gpu);
}

void gpu_target_fini(gpu_t *gpu)
{
    sim_event_cancel(gpu->sim, &gpu->read_event);
    sim_event_cancel(gpu->sim, &gpu->commit_event);
    gpu_fifo_fini(&gpu->reads_active);
    gpu_fifo_fini(&gpu->reads_waiting);
    gpu_fifo_fini(&gpu->committing);
}

static void schedule_front(gpu_t *gpu, const struct pcie_ring *fifo, sim_event_t *event)
{
    if (fifo->count > 0 && !sim_event_pending(event)) {
        sim_event_schedule_at(gpu->sim, event, gpu_fifo_front(fifo)->due_ps);
    }
}

static bool front_is_due(const gpu_t *gpu, const struct pcie_ring *fifo)
{
    return fifo->count > 0 && gpu_fifo_front(fifo)->due_ps <= sim_now_ps(gpu->sim);
}

// --- writes ----------------------------------------------------------------------------------------------------------

struct write_target {
    gpu_t *gpu;
    uint64_t bus_to_device; // offset to add, modulo 2^64
};

static void watch_note(gpu_t *gpu, uint64_t address, uint32_t bytes)
{
    struct gpu_watch *watch = &gpu->watch;
    if (watch->written == 0 && watch->address < address + bytes && address < watch->address + WATCHED_BYTES) {
        watch->written = sim_cause_now(gpu->sim);
    }
}

static void run_store(void *ctx, uint64_t bus_address, const void *data, uint32_t bytes)
{
    const struct write_target *target = ctx;
    watch_note(target->gpu, bus_address + target->bus_to_device, bytes);
    target->gpu->counters[GPU_BAR_WRITE_BYTES] += bytes;
    gpu_memory_store(target->gpu, bus_address + target->bus_to_device, data, bytes);
}

static void commit(gpu_t *gpu)
{
    while (front_is_due(gpu, &gpu->committing)) {
        struct gpu_slot slot = gpu_fifo_pop(&gpu->committing);
        pcie_tlp_t *tlp = slot.tlp;
        sim_cause_arrive(gpu->sim, slot.cause);
        uint64_t device_address;
        // No request crosses 4 KB, so none crosses a page.
        if (gpu_window_find(gpu, tlp->address, &device_address)) {
            struct write_target target = {gpu, device_address - tlp->address};
            pcie_tlp_for_runs(tlp, run_store, &target);
        } else {
            gpu->counters[GPU_UNSUPPORTED_WRITES]++;
        }
        pcie_tlp_unref(tlp);
    }
    schedule_front(gpu, &gpu->committing, &gpu->commit_event);
}

static void commit_event_run(void *ctx)
{
    commit(ctx);
}

static void write_take(gpu_t *gpu, pcie_tlp_t *tlp)
{
    uint64_t device_address;
    if (tlp->dwords > 0 && gpu_window_find(gpu, tlp->address, &device_address)) {
        (void)gpu_l2_touch(gpu, device_address, 4u * tlp->dwords);
    }
    gpu->visible_ps = sim_now_ps(gpu->sim) + gpu->config.write_ps;
    pcie_end_release(gpu->end, tlp);
    sim_cause_t cause = sim_cause_extend(gpu->sim, sim_cause_now(gpu->sim), gpu->visible_ps, gpu->name, &writing);
    gpu_fifo_push(&gpu->committing, &(struct gpu_slot){.tlp = tlp, .due_ps = gpu->visible_ps, .cause = cause});
    schedule_front(gpu, &gpu->committing, &gpu->commit_event);
}

// --- reads -----------------------------------------------------------------------------------------------------------

static uint64_t read_time_ps(gpu_t *gpu, const pcie_tlp_t *tlp)
{
    uint64_t device_address, misses = 0;
    if (gpu_window_find(gpu, tlp->address, &device_address)) {
        misses = gpu_l2_touch(gpu, device_address, 4u * tlp->dwords);
    }
    gpu->counters[GPU_L2_MISSES] += misses;
    return gpu->config.read_ps + (misses > 0 ? gpu->config.l2_miss_ps : 0);
}

static void reads_start(gpu_t *gpu)
{
    while (gpu->reads_at_work < gpu->config.reads_max && gpu->reads_waiting.count > 0) {
        struct gpu_slot slot = gpu_fifo_pop(&gpu->reads_waiting);
        pcie_end_release(gpu->end, slot.tlp);
        uint64_t ready_ps = sim_now_ps(gpu->sim) + read_time_ps(gpu, slot.tlp);
        slot.due_ps = ready_ps > slot.due_ps ? ready_ps : slot.due_ps;
        slot.cause = sim_cause_extend(gpu->sim, slot.cause, slot.due_ps, gpu->name, &reading);
        gpu->reads_at_work++;
        gpu_fifo_push(&gpu->reads_active, &slot);
        schedule_front(gpu, &gpu->reads_active, &gpu->read_event);
    }
}

static void read_take(gpu_t *gpu, pcie_tlp_t *tlp)
{
    gpu_fifo_push(&gpu->reads_waiting,
                  &(struct gpu_slot){.tlp = tlp, .due_ps = gpu->visible_ps, .cause = sim_cause_now(gpu->sim)});
    reads_start(gpu);
}

// A processor that polls reads the same word again and again: if it was written since the last read, that write causes
// the answer, and the answer's way back is part of the polling. The processor ends the polling (models/host).
static void watch_poll(gpu_t *gpu, uint64_t address)
{
    static const struct sim_work until_poll = {"polling", "until the next load comes", false};
    static const struct sim_work way_back = {"polling", "the load that sees it", true};
    struct gpu_watch *watch = &gpu->watch;
    if (watch->address == address && watch->written != 0) {
        sim_cause_follow(gpu->sim, watch->written, gpu->name, &until_poll);
        sim_cause_mark(gpu->sim, gpu->name, &way_back);
    }
    *watch = (struct gpu_watch){.address = address};
}

static void read_answer(gpu_t *gpu, pcie_tlp_t *request, uint64_t device_address)
{
    struct pcie_completions answers = pcie_completions_of(request, gpu->config.mps_bytes, gpu->config.completion_bytes);
    uint32_t offset, bytes;
    gpu->counters[GPU_BAR_READ_BYTES] += answers.total;
    if (answers.total <= WATCHED_BYTES && request->requester == PROCESSOR_ID) {
        watch_poll(gpu, device_address);
    }
    while (pcie_completions_next(&answers, &offset, &bytes)) {
        pcie_tlp_t *completion = pcie_tlp_completion(request, gpu->config.requester_id, offset, bytes,
                                                     gpu->memory + device_address + offset);
        gpu_egress_push(gpu, completion, pcie_completions_over(&answers));
    }
}

static void read_event_run(void *ctx)
{
    gpu_t *gpu = ctx;
    commit(gpu); // what is due at this instant arrived before the read
    while (front_is_due(gpu, &gpu->reads_active)) {
        struct gpu_slot slot = gpu_fifo_pop(&gpu->reads_active);
        pcie_tlp_t *request = slot.tlp;
        sim_cause_arrive(gpu->sim, slot.cause);
        uint64_t device_address;
        if (gpu_window_find(gpu, pcie_tlp_first_byte(request), &device_address)) {
            read_answer(gpu, request, device_address);
        } else {
            gpu->counters[GPU_UNSUPPORTED_READS]++;
            gpu_egress_push(gpu, pcie_unsupported(request, gpu->config.requester_id), true);
        }
        pcie_tlp_unref(request);
    }
    schedule_front(gpu, &gpu->reads_active, &gpu->read_event);
}

void gpu_target_read_left(gpu_t *gpu)
{
    gpu->reads_at_work--;
    reads_start(gpu);
}

// --- arrival ---------------------------------------------------------------------------------------------------------

uint64_t gpu_target_pending_ps(const gpu_t *gpu)
{
    uint64_t now_ps = sim_now_ps(gpu->sim);
    return gpu->visible_ps > now_ps ? gpu->visible_ps - now_ps : 0;
}

void gpu_target_settle(gpu_t *gpu)
{
    sim_cause_t cause = sim_cause_now(gpu->sim);
    commit(gpu);
    sim_cause_arrive(gpu->sim, cause);
}

void gpu_target_receive(gpu_t *gpu, pcie_tlp_t *tlp)
{
    if (tlp->kind == PCIE_TLP_MWR) {
        gpu->counters[GPU_BAR_WRITES]++;
        write_take(gpu, tlp);
    } else {
        gpu->counters[GPU_BAR_READS]++;
        read_take(gpu, tlp);
    }
}
