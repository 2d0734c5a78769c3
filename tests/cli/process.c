#include "process.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/shim/test.h"

#define WORDS_MAX 32

extern char **environ;

void process_init(struct process *process)
{
    *process = (struct process){.directory = "/tmp/tcasim-cli-XXXXXX"};
    if (mkdtemp(process->directory) == NULL) {
        FAIL("no scratch directory");
    }
}

static void tree_remove(const char *path)
{
    DIR *directory = opendir(path);
    if (directory != NULL) {
        for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
            if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
                char inner[512];
                snprintf(inner, sizeof inner, "%s/%s", path, entry->d_name);
                tree_remove(inner);
            }
        }
        closedir(directory);
    }
    (void)remove(path);
}

void process_fini(struct process *process)
{
    tree_remove(process->directory);
    free(process->output);
    free(process->errors);
}

static void path_make(const struct process *process, const char *name, char path[512])
{
    snprintf(path, 512, "%s/%s", process->directory, name);
}

void process_file_write(const struct process *process, const char *name, const char *text)
{
    char path[512];
    path_make(process, name, path);
    FILE *file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) {
        FAIL("%s cannot be written", path);
    }
}

static char *whole_read(FILE *file)
{
    char *text = NULL;
    size_t size = 0;
    if (getdelim(&text, &size, '\0', file) < 0) {
        free(text);
        text = strdup("");
    }
    return text;
}

char *process_file_read(const struct process *process, const char *name)
{
    char path[512];
    path_make(process, name, path);
    FILE *file = fopen(path, "r");
    if (file == NULL) {
        return NULL;
    }
    char *text = whole_read(file);
    fclose(file);
    return text;
}

unsigned process_entries(const struct process *process)
{
    unsigned count = 0;
    DIR *directory = opendir(process->directory);
    for (struct dirent *entry = readdir(directory); entry != NULL; entry = readdir(directory)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(directory);
    return count;
}

static int spawn(const struct process *process, char **argv, FILE *output, FILE *errors, pid_t *child_out)
{
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addchdir_np(&actions, process->directory);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(output), 1);
    posix_spawn_file_actions_adddup2(&actions, fileno(errors), 2);
    int error = posix_spawn(child_out, PROCESS_PROGRAM, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

static void words_split(char *words, char *argv[WORDS_MAX])
{
    size_t count = 0;
    argv[count++] = "tcasim";
    for (char *word = strtok(words, " "); word != NULL && count + 1 < WORDS_MAX; word = strtok(NULL, " ")) {
        for (char *c = strchr(word, '_'); c != NULL; c = strchr(c, '_')) {
            *c = ' ';
        }
        argv[count++] = word;
    }
    argv[count] = NULL;
}

static bool file_exists(const struct process *process, const char *pattern)
{
    char path[512];
    glob_t found;
    snprintf(path, sizeof path, "%s/%s", process->directory, pattern);
    bool exists = glob(path, GLOB_NOSORT, NULL, &found) == 0;
    globfree(&found);
    return exists;
}

// Waits at most half a minute for the file, and sends the signal.
static void stop(const struct process *process, pid_t child, int signal_number, const char *pattern)
{
    for (unsigned i = 0; i < 3000 && !file_exists(process, pattern); i++) {
        usleep(10000);
    }
    (void)kill(child, signal_number);
}

void process_run_stopped(struct process *process, const char *words, int signal_number, const char *pattern)
{
    free(process->output);
    free(process->errors);
    char *copy = strdup(words);
    char *argv[WORDS_MAX];
    words_split(copy, argv);
    FILE *output = tmpfile();
    FILE *errors = tmpfile();
    pid_t child;
    int status = 0;
    if (spawn(process, argv, output, errors, &child) != 0) {
        FAIL("%s cannot be run", PROCESS_PROGRAM);
    }
    if (pattern != NULL) {
        stop(process, child, signal_number, pattern);
    }
    if (waitpid(child, &status, 0) < 0) {
        FAIL("%s cannot be waited for", PROCESS_PROGRAM);
    }
    process->status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    rewind(output);
    rewind(errors);
    process->output = whole_read(output);
    process->errors = whole_read(errors);
    fclose(output);
    fclose(errors);
    free(copy);
}

void process_run(struct process *process, const char *words)
{
    process_run_stopped(process, words, 0, NULL);
}
