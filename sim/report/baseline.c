#include "sim/report/baseline.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "sim/kernel/text.h"
#include "sim/report/files.h"
#include "sim/scenario/tree.h"
#include "sim/scenario/units.h"

static void *grow(void *array, size_t count, size_t size)
{
    void *grown = realloc(array, (count + 1) * size);
    if (grown == NULL) {
        sim_panic("report", "out of memory for a baseline");
    }
    return grown;
}

static char *copy(const char *text)
{
    char *copied = strdup(text);
    if (copied == NULL) {
        sim_panic("report", "out of memory for a baseline");
    }
    return copied;
}

// --- entries --------------------------------------------------------------------------------------------------------

static int names_compare(const char *scenario, const char *expect, const struct baseline_entry *entry)
{
    int order = strcmp(scenario, entry->scenario);
    return order != 0 ? order : strcmp(expect, entry->expect);
}

const struct baseline_entry *baseline_find(const struct baseline *baseline, const char *scenario, const char *expect)
{
    for (size_t i = 0; i < baseline->count; i++) {
        if (names_compare(scenario, expect, &baseline->entries[i]) == 0) {
            return &baseline->entries[i];
        }
    }
    return NULL;
}

// Inserts an entry in the order of names; no entry has this name yet.
static struct baseline_entry *entry_insert(struct baseline *baseline, const char *scenario, const char *expect)
{
    size_t index = 0;
    baseline->entries = grow(baseline->entries, baseline->count, sizeof *baseline->entries);
    while (index < baseline->count && names_compare(scenario, expect, &baseline->entries[index]) > 0) {
        index++;
    }
    memmove(&baseline->entries[index + 1], &baseline->entries[index],
            (baseline->count - index) * sizeof *baseline->entries);
    baseline->entries[index] = (struct baseline_entry){.scenario = copy(scenario), .expect = copy(expect)};
    baseline->count++;
    return &baseline->entries[index];
}

static void number_add(struct baseline_entry *entry, double number)
{
    entry->numbers = grow(entry->numbers, entry->count, sizeof *entry->numbers);
    entry->numbers[entry->count++] = number;
}

void baseline_free(struct baseline *baseline)
{
    for (size_t i = 0; i < baseline->count; i++) {
        free(baseline->entries[i].scenario);
        free(baseline->entries[i].expect);
        free(baseline->entries[i].numbers);
    }
    free(baseline->entries);
    *baseline = (struct baseline){0};
}

// --- reading --------------------------------------------------------------------------------------------------------

static const char *text_of(struct scn_mistakes *mistakes, const struct scn_tree *item, const char *key)
{
    const struct scn_tree *tree = scn_tree_find(item, key);
    if (tree == NULL || tree->kind != SCN_TREE_SCALAR) {
        scn_mistakes_add(mistakes, tree != NULL ? tree->location : item->location, "an entry needs %s: with a text",
                         key);
        return "";
    }
    return tree->text;
}

static void numbers_read(struct scn_mistakes *mistakes, const struct scn_tree *item, struct baseline_entry *entry)
{
    const struct scn_tree *list = scn_tree_find(item, "numbers");
    if (list == NULL || list->kind != SCN_TREE_SEQUENCE || list->count == 0) {
        scn_mistakes_add(mistakes, list != NULL ? list->location : item->location,
                         "an entry needs numbers: with a list");
        return;
    }
    for (const struct scn_tree *tree = list->first; tree != NULL; tree = tree->next) {
        char why[SCN_WHY_MAX];
        double number = 0;
        if (tree->kind != SCN_TREE_SCALAR || !scn_real_parse(tree->text, &number, why) || !isfinite(number)) {
            scn_mistakes_add(mistakes, tree->location, "numbers: '%.80s' is not a number",
                             tree->kind == SCN_TREE_SCALAR ? tree->text : scn_tree_kind_text(tree));
            return;
        }
        number_add(entry, number);
    }
}

static void entry_read(struct scn_mistakes *mistakes, const struct scn_tree *item, struct baseline *baseline)
{
    static const char *const keys[] = {"scenario", "expect", "numbers"};
    if (item->kind != SCN_TREE_MAPPING) {
        scn_mistakes_add(mistakes, item->location, "expected {scenario, expect, numbers}, found %s",
                         scn_tree_kind_text(item));
        return;
    }
    for (const struct scn_tree *entry = item->first; entry != NULL; entry = entry->next) {
        bool known = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
            known = known || strcmp(entry->key, keys[i]) == 0;
        }
        if (!known) {
            scn_mistakes_add(mistakes, entry->key_location, "unknown key '%.80s' in an entry", entry->key);
        }
    }
    const char *scenario = text_of(mistakes, item, "scenario"), *expect = text_of(mistakes, item, "expect");
    if (baseline_find(baseline, scenario, expect) != NULL) {
        scn_mistakes_add(mistakes, item->location, "'%.80s' of '%.80s' appears twice", expect, scenario);
        return;
    }
    numbers_read(mistakes, item, entry_insert(baseline, scenario, expect));
}

