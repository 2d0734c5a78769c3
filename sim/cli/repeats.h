// Lines of a run that are the same again: each is printed once, and at the end how often it came.
#pragma once

#define CLI_REPEATS_LINES 32 // that are remembered; a line that comes after so many others is printed again

struct cli_repeats {
    struct cli_repeated {
        char *line;
        unsigned more; // times that it was not printed
    } list[CLI_REPEATS_LINES];
    unsigned next;
};

void cli_repeats_print(struct cli_repeats *repeats, const char *line); // on stderr
void cli_repeats_end(struct cli_repeats *repeats);                     // tells of what was left out, and forgets all
