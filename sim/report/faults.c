// The effects of a scenario's faults: on the terminal and in the manifest.
#include "sim/report/faults.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/csv.h"
#include "sim/report/grid.h"

#define MICRO_TEXT_MAX 32

static void micro_print(uint64_t micro, char text[MICRO_TEXT_MAX])
{
    FILE *out = fmemopen(text, MICRO_TEXT_MAX, "w");
    if (out == NULL) {
        sim_panic("report", "out of memory for a number");
    }
    csv_micro_write(out, micro);
    fclose(out);
}

// The first end of a fault also says when it began and ended.
static void end_add(grid_t *grid, const struct report_fault *fault, unsigned side)
{
    const struct report_fault_end *end = &fault->ends[side];
    char at[MICRO_TEXT_MAX], back[MICRO_TEXT_MAX];
    micro_print(fault->after_start_ps, at);
    micro_print(fault->back_ps != 0 ? fault->after_start_ps + (fault->back_ps - fault->at_ps) : 0, back);
    grid_cell_add(grid, "%s", side == 0 ? fault->series : "");
    grid_cell_add(grid, "%s", side == 0 ? fault->what : "");
    grid_cell_add(grid, "%s", side != 0 ? "" : fault->happened ? at : "never");
    grid_cell_add(grid, "%s", side != 0 || !fault->happened ? "" : fault->back_ps != 0 ? back : "the end");
    const uint64_t counts[] = {end->sent, end->lost, end->dropped};
    grid_cell_add(grid, "%s", end->name);
    for (unsigned i = 0; i < 3; i++) { // a device has no ends
        if (end->name[0] != '\0') {
            grid_cell_add(grid, "%" PRIu64, counts[i]);
        } else {
            grid_cell_add(grid, "%s", "");
        }
    }
}

void report_faults_print(const report_t *report, FILE *out)
{
    static const char *const heads[] = {"series", "fault", "from [us]", "to [us]",
                                        "end",    "sent",  "lost",      "dropped later"};
    static const bool left[] = {true, true, false, false, true, false, false, false};
    const size_t columns = sizeof heads / sizeof heads[0];
    if (report->fault_count == 0) {
        return;
    }
    grid_t *grid = grid_create(columns);
    for (size_t i = 0; i < columns; i++) {
        grid_cell_add(grid, "%s", heads[i]);
        if (left[i]) {
            grid_column_left(grid, i);
        }
    }
    for (size_t i = 0; i < report->fault_count; i++) {
        end_add(grid, &report->faults[i], 0);
        if (report->faults[i].ends[1].name[0] != '\0') {
            end_add(grid, &report->faults[i], 1);
        }
    }
    fputs(
        "\nFaults (time since the programs started; TLPs or packets that each end sent, that were queued or under way\n"
        "and lost, and that were sent to the dead port later)\n",
        out);
    grid_print(grid, out);
    grid_destroy(grid);
}

void report_faults_manifest_write(const report_t *report, const char *series, FILE *out)
{
    bool first = true;
    for (size_t i = 0; i < report->fault_count; i++) {
        const struct report_fault *fault = &report->faults[i];
        if (strcmp(fault->series, series) != 0) {
            continue;
        }
        fputs(first ? "    faults:\n" : "", out);
        first = false;
        fprintf(out, "      - fault: %s\n", fault->what);
        if (fault->happened) {
            fprintf(out, "        at_ps: %" PRIu64 "\n        after_start_ps: %" PRIu64 "\n", fault->at_ps,
                    fault->after_start_ps);
        } else {
            fputs("        at_ps: never\n", out);
        }
        if (fault->back_ps != 0) {
            fprintf(out, "        back_ps: %" PRIu64 "\n", fault->back_ps);
        }
        bool ends = fault->ends[0].name[0] != '\0';
        fputs(ends ? "        ends:\n" : "", out);
        for (unsigned side = 0; side < 2 && ends; side++) {
            const struct report_fault_end *end = &fault->ends[side];
            fprintf(out, "          - {end: %s, sent: %" PRIu64 ", lost: %" PRIu64 ", dropped: %" PRIu64 "}\n",
                    end->name, end->sent, end->lost, end->dropped);
        }
    }
}
