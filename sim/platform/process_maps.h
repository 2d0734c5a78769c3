// The memory mappings of a process of this machine, as the kernel reports them (/proc/PID/maps, proc(5)). Unlike
// mincore, or a system call that reads the bytes, they show which memory is writable, and asking changes nothing.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct plat_map {
    uint64_t begin, end; // bytes [begin, end)
    bool readable, writable, shared;
    uint64_t device, inode, offset; // of the file; inode 0: memory without one
};

struct plat_maps {
    int fd;        // -1: there is no such process, or it cannot be read
    bool answered; // the kernel takes questions (Linux 6.11 and later); otherwise the file's text is read
};

// A process that does not exist has no mappings. close is called in any case.
void plat_maps_open(struct plat_maps *maps, pid_t process);
void plat_maps_close(struct plat_maps *maps);
// The mapping that holds the address. false: there is none, or the kernel takes no questions.
bool plat_maps_ask(const struct plat_maps *maps, uint64_t address, struct plat_map *map_out);

// Passes the mappings that hold [address, address + bytes), in the order of their addresses, up to the first gap, until
// `take` returns false. true: all of these bytes are mapped, and taken.
typedef bool (*plat_map_take_fn)(void *ctx, const struct plat_map *map);
bool plat_maps_walk(const struct plat_maps *maps, uint64_t address, uint64_t bytes, plat_map_take_fn take, void *ctx);
