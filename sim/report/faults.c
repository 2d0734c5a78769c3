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

static void end_add(grid_t *grid, const struct report_fault *fault, unsigned side)
{
    const struct report_fault_end *end = &fault->ends[side];
    char text[MICRO_TEXT_MAX];
    micro_print(fault->after_start_ps, text);
    grid_cell_add(grid, "%s", side == 0 ? fault->series : "");
    grid_cell_add(grid, "%s", side == 0 ? fault->cable : "");
    grid_cell_add(grid, "%s", side != 0 ? "" : fault->happened ? text : "never");
    grid_cell_add(grid, "%s", end->name);
    grid_cell_add(grid, "%" PRIu64, end->sent_tlps);
    grid_cell_add(grid, "%" PRIu64, end->lost_tlps);
    grid_cell_add(grid, "%" PRIu64, end->dropped_tlps);
}

void report_faults_print(const report_t *report, FILE *out)
{
    static const char *const heads[] = {"series", "cable", "pulled [us]", "end", "sent", "lost", "dropped later"};
    static const bool left[] = {true, true, false, true, false, false, false};
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
        end_add(grid, &report->faults[i], 1);
    }
    fputs("\nCables that were pulled (time since the programs started; TLPs that each end sent, that were queued or "
          "under\n"
          "way and lost, and that its board sent to the dead port later)\n",
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
        fprintf(out, "      - cable: %s\n", fault->cable);
        if (fault->happened) {
            fprintf(out, "        pulled_ps: %" PRIu64 "\n        after_start_ps: %" PRIu64 "\n", fault->at_ps,
                    fault->after_start_ps);
        } else {
            fputs("        pulled_ps: never\n", out);
        }
        fputs("        ends:\n", out);
        for (unsigned side = 0; side < 2; side++) {
            const struct report_fault_end *end = &fault->ends[side];
            fprintf(out,
                    "          - {end: %s, sent_tlps: %" PRIu64 ", lost_tlps: %" PRIu64 ", dropped_tlps: %" PRIu64
                    "}\n",
                    end->name, end->sent_tlps, end->lost_tlps, end->dropped_tlps);
        }
    }
}
