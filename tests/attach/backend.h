// What the program "backend" does with the operations of its backend, one at a time (backend_main.c).
#pragma once

#include "verbs-shim/attach/attach.h"

enum { BACKEND_US_PS = 1000000 };

int backend_kernels(const struct backend *backend);
int backend_helper(const struct backend *backend);
int backend_records(const struct backend *backend);
int backend_regions(const struct backend *backend);
int backend_watch(const struct backend *backend);
int backend_signals(const struct backend *backend);
