#include "sim/cli/programs.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

// --- ${NAME} --------------------------------------------------------------------------------------------------------

struct lookup {
    const char *path;
    char *value; // owned; NULL: not found
};

static void key_visit(void *context, const char *path, const char *value, const char *source)
{
    struct lookup *lookup = context;
    (void)source;
    if (lookup->value == NULL && strcmp(path, lookup->path) == 0) {
        size_t length = strlen(value);
        bool quoted = length >= 2 && value[0] == '"' && value[length - 1] == '"';
        lookup->value = strndup(value + quoted, length - (quoted ? 2 : 0));
    }
}

// To be freed. NULL: neither a parameter nor a key.
static char *value_of(const struct scn_scenario *scenario, const char *name)
{
    for (uint32_t i = 0; i < scenario->parameter_count; i++) {
        if (strcmp(scenario->parameters[i].name, name) == 0) {
            return strdup(scenario->parameters[i].value);
        }
    }
    struct lookup lookup = {.path = name};
    if (strchr(name, '.') != NULL) {
        scn_visit(scenario, key_visit, &lookup);
    }
    return lookup.value;
}

// Copies one ${NAME} that begins at text. Returns the end of it; NULL: the name is unknown, after printing this. In
// single quotes an unknown name is left for the program.
static const char *reference_put(const struct scn_scenario *scenario, const char *text, bool quoted, FILE *out)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const char *end = strchr(text, '}');
    char name[SCN_TEXT_MAX];
    if (end == NULL || (size_t)(end - text) >= sizeof name) {
        fputc(*text, out);
        return text + 1; // the shell will refuse it
    }
    snprintf(name, sizeof name, "%.*s", (int)(end - text - 2), text + 2);
    char *value = value_of(scenario, name);
    bool of_shell = name[strspn(name, letters)] != '\0'; // ${NAME:-text} and similar expansions
    if (value == NULL && !quoted && !of_shell && getenv(name) == NULL) {
        cli_error("${%s}: neither a parameter or key of the scenario nor a variable of the environment has this name",
                  name);
        return NULL;
    }
    if (value != NULL) {
        fputs(value, out);
    } else {
        fprintf(out, "%.*s", (int)(end + 1 - text), text); // a variable of the environment
    }
    free(value);
    return end + 1;
}

char *cli_programs_text(const struct scn_scenario *scenario, const char *text)
{
    char *result = NULL;
    size_t size;
    FILE *out = open_memstream(&result, &size);
    if (out == NULL) {
        cli_error("out of memory");
        return NULL;
    }
    bool quoted = false;
    while (text != NULL && *text != '\0') {
        quoted = quoted != (*text == '\'');
        if (text[0] == '$' && text[1] == '{') {
            text = reference_put(scenario, text, quoted, out);
        } else {
            fputc(*text++, out);
        }
    }
    bool good = fclose(out) == 0 && text != NULL;
    if (!good) {
        free(result);
    }
    return good ? result : NULL;
}

// --- words ----------------------------------------------------------------------------------------------------------

static const char *split_error(int status)
{
    switch (status) {
    case WRDE_BADCHAR:
        return "one of | & ; < > ( ) { } or a new line is outside quotes";
    case WRDE_CMDSUB:
        return "it contains a command substitution";
    case WRDE_SYNTAX:
        return "a quote or a bracket is not closed";
    case WRDE_NOSPACE:
        return "there is no memory";
    }
    return "it is empty";
}

// Splits the line as a shell does: quotes, variables and patterns, but no commands.
static bool line_split(const struct scn_scenario *scenario, const char *text, wordexp_t *words)
{
    char *line = cli_programs_text(scenario, text);
    if (line == NULL) {
        return false;
    }
    int status = wordexp(line, words, WRDE_NOCMD);
    bool good = status == 0 && words->we_wordc > 0;
    if (!good) {
        cli_error("'%s' is not a program and its arguments: %s. "
                  "To use the full syntax of a shell start one: \"sh -c '...'\"",
                  line, split_error(status));
    }
    if (status == 0 && !good) {
        wordfree(words);
    }
    free(line);
    return good;
}

bool cli_programs_add(struct cli_programs *programs, const struct scn_scenario *scenario, uint32_t node,
                      const char *command)
{
    uint32_t index = programs->count;
    if (index == ATTACH_RUN_PROGRAMS_MAX) {
        cli_error("more than %d programs", ATTACH_RUN_PROGRAMS_MAX);
        return false;
    }
    if (!line_split(scenario, command, &programs->words[index])) {
        return false;
    }
    programs->count++;
    programs->list[index] = (struct attach_program){.node = node, .argv = programs->words[index].we_wordv};
    return true;
}

static bool environment_add(struct cli_programs *programs, const struct scn_scenario *scenario, const char *text)
{
    uint32_t index = programs->count - 1;
    struct attach_program *program = &programs->list[index];
    if (!line_split(scenario, text, &programs->env[index])) {
        return false;
    }
    program->env = programs->env[index].we_wordv;
    for (size_t i = 0; program->env[i] != NULL; i++) {
        if (strchr(program->env[i], '=') == NULL) {
            cli_error("env: '%s' is not of the form NAME=VALUE", program->env[i]);
            return false;
        }
    }
    return true;
}

static bool file_add(const struct scn_scenario *scenario, const char *text, char **file, const char **path)
{
    if (text[0] != '\0') {
        *path = *file = cli_programs_text(scenario, text);
        return *file != NULL;
    }
    return true;
}

