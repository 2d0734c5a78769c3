// Writes the table of calls.def for readers and for the linker: world_interposed map|markdown.
#include <stdio.h>
#include <string.h>

enum kind { KIND_CALL, KIND_FUNCTION };
enum policy { WAITS, CLOCKS, TIMERS, ARRIVALS, ASYNCHRONOUS, LIFE, SIGNALS, IDS, PROCESSORS, THE_MACHINE, HOSTS, SHARED, PATHS, REFUSED, POLICIES };

struct row {
    enum kind kind;
    const char *name;
    enum policy policy;
};

static const struct row rows[] = {
#define CALL(name, function, trap, policy)        {KIND_CALL, #name, policy},
#define FUNCTION(name, version, policy, number)   {KIND_FUNCTION, #name, policy},
#include "verbs-shim/world/calls.def"
};

static const struct {
    const char *title, *text;
} policies[POLICIES] = {
    [WAITS] = {"Waits", "Tried without blocking; where it would block, the thread waits in simulated time."},
    [CLOCKS] = {"Clocks", "Show simulated time. Processor time is simulated time since the process began."},
    [TIMERS] = {"Timers", "Go off in simulated time."},
    [ARRIVALS] = {"Descriptors",
     "The machine's; what was sent before has arrived, and the simulator's own descriptors stay open."},
    [ASYNCHRONOUS] = {"Asynchronous requests",
     "For files and names they are over when the call returns; a request for a pipe or a socket has a thread of the program."},
    [LIFE] = {"Processes and threads",
     "The simulator knows a new one before it runs, and is told of an end before it happens."},
    [SIGNALS] = {"Signals",
     "The program's handlers and masks; the library's own signals stay in place. A signal to a thread ends its wait."},
    [IDS] = {"Numbers of processes and threads", "The run's, which are the same in each run."},
    [PROCESSORS] = {"Processors",
     "The node's cores. A thread reads back the affinity that it has set; it may run elsewhere."},
    [THE_MACHINE] = {"The machine",
     "Kernel, processors and memory are the node's (`host.processor`, `host.memory`), random numbers those of the scenario's `seed`. The user's terminal is a file. Users and "
     "groups are those of /etc/passwd and /etc/group."},
    [HOSTS] = {"Hosts",
     "Names, addresses and interfaces are those of the scenario's nodes. A connection to anything else is refused as "
     "unreachable; sockets of families other than `AF_UNIX`, `AF_INET` and `AF_INET6` are not supported."},
    [SHARED] = {"Shared memory and keys", "It is noted which memory processes share; keys of System V are a node's own."},
    [PATHS] = {"Files",
     "/sys, /dev/infiniband, /dev/shm, /proc except for processes, and the files of /etc about hosts are the node's; all "
     "else is the machine's."},
    [REFUSED] = {"Refused", "ENOSYS."},
};

static void map_write(void)
{
    printf("{\n  global:\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind == KIND_FUNCTION) {
            printf("    %s;\n", rows[i].name);
        }
    }
    printf("  local:\n    *;\n};\n");
}

static void list_write(enum policy policy, enum kind kind, const char *title)
{
    unsigned count = 0;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (rows[i].kind == kind && rows[i].policy == policy) {
            printf("%s`%s`", count++ == 0 ? title : ", ", rows[i].name);
        }
    }
    printf("%s", count != 0 ? "\n\n" : "");
}

static void markdown_write(void)
{
    printf("# What is interposed\n\nGenerated from `verbs-shim/world/calls.def` (`ninja interposed-md`).\n\n"
           "`libtcasim-world.so` has these functions in the place of the C library's, and carries these system calls "
           "out itself, whoever\nmakes them: a filter of the kernel sends them there, also from machine code of the "
           "program's own. `syscall(2)` does what the\nfunction of the same name does. In a process that is not "
           "attached all of them are the C library's.\n\n");
    for (size_t i = 0; i < POLICIES; i++) {
        printf("## %s\n%s\n\n", policies[i].title, policies[i].text);
        list_write((enum policy)i, KIND_FUNCTION, "Functions: ");
        list_write((enum policy)i, KIND_CALL, "System calls: ");
    }
}

int main(int argc, char **argv)
{
    const char *format = argc == 2 ? argv[1] : "";
    if (strcmp(format, "map") == 0) {
        map_write();
    } else if (strcmp(format, "markdown") == 0) {
        markdown_write();
    } else {
        fprintf(stderr, "usage: world_interposed map|markdown\n");
        return 2;
    }
    return 0;
}
