// A path as the models on it describe it.
#include "models/flow/flow.h"

void flow_path_step(struct flow_path *path, struct flow_stage *stage, double ps_per_byte, uint32_t buffer_bytes)
{
    if (path->step_count == FLOW_STEPS_MAX || path->input >= FLOW_INPUTS_MAX) {
        path->refused = true;
        return;
    }
    path->steps[path->step_count++] = (struct flow_step){.stage = stage,
                                                         .ps_per_byte = ps_per_byte,
                                                         .input = path->input,
                                                         .buffer_bytes = buffer_bytes,
                                                         .enters = path->enters};
    path->enters = false;
}

void flow_path_sorted(struct flow_path *path)
{
    if (path->step_count > 0) {
        path->steps[path->step_count - 1].sorted = true;
    }
}

void flow_path_aside(struct flow_path *path, struct flow_stage *stage, double ps_per_byte, uint64_t after_bytes)
{
    for (unsigned i = 0; i < path->aside_count; i++) {
        struct flow_aside *aside = &path->asides[i];
        if (aside->stage == stage && aside->after_bytes == after_bytes) {
            aside->ps_per_byte += ps_per_byte;
            return;
        }
    }
    if (path->aside_count == FLOW_ASIDES_MAX) {
        path->refused = true;
        return;
    }
    path->asides[path->aside_count++] = (struct flow_aside){stage, ps_per_byte, after_bytes};
}

void flow_path_count(struct flow_path *path, flow_count_fn fn, void *ctx)
{
    flow_path_count_as(path, path->packet_bytes, fn, ctx);
}

void flow_path_count_as(struct flow_path *path, uint32_t packet_bytes, flow_count_fn fn, void *ctx)
{
    if (path->count_count == FLOW_COUNTS_MAX) {
        path->refused = true;
        return;
    }
    path->counts[path->count_count++] = (struct flow_count){fn, ctx, packet_bytes};
}

void flow_path_window(struct flow_path *path, uint64_t window_bytes, uint64_t round_ps)
{
    double ps_per_byte = (double)round_ps / (double)window_bytes;
    path->least_ps_per_byte = ps_per_byte > path->least_ps_per_byte ? ps_per_byte : path->least_ps_per_byte;
}

double flow_path_ps(const struct flow_path *path, uint64_t bytes)
{
    double slowest = path->least_ps_per_byte;
    for (unsigned i = 0; i < path->step_count; i++) {
        slowest = path->steps[i].ps_per_byte > slowest ? path->steps[i].ps_per_byte : slowest;
    }
    return slowest * (double)bytes;
}
