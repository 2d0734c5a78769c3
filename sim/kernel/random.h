// Seeded random streams. A stream depends only on the simulation's seed and the component's name, so that adding a
// component does not change the numbers of another.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sim_random {
    uint64_t state[4]; // xoshiro256**
};

void sim_random_init(struct sim_random *random, uint64_t seed, const char *component);
uint64_t sim_random_u64(struct sim_random *random);
// Uniform in [0, bound); bound > 0.
uint64_t sim_random_below(struct sim_random *random, uint64_t bound);

#ifdef __cplusplus
}
#endif
