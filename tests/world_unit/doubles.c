#include "doubles.h"

#include <sys/syscall.h>
#include <unistd.h>

struct doubles doubles;

void doubles_reset(void)
{
    doubles = (struct doubles){.timed = true};
}

bool world_timed(void)
{
    return doubles.timed;
}

pid_t world_real_pid(void)
{
    return getpid();
}

pid_t world_real_tid(void)
{
    return (pid_t)syscall(SYS_gettid);
}

const struct attach_environment *attach_environment(void)
{
    static const char *const hosts[] = {"node0", "node1"};
    static const struct attach_environment environment = {
        .node = "node0", .node_count = 2, .id = DOUBLE_OWN_ID, .hosts = hosts};
    return &environment;
}

uint32_t attach_thread_id(void)
{
    return DOUBLE_OWN_TID;
}

uint32_t attach_id_of(uint32_t pid)
{
    doubles.asked++;
    return pid == DOUBLE_OTHER_REAL ? DOUBLE_OTHER_ID : pid == DOUBLE_SIMULATOR_REAL ? ATTACH_ID_BASE : 0;
}

uint32_t attach_id_real(uint32_t id)
{
    doubles.asked++;
    return id == DOUBLE_OTHER_ID ? DOUBLE_OTHER_REAL : id == ATTACH_ID_BASE ? DOUBLE_SIMULATOR_REAL : 0;
}

void attach_port_files(void)
{
    doubles.port_files++;
}

void world_asked(const char *what, const char *which)
{
    (void)what, (void)which;
    doubles.told++;
}
