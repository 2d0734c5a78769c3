// The steps of a load in their order, and the memory of a loaded scenario.
#include "sim/scenario/loader.h"

#include <stdlib.h>
#include <string.h>

// The file's name without folder and .yaml, as the name of a folder of results.
static void name_after_file(struct scn_scenario *scenario, const char *path)
{
    static const char suffix[] = ".yaml";
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    size_t length = strlen(name);
    if (length > sizeof suffix - 1 && strcmp(name + length - (sizeof suffix - 1), suffix) == 0) {
        length -= sizeof suffix - 1;
    }
    if (length > SCN_NAME_MAX - 1) {
        length = SCN_NAME_MAX - 1;
    }
    for (size_t i = 0; i < length; i++) {
        bool usable = (unsigned char)name[i] >= ' ' && name[i] != 0x7f && !(i == 0 && name[i] == '.');
        scenario->name[i] = usable ? name[i] : '_';
    }
}

// The part of the path before the file's name.
static const char *directory_of(struct scn_arena *arena, const char *path)
{
    const char *slash = strrchr(path, '/');
    return scn_arena_copy(arena, path, slash != NULL ? (size_t)(slash + 1 - path) : 0);
}

// A preset gives what a board has unless the scenario says something else.
static bool is_from_preset(const struct scn_loader *loader, const struct scn_source *source)
{
    return source->location.file != loader->file && !source->location.file->is_argument;
}

// Boards get the fidelity of the scenario: those for which it gives no other, or all of them.
static void boards_follow(struct scn_loader *loader, bool all)
{
    struct scn_scenario *scenario = loader->scenario;
    size_t offset = offsetof(struct scn_scenario, fidelity);
    const struct scn_source *given = scn_sources_find(loader->sources, offset, false);
    if (given == NULL) {
        return;
    }
    const struct scn_location location = given->location;
    for (uint32_t i = 0; i < scenario->node_count; i++) {
        struct scn_board *board = &scenario->nodes[i].board;
        offset = (size_t)((const char *)&board->fidelity - (const char *)scenario);
        const struct scn_source *own = scn_sources_find(loader->sources, offset, false);
        if (board->given && (all || own == NULL || is_from_preset(loader, own))) {
            board->fidelity = scenario->fidelity;
            scn_loader_note(loader, &board->fidelity, false, location, NULL);
        }
    }
}

static void apply_sets(struct scn_loader *loader, const struct scn_load_options *options, bool presets)
{
    static const char fidelity[] = "fidelity=";
    for (size_t i = 0; i < options->set_count; i++) {
        bool late = !scn_set_is_early(options->sets[i]) && !scn_set_is_of_presets(options->sets[i]);
        if (late && scn_set_is_preset(options->sets[i]) == presets) {
            scn_set_apply(loader, options->sets[i], (unsigned)i);
            if (strncmp(options->sets[i], fidelity, sizeof fidelity - 1) == 0) {
                boards_follow(loader, true);
            }
        }
    }
}

static void complain(void *ctx, unsigned line, unsigned column, const char *text)
{
    struct scn_loader *loader = ctx;
    scn_mistakes_add(&loader->mistakes, (struct scn_location){loader->file, line, column}, "%s", text);
}

static void resolve(struct scn_loader *loader, struct scn_tree *tree, const char *path,
                    const struct scn_load_options *options)
{
    scn_kind_defaults(&scn_kind_scenario, loader->scenario);
    for (size_t i = 0; i < options->set_count; i++) {
        if (scn_set_is_early(options->sets[i])) {
            scn_set_apply_early(loader, tree, options->sets[i], (unsigned)i);
        }
    }
    scn_object_load(loader, &scn_kind_scenario, tree, loader->scenario);
    apply_sets(loader, options, true);
    boards_follow(loader, false);
    apply_sets(loader, options, false);
    if (!options->presets_may_be_unused) {
        scn_set_of_presets_check(loader);
    }
    for (size_t i = 0; i < loader->set_count && options->sets_used != NULL && loader->sets_of_presets != NULL; i++) {
        options->sets_used[i] = loader->sets_of_presets[i];
    }
    loader->scenario->directory = directory_of(loader->arena, path);
    if (loader->scenario->name[0] == '\0') {
        name_after_file(loader->scenario, path);
    }
    scn_object_require(loader, &scn_kind_scenario, tree->location, loader->scenario);
    if (tree->kind == SCN_TREE_MAPPING) {
        scn_check_hardware(loader);
        scn_check_faults(loader);
        scn_check_runs(loader);
        scn_check_results(loader);
        scn_sweep_check(loader);
        if (options->check != NULL) {
            options->check(options->check_ctx, loader->scenario, complain, loader);
        }
    }
}

