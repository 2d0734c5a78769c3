// The units of the GPU: each processes one item at a time, first come first served.
#include "models/gpu/internal.h"

static const char *const KINDS[] = {"copy_in", "copy_out", "copy", "fill", "kernel", "mark", "wait"};
static const struct sim_trace_field FIELDS[] = {{"kind", SIM_TRACE_NAME, KINDS}, {"bytes", SIM_TRACE_DECIMAL, NULL}};
static const struct sim_trace_point TRACE_BEGIN = {"work_begins", FIELDS, 2, "a unit takes an item of a queue"};
static const struct sim_trace_point TRACE_END = {"work_ends", FIELDS, 2, "the item is done"};

static void begin_event_run(void *ctx);
static void end_event_run(void *ctx);

void gpu_unit_init(gpu_t *gpu, enum gpu_unit_kind kind)
{
    struct gpu_unit *unit = &gpu->units[kind];
    unit->gpu = gpu;
    unit->waiting_end = &unit->waiting;
    sim_event_init(&unit->begin_event, begin_event_run, unit);
    sim_event_init(&unit->end_event, end_event_run, unit);
}

void gpu_unit_fini(struct gpu_unit *unit)
{
    gpu_copy_stream_end(unit, false);
    sim_event_cancel(unit->gpu->sim, &unit->begin_event);
    sim_event_cancel(unit->gpu->sim, &unit->end_event);
}

static struct gpu_unit *unit_of(gpu_t *gpu, const struct gpu_work *work)
{
    switch (work->kind) {
    case GPU_WORK_COPY_IN:
        return &gpu->units[GPU_UNIT_IN];
    case GPU_WORK_COPY_OUT:
        return &gpu->units[gpu->config.copy_engines == 2 ? GPU_UNIT_OUT : GPU_UNIT_IN];
    case GPU_WORK_COPY:
    case GPU_WORK_FILL:
    case GPU_WORK_KERNEL:
        return &gpu->units[GPU_UNIT_COMPUTE];
    case GPU_WORK_MARK:
    case GPU_WORK_WAIT:
        break;
    }
    sim_panic(gpu->name, "an item of kind %d needs no unit", (int)work->kind);
}

static bool is_over_the_bus(const struct gpu_work *work)
{
    return work->kind == GPU_WORK_COPY_IN || work->kind == GPU_WORK_COPY_OUT;
}

static void next_take(struct gpu_unit *unit)
{
    if (unit->item != NULL || unit->waiting == NULL) {
        return;
    }
    struct gpu_item *item = unit->waiting;
    unit->waiting = item->next_unit;
    if (unit->waiting == NULL) {
        unit->waiting_end = &unit->waiting;
    }
    gpu_t *gpu = unit->gpu;
    unit->item = item;
    unit->status = SIM_OK;
    sim_trace(gpu->sim, gpu->name, &TRACE_BEGIN, (const uint64_t[]){item->work.kind, item->work.bytes});
    if (is_over_the_bus(&item->work)) {
        sim_event_schedule(gpu->sim, &unit->begin_event, gpu->config.copy_setup_ps);
    } else {
        gpu_unit_end(unit, gpu_compute_ps(gpu, &item->work));
    }
}

void gpu_unit_submit(gpu_t *gpu, struct gpu_item *item)
{
    struct gpu_unit *unit = unit_of(gpu, &item->work);
    item->next_unit = NULL;
    *unit->waiting_end = item;
    unit->waiting_end = &item->next_unit;
    next_take(unit);
}

// What has arrived at the window by now becomes visible first; what arrives later does not count. true: the event runs
// again after that.
static bool settles(struct gpu_unit *unit, sim_event_t *event, const struct sim_work *work)
{
    static const struct sim_work settling = {"GPU", "writes before it become visible", false};
    gpu_t *gpu = unit->gpu;
    sim_cause_label(gpu->sim, gpu->name, unit->settling ? &settling : work);
    uint64_t pending_ps = unit->settling ? 0 : gpu_target_pending_ps(gpu);
    unit->settling = pending_ps > 0;
    if (unit->settling) {
        sim_event_schedule(gpu->sim, event, pending_ps);
    }
    return unit->settling;
}

static void begin_event_run(void *ctx)
{
    static const struct sim_work setup = {"GPU", "copy engine's start", false};
    struct gpu_unit *unit = ctx;
    if (!settles(unit, &unit->begin_event, &setup)) {
        gpu_target_settle(unit->gpu);
        gpu_copy_begin(unit);
    }
}

void gpu_unit_end(struct gpu_unit *unit, uint64_t delay_ps)
{
    unit->moving = false;
    sim_event_schedule(unit->gpu->sim, &unit->end_event, delay_ps);
}

static void end_event_run(void *ctx)
{
    static const struct sim_work ending = {"GPU", "work of a unit", false};
    struct gpu_unit *unit = ctx;
    gpu_t *gpu = unit->gpu;
    struct gpu_item *item = unit->item;
    if (is_over_the_bus(&item->work)) {
        sim_cause_label(gpu->sim, gpu->name, &ending);
    } else if (settles(unit, &unit->end_event, &ending)) {
        return;
    }
    gpu_target_settle(gpu);
    enum sim_status status = unit->status;
    if (!is_over_the_bus(&item->work)) {
        gpu_compute_apply(gpu, &item->work);
    }
    sim_trace(gpu->sim, gpu->name, &TRACE_END, (const uint64_t[]){item->work.kind, item->work.bytes});
    unit->item = NULL;
    next_take(unit);
    gpu_item_done(item, status);
}
