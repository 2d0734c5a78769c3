// Finds and reads presets: configs/<folder>/<name>.yaml. Each is read once a load, or once for all loads that share them.
#include "sim/scenario/loader.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "sim/scenario/names.h"

#define PRESETS_LISTED_MAX 512

static const char suffix[] = ".yaml";

struct scn_preset {
    struct scn_preset *next;
    const char *folder, *name;
    const struct scn_tree *tree; // NULL: mistakes were reported
};

struct scn_presets {
    struct scn_arena arena;
    struct scn_preset *first;
    unsigned read;
};

scn_presets_t *scn_presets_create(void)
{
    scn_presets_t *presets = calloc(1, sizeof *presets);
    if (presets == NULL) {
        sim_panic("scenario", "no memory for presets");
    }
    return presets;
}

void scn_presets_destroy(scn_presets_t *presets)
{
    if (presets != NULL) {
        scn_arena_fini(&presets->arena);
        free(presets);
    }
}

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

char **scn_preset_names(struct scn_arena *arena, const char *configs_dir, const char *folder)
{
    DIR *dir = opendir(scn_arena_format(arena, "%s/%s", configs_dir, folder));
    if (dir == NULL) {
        return NULL;
    }
    char **names = scn_arena_alloc(arena, (PRESETS_LISTED_MAX + 1) * sizeof *names);
    size_t count = 0;
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        size_t length = strlen(entry->d_name);
        size_t stem = length - (sizeof suffix - 1);
        bool fits = length > sizeof suffix - 1 && strcmp(entry->d_name + stem, suffix) == 0;
        if (fits && entry->d_name[0] != '.' && count < PRESETS_LISTED_MAX) {
            names[count++] = scn_arena_copy(arena, entry->d_name, stem);
        }
    }
    closedir(dir);
    qsort(names, count, sizeof *names, compare_names);
    return names;
}

static bool is_listed(char *const *names, const char *wanted)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], wanted) == 0) {
            return true;
        }
    }
    return false;
}

static void complain_unknown(struct scn_loader *loader, const char *folder, const struct scn_tree *name,
                             char *const *names)
{
    struct scn_nearest nearest;
    scn_nearest_init(&nearest, name->text);
    char *list = scn_arena_format(loader->arena, "%s", names[0] != NULL ? names[0] : "none");
    for (size_t i = 0; names[i] != NULL; i++) {
        scn_nearest_offer(&nearest, names[i]);
        list = i == 0 ? list : scn_arena_format(loader->arena, "%s, %s", list, names[i]);
    }
    if (nearest.name != NULL) {
        scn_mistakes_add(&loader->mistakes, name->location, "unknown %s preset '%.80s' (did you mean '%s'?)", folder,
                         name->text, nearest.name);
    } else {
        scn_mistakes_add(&loader->mistakes, name->location, "unknown %s preset '%.80s' (there are: %s)", folder,
                         name->text, list);
    }
}

static bool exists(struct scn_loader *loader, const char *folder, const struct scn_tree *name)
{
    char **names = scn_preset_names(loader->arena, loader->configs_dir, folder);
    if (names == NULL) {
        scn_mistakes_add(&loader->mistakes, name->location, "no presets: folder %s/%s cannot be read",
                         loader->configs_dir, folder);
        return false;
    }
    if (!is_listed(names, name->text)) {
        complain_unknown(loader, folder, name, names);
        return false;
    }
    return true;
}

static struct scn_preset *find_read(struct scn_preset *first, const char *folder, const char *name)
{
    for (struct scn_preset *preset = first; preset != NULL; preset = preset->next) {
        if (strcmp(preset->folder, folder) == 0 && strcmp(preset->name, name) == 0) {
            return preset;
        }
    }
    return NULL;
}

// A file with mistakes is not shared, because each load reports them.
static struct scn_preset *preset_read(struct scn_loader *loader, const char *folder, const char *name)
{
    struct scn_presets *presets = loader->presets;
    struct scn_arena *arena = &presets->arena;
    struct scn_file *file = scn_arena_alloc(arena, sizeof *file);
    file->name = scn_arena_format(arena, "%s/%s/%s%s", loader->configs_dir, folder, name, suffix);
    file->rank = ++presets->read;
    struct scn_preset *preset = scn_arena_alloc(arena, sizeof *preset);
    size_t mistakes = loader->mistakes.count;
    bool readable = false;
    preset->folder = folder;
    preset->name = scn_arena_copy(arena, name, strlen(name));
    preset->tree = scn_tree_read(arena, &loader->mistakes, file, &readable);
    struct scn_preset **list = loader->mistakes.count == mistakes ? &presets->first : &loader->bad_presets;
    preset->next = *list;
    *list = preset;
    return preset;
}

const struct scn_tree *scn_preset_get(struct scn_loader *loader, const char *folder, const struct scn_tree *name)
{
    if (name->kind != SCN_TREE_SCALAR) {
        scn_mistakes_add(&loader->mistakes, name->location, "preset: expected a name, found %s",
                         scn_tree_kind_text(name));
        return NULL;
    }
    struct scn_preset *preset = find_read(loader->presets->first, folder, name->text);
    preset = preset != NULL ? preset : find_read(loader->bad_presets, folder, name->text);
    if (preset == NULL && exists(loader, folder, name)) {
        preset = preset_read(loader, folder, name->text);
    }
    return preset != NULL ? preset->tree : NULL;
}
