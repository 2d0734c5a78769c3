// The file figure.yaml of a result. Private to the room.
#pragma once

#include "sim/report/results.h"

void report_figure_write(const report_t *report, FILE *out);
