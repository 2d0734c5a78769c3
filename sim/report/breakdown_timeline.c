// The rows as trace events: slices, with a flow along each path.
#include <stdbool.h>
#include <string.h>

#include "sim/report/breakdown_internal.h"
#include "sim/report/events.h"
#include "sim/report/files.h"

struct timeline {
    const breakdown_t *breakdown;
    events_t *events;
    bool written;
};

static void rows_take(const breakdown_t *breakdown, events_t *events)
{
    uint32_t count = 0; // rows of this path so far
    for (size_t i = 0; i < breakdown->row_count; i++) {
        const struct breakdown_row *row = &breakdown->rows[i];
        char process[2 * SCN_NAME_MAX + 8];
        snprintf(process, sizeof process, "%s: %s", breakdown->series[row->series].name, row->node);
        events_slice_t slice =
            events_slice_add(events, &(struct events_slice){.lane = events_lane(events, process, row->component),
                                                            .begin_ps = row->begin_ps,
                                                            .end_ps = row->end_ps,
                                                            .name = row->detail,
                                                            .category = breakdown_part_names[row->part]});
        count++;
        if (i + 1 == breakdown->row_count || breakdown->rows[i + 1].series != row->series) {
            events_chain_add(events, slice + 1 - count, count);
            count = 0;
        }
    }
}

static void timeline_write(void *ctx, FILE *out)
{
    struct timeline *timeline = ctx;
    rows_take(timeline->breakdown, timeline->events);
    timeline->written = events_write(timeline->events, out) == SIM_OK;
}

enum sim_status breakdown_timeline_write(const breakdown_t *breakdown, const char *path, char *error, size_t error_size)
{
    struct timeline timeline = {.breakdown = breakdown};
    enum sim_status status = events_create(&timeline.events);
    if (status == SIM_OK) {
        status = files_one_write(path, timeline_write, &timeline, error, error_size);
        status = status == SIM_OK && !timeline.written ? SIM_ERR_NO_MEMORY : status;
    }
    if (status == SIM_ERR_NO_MEMORY) {
        snprintf(error, error_size, "%s: %s", path, sim_status_text(status));
    }
    events_destroy(timeline.events);
    return status;
}
