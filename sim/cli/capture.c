#include "sim/cli/capture.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void cli_captures_init(struct cli_captures *captures)
{
    for (uint32_t i = 0; i < ATTACH_RUN_PROGRAMS_MAX; i++) {
        captures->items[i] = (struct cli_capture){.file = -1};
    }
    captures->any = false;
}

void cli_captures_fini(struct cli_captures *captures)
{
    for (uint32_t i = 0; i < ATTACH_RUN_PROGRAMS_MAX; i++) {
        if (captures->items[i].file >= 0) {
            (void)close(captures->items[i].file);
            captures->items[i].file = -1;
        }
    }
}

bool cli_captures_add(struct cli_captures *captures, struct cli_programs *programs, uint32_t index)
{
    struct cli_capture *capture = &captures->items[index];
    capture->file = memfd_create("output of a program", 0);
    if (capture->file < 0) {
        cli_error("no memory for the output of a program");
        return false;
    }
    snprintf(capture->path, sizeof capture->path, "/proc/self/fd/%d", capture->file);
    programs->list[index].stdout_path = capture->path;
    captures->any = true;
    return true;
}

// false: standard output takes no more bytes.
static bool bytes_write(const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, bytes, length);
        if (written < 0 && errno != EINTR) {
            return false;
        }
        bytes += written > 0 ? written : 0;
        length -= written > 0 ? (size_t)written : 0;
    }
    return true;
}

static void capture_show(struct cli_capture *capture)
{
    char bytes[4096];
    struct stat about;
    if (fstat(capture->file, &about) != 0 || (size_t)about.st_size <= capture->shown) {
        return;
    }
    ssize_t length = pread(capture->file, bytes, sizeof bytes, (off_t)capture->shown);
    while (length > 0 && bytes_write(bytes, (size_t)length)) {
        capture->shown += (size_t)length;
        length = pread(capture->file, bytes, sizeof bytes, (off_t)capture->shown);
    }
    if (length > 0) {
        capture->shown = SIZE_MAX; // the reader has closed standard output
    }
}

void cli_captures_show(struct cli_captures *captures)
{
    for (uint32_t i = 0; i < ATTACH_RUN_PROGRAMS_MAX && captures->any; i++) {
        if (captures->items[i].file >= 0) {
            capture_show(&captures->items[i]);
        }
    }
}

char *cli_captures_read(const struct cli_captures *captures, uint32_t index, size_t *length_out)
{
    int file = captures->items[index].file;
    struct stat about;
    if (file < 0) {
        return NULL;
    }
    size_t length = 0, size = fstat(file, &about) == 0 ? (size_t)about.st_size : 0;
    char *text = malloc(size + 1);
    if (text == NULL) {
        cli_error("out of memory");
        return NULL;
    }
    for (ssize_t count = 1; count > 0 && length<size; length += count> 0 ? (size_t)count : 0) {
        count = pread(file, text + length, size - length, (off_t)length);
    }
    text[length] = '\0';
    *length_out = length;
    return text;
}