// Every point is a scenario that must be valid; only the first invalid one is reported.
static void points_check(struct scn_loader *loader, const char *path, const struct scn_load_options *options)
{
    const struct scn_sweep *sweep = loader->scenario->sweep;
    struct scn_load_options shared = *options;
    shared.presets = loader->presets;
    for (uint32_t i = 0; i < sweep->point_count && loader->mistakes.count == 0; i++) {
        struct scn_messages messages = {0};
        struct scn_scenario *point = NULL;
        if (scn_load_point(path, &shared, &sweep->points[i], &point, &messages) != SIM_OK) {
            for (size_t k = 0; k < messages.count; k++) {
                scn_mistakes_add(&loader->mistakes, loader->sweep_location, "sweep: %s: %s", sweep->points[i].label,
                                 messages.lines[k]);
            }
        }
        scn_messages_free(&messages);
        scn_free(point);
    }
}

enum sim_status scn_load_point(const char *path, const struct scn_load_options *options,
                               const struct scn_sweep_point *point, struct scn_scenario **scenario_out,
                               struct scn_messages *messages)
{
    const char **sets = calloc(options->set_count + point->set_count + 1, sizeof *sets);
    if (sets == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < options->set_count; i++) {
        sets[i] = options->sets[i];
    }
    for (size_t i = 0; i < point->set_count; i++) {
        sets[options->set_count + i] = point->sets[i];
    }
    const struct scn_load_options inner = {.configs_dir = options->configs_dir,
                                           .presets = options->presets,
                                           .sets = sets,
                                           .presets_may_be_unused = options->presets_may_be_unused,
                                           .sets_used = options->sets_used,
                                           .set_count = options->set_count + point->set_count,
                                           .without_sweep = true};
    enum sim_status status = scn_load(path, &inner, scenario_out, messages);
    free(sets);
    return status;
}

enum sim_status scn_load(const char *path, const struct scn_load_options *options, struct scn_scenario **scenario_out,
                         struct scn_messages *messages)
{
    struct scn_loaded *loaded = calloc(1, sizeof *loaded);
    if (loaded == NULL) {
        return SIM_ERR_NO_MEMORY;
    }
    loaded->presets = options->presets == NULL ? scn_presets_create() : NULL;
    struct scn_file *file = scn_arena_alloc(&loaded->arena, sizeof *file);
    file->name = scn_arena_format(&loaded->arena, "%s", path);
    struct scn_loader loader = {
        .arena = &loaded->arena,
        .mistakes = {.arena = &loaded->arena},
        .sources = &loaded->sources,
        .scenario = &loaded->scenario,
        .configs_dir = options->configs_dir,
        .presets = options->presets != NULL ? options->presets : loaded->presets,
        .file = file,
        .sets = options->sets,
        .set_count = options->set_count,
        .without_sweep = options->without_sweep,
    };
    for (size_t i = 0; i < options->set_count && loader.sets_of_presets == NULL; i++) {
        if (scn_set_is_of_presets(options->sets[i])) {
            loader.sets_of_presets = scn_arena_alloc(&loaded->arena, options->set_count * sizeof(bool));
        }
    }
    bool readable = false;
    struct scn_tree *tree = scn_tree_read(loader.arena, &loader.mistakes, file, &readable);
    if (tree != NULL) {
        resolve(&loader, tree, path, options);
    }
    if (loader.mistakes.count == 0 && loaded->scenario.sweep != NULL) {
        points_check(&loader, path, options);
    }
    *messages = (struct scn_messages){0};
    if (loader.mistakes.count + loader.mistakes.warnings > 0) {
        scn_mistakes_export(&loader.mistakes, messages);
    }
    if (loader.mistakes.count > 0) {
        scn_free(&loaded->scenario);
        return readable ? SIM_ERR_INVALID : SIM_ERR_IO;
    }
    *scenario_out = &loaded->scenario;
    return SIM_OK;
}

void scn_free(struct scn_scenario *scenario)
{
    if (scenario == NULL) {
        return;
    }
    // The public struct is the first member.
    struct scn_loaded *loaded = (struct scn_loaded *)(void *)scenario;
    scn_sources_fini(&loaded->sources);
    scn_arena_fini(&loaded->arena);
    scn_presets_destroy(loaded->presets);
    free(loaded);
}

const char *scn_source(const struct scn_scenario *scenario, const void *field)
{
    struct scn_loaded *loaded = (struct scn_loaded *)(void *)(uintptr_t)scenario;
    size_t offset = (size_t)((const char *)field - (const char *)scenario);
    const struct scn_source *source = scn_sources_find(&loaded->sources, offset, false);
    if (source == NULL) {
        return "default";
    }
    return source->note != NULL ? source->note : scn_location_text(&loaded->arena, source->location);
}
