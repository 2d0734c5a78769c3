// The terminal of the user who started the run is a file to the programs of a timed run, whatever tcasim's input and
// output are: programs do other things on a terminal (mpirun watches whether it is in the foreground, others print
// progress), and a run would depend on it. Terminals that programs make themselves are terminals.
//
// For the same reason a pipe or a socket to which the user sends the output is a device, as /dev/null is one: mpirun writes to
// a pipe when its event loop finds room, and to others at once.
//
// Leaves out: /dev/tty, whether such a file can be polled, and whether the C library writes line by line, which costs
// nothing and wakes nobody (descriptors.c).
#include <errno.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <termios.h>
#include <unistd.h>

#include "verbs-shim/attach/kernel_call.h"
#include "verbs-shim/world/descriptors.h"
#include "verbs-shim/world/world.h"

bool world_is_users(int fd)
{
    const struct attach_environment *environment = attach_environment();
    struct stat about;
    bool is = false;
    if (environment == NULL || kernel_call(SYS_fstat, fd, (long)(uintptr_t)&about, 0, 0, 0, 0) != 0) {
        return false;
    }
    for (unsigned i = 0; i < ATTACH_STANDARD_FILES; i++) {
        is = is || (about.st_dev == environment->standard_files[i].device &&
                    about.st_ino == environment->standard_files[i].number);
    }
    return is;
}

bool world_is_users_terminal(int fd)
{
    return world_timed() && world_is_users(fd);
}

bool world_terminal_request(unsigned long request)
{
    static const unsigned long requests[] = {TCGETS,     TCSETS,    TCSETSW,    TCSETSF,    TCGETA,  TCSETA,
                                             TIOCGWINSZ, TIOCSWINSZ, TIOCGPGRP, TIOCSPGRP, TIOCGSID};
    bool is = false;
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        is = is || requests[i] == request;
    }
    return is;
}

static int no_terminal(void)
{
    errno = ENOTTY;
    return -1;
}

int isatty(int fd)
{
    return world_is_users_terminal(fd) ? no_terminal() + 1 : WORLD_REAL(isatty)(fd);
}

int tcgetattr(int fd, struct termios *settings)
{
    return world_is_users_terminal(fd) ? no_terminal() : WORLD_REAL(tcgetattr)(fd, settings);
}

int tcsetattr(int fd, int when, const struct termios *settings)
{
    return world_is_users_terminal(fd) ? no_terminal() : WORLD_REAL(tcsetattr)(fd, when, settings);
}

static mode_t mode_seen(int fd, mode_t mode)
{
    bool is_pipe = S_ISFIFO(mode) || S_ISSOCK(mode);
    return is_pipe && world_timed() && world_is_users(fd) ? (mode & ~(mode_t)S_IFMT) | S_IFCHR : mode;
}

int fstat(int fd, struct stat *about)
{
    int result = WORLD_REAL(fstat)(fd, about);
    if (result == 0) {
        about->st_mode = mode_seen(fd, about->st_mode);
    }
    return result;
}

int fstat64(int fd, struct stat64 *about)
{
    int result = WORLD_REAL(fstat64)(fd, about);
    if (result == 0) {
        about->st_mode = mode_seen(fd, about->st_mode);
    }
    return result;
}

pid_t tcgetpgrp(int fd)
{
    return world_is_users_terminal(fd) ? no_terminal() : world_id_of(WORLD_REAL(tcgetpgrp)(fd));
}

int tcsetpgrp(int fd, pid_t group)
{
    return world_is_users_terminal(fd) ? no_terminal() : WORLD_REAL(tcsetpgrp)(fd, world_id_real(group));
}