// An empty list may be written as an empty document.
static void tree_read(struct scn_mistakes *mistakes, const struct scn_tree *tree, struct baseline *baseline)
{
    if (tree->kind != SCN_TREE_SEQUENCE) {
        scn_mistakes_add(mistakes, tree->location, "expected a list of {scenario, expect, numbers}, found %s",
                         scn_tree_kind_text(tree));
        return;
    }
    for (const struct scn_tree *item = tree->first; item != NULL; item = item->next) {
        entry_read(mistakes, item, baseline);
    }
}

enum sim_status baseline_read(const char *path, struct baseline *baseline_out, char *error, size_t error_size)
{
    struct scn_arena arena = {0};
    struct scn_mistakes mistakes = {.arena = &arena};
    const struct scn_file file = {.name = path};
    struct baseline baseline = {0};
    bool readable = false;
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return SIM_ERR_NOT_FOUND;
    }
    const struct scn_tree *tree = scn_tree_read(&arena, &mistakes, &file, &readable);
    if (tree != NULL) {
        tree_read(&mistakes, tree, &baseline);
    }
    enum sim_status status = mistakes.count == 0 ? SIM_OK : readable ? SIM_ERR_INVALID : SIM_ERR_IO;
    if (status == SIM_OK) {
        *baseline_out = baseline;
    } else {
        struct scn_messages messages = {0};
        scn_mistakes_export(&mistakes, &messages);
        snprintf(error, error_size, "%s", messages.count > 0 ? messages.lines[0] : path);
        scn_messages_free(&messages);
        baseline_free(&baseline);
    }
    scn_arena_fini(&arena);
    return status;
}

// --- writing --------------------------------------------------------------------------------------------------------

static void numbers_write(FILE *out, const struct baseline_entry *entry)
{
    fputc('[', out);
    for (size_t i = 0; i < entry->count; i++) {
        char text[SCN_QUANTITY_MAX];
        scn_real_format(entry->numbers[i], text);
        fprintf(out, "%s%s", i > 0 ? ", " : "", text);
    }
    fputc(']', out);
}

static void file_write(void *ctx, FILE *out)
{
    const struct baseline *baseline = ctx;
    fputs("# Reference numbers, written by `--update-baseline` of tcasim run and exec; expectations with of: are "
          "compared with them.\n",
          out);
    for (size_t i = 0; i < baseline->count; i++) {
        fputs("- scenario: ", out);
        sim_text_quote(out, baseline->entries[i].scenario);
        fputs("\n  expect: ", out);
        sim_text_quote(out, baseline->entries[i].expect);
        fputs("\n  numbers: ", out);
        numbers_write(out, &baseline->entries[i]);
        fputc('\n', out);
    }
}

// Prints what changed in the entry; `before` may be NULL.
static void change_print(FILE *log, const char *path, const struct baseline_entry *before,
                         const struct baseline_entry *now)
{
    bool same = before != NULL && before->count == now->count;
    for (size_t i = 0; same && i < now->count; i++) {
        same = before->numbers[i] == now->numbers[i];
    }
    fprintf(log, "%s: '%s' of %s: ", path, now->expect, now->scenario);
    if (before != NULL && !same) {
        numbers_write(log, before);
        fputs(" -> ", log);
    }
    numbers_write(log, now);
    if (before != NULL && !same && before->count == 1 && now->count == 1 && before->numbers[0] != 0) {
        fprintf(log, " (%+.2f %%)", (now->numbers[0] - before->numbers[0]) / fabs(before->numbers[0]) * 100);
    }
    fputs(before == NULL ? ", new\n" : same ? ", as before\n" : "\n", log);
}

static void entry_put(struct baseline *baseline, const struct baseline_entry *now)
{
    struct baseline_entry *entry =
        (struct baseline_entry *)(void *)(uintptr_t)baseline_find(baseline, now->scenario, now->expect);
    if (entry == NULL) {
        entry = entry_insert(baseline, now->scenario, now->expect);
    }
    entry->count = 0;
    for (size_t i = 0; i < now->count; i++) {
        number_add(entry, now->numbers[i]);
    }
}

// Locks the directory, because the file itself is replaced. -1: not locked.
static int directory_lock(const char *path)
{
    char copied[PATH_MAX];
    snprintf(copied, sizeof copied, "%s", path);
    int directory = open(dirname(copied), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory >= 0) {
        (void)flock(directory, LOCK_EX);
    }
    return directory;
}

enum sim_status baseline_update(const char *path, const struct baseline_entry *entries, size_t count, FILE *log,
                                char *error, size_t error_size)
{
    struct baseline baseline = {0};
    int lock = directory_lock(path);
    enum sim_status status = baseline_read(path, &baseline, error, error_size);
    char *text = NULL;
    size_t size = 0;
    FILE *changes = open_memstream(&text, &size);
    if (changes == NULL) {
        sim_panic("report", "out of memory for a baseline");
    }
    if (status == SIM_OK || status == SIM_ERR_NOT_FOUND) {
        for (size_t i = 0; i < count; i++) {
            change_print(changes, path, baseline_find(&baseline, entries[i].scenario, entries[i].expect), &entries[i]);
            entry_put(&baseline, &entries[i]);
        }
        status = files_one_write(path, file_write, &baseline, error, error_size);
    }
    (void)fclose(changes);
    if (status == SIM_OK) {
        fputs(text, log); // only after the file has been written
    }
    free(text);
    baseline_free(&baseline);
    if (lock >= 0) {
        (void)close(lock);
    }
    return status;
}
