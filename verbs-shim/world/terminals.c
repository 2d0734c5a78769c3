// The terminal of the user who started the run is a file to the programs of a timed run, whatever tcasim's input and
// output are: programs do other things on a terminal (mpirun watches whether it is in the foreground, others print
// progress), and a run would depend on it. Terminals that programs make themselves are terminals.
//
// Leaves out: /dev/tty, and whether the C library writes line by line, which costs nothing and wakes nobody
// (descriptors.c).
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

pid_t tcgetpgrp(int fd)
{
    return world_is_users_terminal(fd) ? no_terminal() : world_id_of(WORLD_REAL(tcgetpgrp)(fd));
}

int tcsetpgrp(int fd, pid_t group)
{
    return world_is_users_terminal(fd) ? no_terminal() : WORLD_REAL(tcsetpgrp)(fd, world_id_real(group));
}
