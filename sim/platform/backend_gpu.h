// The GPUs' part of the backend. Private to the room.
#pragma once

#include "verbs-shim/backend/backend.h"

extern const struct backend_gpu_ops plat_backend_gpu_ops; // ctx: struct plat_backend_inproc
