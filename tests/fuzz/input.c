#include "fuzz.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

uint64_t fuzz_take(struct fuzz_input *input, unsigned bytes)
{
    uint64_t value = 0;
    fuzz_fill(input, &value, bytes);
    return value;
}

uint32_t fuzz_below(struct fuzz_input *input, uint32_t limit)
{
    return (uint32_t)fuzz_take(input, limit > 256 ? 2 : 1) % limit;
}

void fuzz_fill(struct fuzz_input *input, void *to, size_t bytes)
{
    size_t count = bytes < input->size ? bytes : input->size;
    memcpy(to, input->data, count);
    input->data += count;
    input->size -= count;
}

void fuzz_file_make(struct fuzz_file *file)
{
    file->fd = memfd_create("fuzz", MFD_CLOEXEC);
    FUZZ_HOLDS(file->fd >= 0, "no memory for a file");
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

void fuzz_file_write(const struct fuzz_file *file, const void *data, size_t size)
{
    FUZZ_HOLDS(ftruncate(file->fd, 0) == 0 && pwrite(file->fd, data, size, 0) == (ssize_t)size, "%s", file->path);
}
