// The run's number of a process or thread for the machine's, and the reverse.
#include "verbs-shim/world/world.h"

// The most recent children. The simulator is asked for others each time.
enum { KNOWN_MAX = 64 };

static struct {
    pid_t id, real;
} known[KNOWN_MAX];
static unsigned known_count;

void world_id_known(pid_t id, pid_t real)
{
    for (unsigned i = 0; i < KNOWN_MAX; i++) {
        if (known[i].real == real) { // of an earlier child
            known[i].id = known[i].real = 0;
        }
    }
    known[known_count++ % KNOWN_MAX].id = id;
    known[(known_count - 1) % KNOWN_MAX].real = real;
}

pid_t world_id_real(pid_t id)
{
    if (id < (pid_t)ATTACH_ID_BASE || !world_timed()) {
        return id;
    }
    if ((uint32_t)id == attach_environment()->id) {
        return world_real_pid();
    }
    if ((uint32_t)id == attach_thread_id()) {
        return world_real_tid();
    }
    for (unsigned i = 0; i < KNOWN_MAX; i++) {
        if (known[i].id == id) {
            return known[i].real;
        }
    }
    uint32_t real = attach_id_real((uint32_t)id);
    return real != 0 ? (pid_t)real : id; // the kernel has no such number
}

pid_t world_id_of(pid_t real)
{
    if (real <= 0 || !world_timed()) {
        return real;
    }
    if (real == world_real_pid()) {
        return (pid_t)attach_environment()->id;
    }
    for (unsigned i = 0; i < KNOWN_MAX; i++) {
        if (known[i].real == real) {
            return known[i].id;
        }
    }
    uint32_t id = attach_id_of((uint32_t)real);
    return id != 0 ? (pid_t)id : real;
}

pid_t world_id_real_signed(pid_t id)
{
    return id < -1 ? -world_id_real(-id) : world_id_real(id);
}
