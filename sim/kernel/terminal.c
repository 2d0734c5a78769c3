#include "sim/kernel/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS_UNKNOWN = 80 };

static bool is_terminal(FILE *out)
{
    int fd = fileno(out); // -1: a file in memory
    return fd >= 0 && isatty(fd) == 1;
}

unsigned sim_terminal_columns(FILE *out)
{
    struct winsize window = {0};
    if (!is_terminal(out)) {
        return 0;
    }
    return ioctl(fileno(out), TIOCGWINSZ, &window) == 0 && window.ws_col > 0 ? window.ws_col : COLUMNS_UNKNOWN;
}

const char *sim_terminal_colour(FILE *out, enum sim_colour colour)
{
    static const char *const sequences[] = {
        [SIM_COLOUR_PLAIN] = "\033[0m",  [SIM_COLOUR_BOLD] = "\033[1m",    [SIM_COLOUR_RED] = "\033[31m",
        [SIM_COLOUR_GREEN] = "\033[32m", [SIM_COLOUR_YELLOW] = "\033[33m",
    };
    const char *refused = getenv("NO_COLOR"), *kind = getenv("TERM");
    bool able = (refused == NULL || refused[0] == '\0') && kind != NULL && strcmp(kind, "dumb") != 0;
    return able && is_terminal(out) ? sequences[colour] : "";
}
