// Finds programs that cannot be attached before anything is started: the dynamic linker would not load the library into
// them, or they need a library of another word size.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "sim/attach/internal.h"

// Searches as execvp(3) does. false: not found; then exec itself reports it.
static bool path_find(const char *name, char path[ATTACH_PATH_BYTES])
{
    if (strchr(name, '/') != NULL) {
        return snprintf(path, ATTACH_PATH_BYTES, "%s", name) < ATTACH_PATH_BYTES && access(path, X_OK) == 0;
    }
    const char *at = getenv("PATH");
    while (at != NULL) {
        size_t length = strcspn(at, ":");
        int written = snprintf(path, ATTACH_PATH_BYTES, "%.*s%s%s", (int)length, at, length != 0 ? "/" : "", name);
        if (written < ATTACH_PATH_BYTES && access(path, X_OK) == 0) {
            return true;
        }
        at = at[length] != '\0' ? at + length + 1 : NULL;
    }
    return false;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header)
{
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(header->e_phoff + (uint64_t)i * header->e_phentsize);
        if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part) {
            return false;
        }
        if (part.p_type == PT_INTERP) {
            return true;
        }
    }
    return false;
}

static const char *elf_refused(int fd, const Elf64_Ehdr *header)
{
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != EM_X86_64) {
        return "it is no 64-bit program for x86-64";
    }
    if (header->e_phentsize != sizeof(Elf64_Phdr) || !has_interpreter(fd, header)) {
        return "it is statically linked, and loads no libraries";
    }
    return NULL;
}

static const char *file_refused(int fd, char interpreter[ATTACH_PATH_BYTES])
{
    struct stat about;
    union {
        Elf64_Ehdr elf;
        char text[ATTACH_PATH_BYTES];
    } head = {0};
    interpreter[0] = '\0';
    if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode) || pread(fd, &head, sizeof head - 1, 0) < 4) {
        return NULL; // exec reports the reason
    }
    if ((about.st_mode & (S_ISUID | S_ISGID)) != 0) {
        return "it is set-uid or set-gid, and loads no libraries of its caller's";
    }
    if (fgetxattr(fd, "security.capability", NULL, 0) > 0) {
        return "it has capabilities, and loads no libraries of its caller's";
    }
    if (memcmp(head.text, ELFMAG, SELFMAG) == 0) {
        return elf_refused(fd, &head.elf);
    }
    if (head.text[0] == '#' && head.text[1] == '!') {
        const char *name = head.text + 2 + strspn(head.text + 2, " \t");
        snprintf(interpreter, ATTACH_PATH_BYTES, "%.*s", (int)strcspn(name, " \t\n"), name);
    }
    return NULL;
}

// A tracer waits for stops of its tracee. The simulator does not notice such stops, as they are no ends of processes.
static bool is_tracer(const char *program)
{
    static const char *const tracers[] = {"gdb", "lldb", "strace", "ltrace"};
    const char *slash = strrchr(program, '/'), *name = slash != NULL ? slash + 1 : program;
    for (size_t i = 0; i < sizeof tracers / sizeof tracers[0]; i++) {
        if (strcmp(name, tracers[i]) == 0) {
            return true;
        }
    }
    return false;
}

const char *attach_refused(const char *program, bool functional)
{
    if (!functional && is_tracer(program)) {
        return "it waits for what it traces to stop, which takes no simulated time; run it with --functional, or "
               "attach it"
               " from outside to a program of the run (gdb -p)";
    }
    char path[ATTACH_PATH_BYTES], interpreter[ATTACH_PATH_BYTES];
    snprintf(interpreter, sizeof interpreter, "%s", program);
    // The interpreter of a script may be a script; execve(2) allows four levels.
    for (unsigned i = 0; i < 5 && interpreter[0] != '\0'; i++) {
        int fd = path_find(interpreter, path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (fd < 0) {
            return NULL;
        }
        const char *reason = file_refused(fd, interpreter);
        close(fd);
        if (reason != NULL) {
            return reason;
        }
    }
    return NULL;
}
