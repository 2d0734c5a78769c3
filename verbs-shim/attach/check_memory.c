// libtcasim-check.so, preloaded with --check: interposes free, realloc and munmap, and reports the memory if it is
// registered with a device.
//
// dlsym itself calls free: while a function is looked up, and before that, the C library's own function is called.
#include <dlfcn.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "verbs-shim/attach/attach.h"

extern void __libc_free(void *memory);
extern void *__libc_realloc(void *memory, size_t bytes);

static int kernel_munmap(void *memory, size_t bytes)
{
    return (int)syscall(SYS_munmap, memory, bytes);
}

static void (*next_free)(void *) = __libc_free;
static void *(*next_realloc)(void *, size_t) = __libc_realloc;
static int (*next_munmap)(void *, size_t) = kernel_munmap;

// The functions of the program's own allocator, if it has one.
__attribute__((constructor)) static void look_up(void)
{
    void *found[] = {dlsym(RTLD_NEXT, "free"), dlsym(RTLD_NEXT, "realloc"), dlsym(RTLD_NEXT, "munmap")};
    next_free = found[0] != NULL ? (void (*)(void *))found[0] : next_free;
    next_realloc = found[1] != NULL ? (void *(*)(void *, size_t))found[1] : next_realloc;
    next_munmap = found[2] != NULL ? (int (*)(void *, size_t))found[2] : next_munmap;
}

void free(void *memory)
{
    if (memory != NULL && attach_checks_memory()) {
        attach_check_freed(memory, malloc_usable_size(memory), false);
    }
    next_free(memory);
}

void *realloc(void *memory, size_t bytes)
{
    size_t before = memory != NULL && attach_checks_memory() ? malloc_usable_size(memory) : 0;
    void *moved = next_realloc(memory, bytes);
    if (before != 0 && moved != memory && moved != NULL) {
        attach_check_freed(memory, before, false);
    }
    return moved;
}

int munmap(void *memory, size_t bytes)
{
    if (attach_checks_memory()) {
        attach_check_freed(memory, bytes, true);
    }
    return next_munmap(memory, bytes);
}
