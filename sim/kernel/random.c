// xoshiro256** 1.0 by Blackman and Vigna, seeded through splitmix64 as its authors recommend.
#include "sim/kernel/random.h"

// FNV-1a, 64 bits.
static uint64_t name_hash(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name != '\0'; name++) {
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    }
    return hash;
}

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline uint64_t rotate_left(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

void sim_random_init(struct sim_random *random, uint64_t seed, const char *component)
{
    // The seed is mixed before the name is added, so that seed and name cannot cancel each other out.
    uint64_t state = splitmix64(&seed) ^ name_hash(component);
    for (unsigned i = 0; i < 4; i++) {
        random->state[i] = splitmix64(&state);
    }
}

uint64_t sim_random_u64(struct sim_random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate_left(s[3], 45);
    return result;
}

uint64_t sim_random_below(struct sim_random *random, uint64_t bound)
{
    // The first 2^64 mod bound values would make small results more likely; they are rejected and drawn again.
    uint64_t reject_below = (0 - bound) % bound;
    uint64_t value;
    do {
        value = sim_random_u64(random);
    } while (value < reject_below);
    return value % bound;
}
