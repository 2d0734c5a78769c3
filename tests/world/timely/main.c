// "world_timely THEME" plays the rows of a theme. "world_timely nap" sleeps for 100 us and ends with 5: the program
// that the rows of exec and of its relatives start. "world_timely whose" ends with 5 if the environment names node0.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "play.h"
#include "timely.h"

// Functions that look for a program by its name find this one.
static void path_set(void)
{
    char self[1024];
    ssize_t bytes = readlink("/proc/self/exe", self, sizeof self - 1);
    self[bytes > 0 ? bytes : 0] = '\0';
    char *name = strrchr(self, '/');
    if (name != NULL) {
        *name = '\0';
        (void)setenv("PATH", self, 1);
    }
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "nap") == 0) {
        (void)usleep(TIMELY_WOKEN_US);
        return 5;
    }
    if (strcmp(what, "whose") == 0) {
        const char *node = getenv("TCASIM_NODE"), *folder = getenv("TCASIM_SYSFS");
        const char *last = folder != NULL ? strrchr(folder, '/') : NULL;
        return node != NULL && strcmp(node, "node0") == 0 && last != NULL && strcmp(last, "/node0") == 0 ? 5 : 1;
    }
    path_set();
    for (unsigned i = 0; i < TIMELY_THEMES; i++) {
        if (strcmp(timely_themes[i]->name, what) == 0) {
            timely_play(timely_themes[i]);
            return 0;
        }
    }
    fprintf(stderr, "usage: world_timely THEME|nap|whose\n");
    return 2;
}
