#include "neighbour.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum order_kind { GET, SET, PROTECT, REPLACE, HASH };

struct order {
    enum order_kind kind;
    unsigned char *at;
    size_t bytes;
    int value;
};

// FNV-1a
static uint64_t hash_of(const unsigned char *data, size_t bytes)
{
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < bytes; i++) {
        hash = (hash ^ data[i]) * 1099511628211u;
    }
    return hash;
}

static uint64_t order_do(const struct order *order)
{
    switch (order->kind) {
    case GET:
        return *order->at;
    case SET:
        *order->at = (unsigned char)order->value;
        return 0;
    case PROTECT:
        return (uint64_t)(order->value < 0 ? munmap(order->at, order->bytes)
                                           : mprotect(order->at, order->bytes, order->value));
    case REPLACE:
        return mmap(order->at, order->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, order->value, 0) !=
               order->at;
    case HASH:
        return hash_of(order->at, order->bytes);
    }
    return 0;
}

static void orders_follow(int orders, int answers)
{
    struct order order;
    while (read(orders, &order, sizeof order) == (ssize_t)sizeof order) {
        uint64_t answer = order_do(&order);
        if (write(answers, &answer, sizeof answer) != (ssize_t)sizeof answer) {
            break;
        }
    }
    _exit(0);
}

bool neighbour_start(struct neighbour *neighbour, struct attach_server *server)
{
    static const struct attach_run_options options;
    int orders[2], answers[2];
    if (pipe(orders) != 0 || pipe(answers) != 0) {
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        close(orders[1]);
        orders_follow(orders[0], answers[1]);
    }
    close(orders[0]);
    close(answers[1]);
    *neighbour = (struct neighbour){.server = server, .orders = orders[1], .answers = answers[0]};
    neighbour->process =
        (struct attach_process){.server = server, .next = server->processes, .reach = {.pid = pid, .pidfd = -1}};
    server->options = &options;
    server->processes = &neighbour->process;
    return pid > 0;
}

void neighbour_end(struct neighbour *neighbour)
{
    close(neighbour->orders);
    close(neighbour->answers);
    (void)kill(neighbour->process.reach.pid, SIGKILL);
    (void)waitpid(neighbour->process.reach.pid, NULL, 0);
    attach_memory_destroy(neighbour->process.memory);
}

static uint64_t ask(struct neighbour *neighbour, struct order order)
{
    uint64_t answer = 0;
    bool done = write(neighbour->orders, &order, sizeof order) == (ssize_t)sizeof order &&
                read(neighbour->answers, &answer, sizeof answer) == (ssize_t)sizeof answer;
    return done ? answer : UINT64_MAX;
}

unsigned char neighbour_get(struct neighbour *neighbour, const void *at)
{
    return (unsigned char)ask(neighbour, (struct order){.kind = GET, .at = (unsigned char *)(uintptr_t)at});
}

void neighbour_set(struct neighbour *neighbour, void *at, unsigned char value)
{
    (void)ask(neighbour, (struct order){.kind = SET, .at = at, .value = value});
}

void neighbour_protect(struct neighbour *neighbour, void *at, size_t bytes, int protection)
{
    (void)ask(neighbour, (struct order){.kind = PROTECT, .at = at, .bytes = bytes, .value = protection});
}

void neighbour_replace(struct neighbour *neighbour, void *at, size_t bytes, int fd)
{
    (void)ask(neighbour, (struct order){.kind = REPLACE, .at = at, .bytes = bytes, .value = fd});
}

bool neighbour_holds(struct neighbour *neighbour, const void *at, const void *data, size_t bytes)
{
    struct order order = {.kind = HASH, .at = (unsigned char *)(uintptr_t)at, .bytes = bytes};
    return ask(neighbour, order) == hash_of(data, bytes);
}

bool neighbour_write(struct neighbour *neighbour, void *at, const void *data, uint32_t bytes)
{
    return attach_memory_ops.write(&neighbour->process, (uintptr_t)at, data, bytes);
}

bool neighbour_read(struct neighbour *neighbour, const void *at, void *data, uint32_t bytes)
{
    return attach_memory_ops.read(&neighbour->process, (uintptr_t)at, data, bytes);
}