static bool outside_add(struct cli_programs *programs, const struct scn_scenario *scenario,
                        const struct scn_outside *outside)
{
    if (!cli_programs_add(programs, scenario, outside->node, outside->command)) {
        return false;
    }
    uint32_t index = programs->count - 1;
    struct attach_program *program = &programs->list[index];
    char **files = programs->files[index];
    programs->expected[index] = (int)outside->status;
    program->gpu_mpi = outside->gpu_mpi;
    program->serves = outside->ends == SCN_ENDS_WITH_OTHERS;
    return (outside->env[0] == '\0' || environment_add(programs, scenario, outside->env)) &&
           file_add(scenario, outside->stdin_path, &files[0], &program->stdin_path) &&
           file_add(scenario, outside->stdout_path, &files[1], &program->stdout_path);
}

bool cli_programs_of_scenario(struct cli_programs *programs, const struct scn_scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->outside_count; i++) {
        if (!outside_add(programs, scenario, &scenario->outsides[i])) {
            return false;
        }
    }
    return true;
}

void cli_programs_free(struct cli_programs *programs)
{
    for (uint32_t i = 0; i < programs->count; i++) {
        wordfree(&programs->words[i]);
        if (programs->list[i].env != NULL) {
            wordfree(&programs->env[i]);
        }
        free(programs->files[i][0]);
        free(programs->files[i][1]);
    }
}

// --- running --------------------------------------------------------------------------------------------------------

static volatile sig_atomic_t came;

static void interrupt(int signal_number)
{
    came = signal_number;
    attach_run_interrupt();
}

// Programs are ended and reaped before this process ends.
int cli_programs_run(const struct scn_scenario *scenario, const struct attach_run_options *options,
                     enum sim_status *status_out, struct attach_run_result *result_out)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = interrupt}, before[sizeof signals / sizeof signals[0]];
    sigemptyset(&action.sa_mask);
    came = 0;
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        if (sigaction(signals[i], NULL, &before[i]) == 0 && before[i].sa_handler != SIG_IGN) {
            (void)sigaction(signals[i], &action, NULL);
        }
    }
    *status_out = attach_run(scenario, options, result_out);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)sigaction(signals[i], &before[i], NULL);
    }
    return came;
}

// --- exit statuses --------------------------------------------------------------------------------------------------

static void ends_print(const char *lines)
{
    for (size_t length; *lines != '\0'; lines += length + (lines[length] == '\n')) {
        length = strcspn(lines, "\n");
        cli_error("%.*s", (int)length, lines);
    }
}

bool cli_programs_went_on(enum sim_status status, const struct attach_run_result *result)
{
    return status == SIM_OK && !result->interrupted && !result->failed && result->outcome != SIM_RUN_STUCK &&
           result->outcome != SIM_RUN_TIME_LIMIT;
}

int cli_programs_judge(const char *path, const struct cli_programs *programs, enum sim_status status,
                       const struct attach_run_result *result)
{
    int worst = 0;
    if (status != SIM_OK) {
        cli_error("%s: %s", path, result->text[0] != '\0' ? result->text : sim_status_text(status));
        return CLI_EXIT_INPUT;
    }
    if (result->interrupted) {
        cli_error("interrupted");
        return 130;
    }
    ends_print(result->ends);
    if (result->outcome == SIM_RUN_STUCK || result->outcome == SIM_RUN_TIME_LIMIT) {
        char time[48];
        observe_time_print(result->simulated_ps, time, sizeof time);
        cli_error("%s: %s after %s of simulated time:\n%s", path,
                  result->outcome == SIM_RUN_STUCK ? "the programs got stuck" : "the time limit was reached", time,
                  result->text);
        return CLI_EXIT_STUCK;
    }
    if (result->failed) {
        cli_error("%s: %s", path, result->text);
        return CLI_EXIT_STUCK;
    }
    for (uint32_t i = 0; i < programs->count; i++) {
        int got = result->statuses[i], expected = programs->expected[i];
        int status_of_it = got == expected ? 0 : got != 0 ? got : CLI_EXIT_EXPECT;
        if (got != expected && expected != 0) {
            cli_error("%s ended with %d, not %d", programs->list[i].argv[0], got, expected);
        }
        worst = status_of_it > worst ? status_of_it : worst;
    }
    return worst;
}

void cli_programs_outside_print(const struct attach_run_result *result, const char *prefix, FILE *out)
{
    static const struct {
        enum attach_run_outside bit;
        const char *text;
    } outsides[] = {
        {ATTACH_RUN_OUTSIDE_THREAD, "a thread attached that its creator had not announced (direct call of clone)"},
        {ATTACH_RUN_OUTSIDE_CHILD,
         "a process attached that its parent had not announced (popen, daemon, direct call of clone)"},
        {ATTACH_RUN_OUTSIDE_EVENT, "programs waited for an event from outside of the run, and it occurred"},
        {ATTACH_RUN_OUTSIDE_COMPUTE, "measured computing time is simulated time (nodes.*.host.compute: scaled)"},
        {ATTACH_RUN_OUTSIDE_CLOCK,
         "a start, an exit or a daemon took too long in real time, and the simulator did not wait for it"},
        {ATTACH_RUN_OUTSIDE_TIMER, "a program set a timer of processor time (ITIMER_PROF, ITIMER_VIRTUAL)"},
    };
    for (size_t i = 0; i < sizeof outsides / sizeof outsides[0]; i++) {
        if ((result->outside & outsides[i].bit) != 0) {
            fprintf(out, "%s: %s\n", prefix, outsides[i].text);
        }
    }
}
