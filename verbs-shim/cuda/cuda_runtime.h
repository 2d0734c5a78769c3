// What programs include. Kernels cannot be compiled here; tcasim_kernel.h launches declared ones.
#pragma once

#include "cuda_runtime_api.h"
