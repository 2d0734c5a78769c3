// `sweep:` becomes points: every combination of the values of its keys; keys under `zip:` change together.
#include "sim/scenario/loader.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DIMENSIONS_MAX 8
#define PATHS_MAX      16

// Keys that change together: one of them, or those under zip:.
struct dimension {
    const struct scn_tree *keys[PATHS_MAX];
    size_t key_count;
    size_t first; // of the values that are used
    size_t value_count;
    const char *given; // the one value, of --set; NULL: those of the lists
};

struct request {
    struct dimension dimensions[DIMENSIONS_MAX];
    size_t dimension_count;
};

static const char *found_text(const struct scn_tree *tree)
{
    return tree->kind == SCN_TREE_MAPPING && tree->count == 0 ? "nothing" : scn_tree_kind_text(tree);
}

static bool is_list_of_values(struct scn_loader *loader, const struct scn_tree *entry)
{
    bool good = entry->kind == SCN_TREE_SEQUENCE && entry->count > 0;
    for (const struct scn_tree *item = good ? entry->first : NULL; item != NULL; item = item->next) {
        good = good && item->kind == SCN_TREE_SCALAR;
    }
    if (!good) {
        scn_mistakes_add(&loader->mistakes, entry->location, "sweep: '%s' needs a list of single values", entry->key);
    }
    return good;
}

// The names of series and the sweep itself cannot be swept.
static bool is_sweepable(struct scn_loader *loader, const struct scn_tree *entry)
{
    const char *path = entry->key, *last = strrchr(path, '.');
    const char *reason = NULL;
    if (strncmp(path, "sweep", 5) == 0 && (path[5] == '\0' || path[5] == '.')) {
        reason = "a sweep has no sweep within";
    } else if (last != NULL && strcmp(last, ".series") == 0 &&
               (strncmp(path, "runs.", 5) == 0 || strncmp(path, "programs.", 9) == 0)) {
        reason = "series are named by their runs, and each point adds its value";
    }
    if (reason != NULL) {
        scn_mistakes_add(&loader->mistakes, entry->key_location, "sweep: '%s' cannot be swept: %s", path, reason);
    }
    return reason == NULL;
}

static bool key_add(struct scn_loader *loader, struct dimension *dimension, const struct scn_tree *entry)
{
    if (!is_sweepable(loader, entry)) {
        return false;
    }
    if (!is_list_of_values(loader, entry)) {
        return false;
    }
    if (dimension->key_count == PATHS_MAX) {
        scn_mistakes_add(&loader->mistakes, entry->key_location, "sweep: more than %d keys side by side", PATHS_MAX);
        return false;
    }
    if (dimension->key_count > 0 && dimension->value_count != entry->count) {
        scn_mistakes_add(&loader->mistakes, entry->location, "sweep: '%s' has %zu value%s, '%s' beside it has %zu",
                         entry->key, entry->count, entry->count == 1 ? "" : "s", dimension->keys[0]->key,
                         dimension->value_count);
        return false;
    }
    dimension->value_count = entry->count;
    dimension->keys[dimension->key_count++] = entry;
    return true;
}

// --- settings of swept keys ------------------------------------------------------------------------------------------

// Do two paths name a common key? A step * names every entry of a list.
static bool paths_meet(const char *a, size_t a_length, const char *b)
{
    const char *a_end = a + a_length;
    for (;;) {
        size_t a_step = strcspn(a, "."), b_step = strcspn(b, ".");
        a_step = a + a_step > a_end ? (size_t)(a_end - a) : a_step;
        bool any = (a_step == 1 && *a == '*') || (b_step == 1 && *b == '*');
        if (!any && (a_step != b_step || strncmp(a, b, a_step) != 0)) {
            return false;
        }
        a += a_step;
        b += b_step;
        if (a == a_end || *b == '\0') {
            return a == a_end && *b == '\0';
        }
        a++;
        b++;
    }
}

// The value that --set gives a swept key; NULL: none. A setting of only a part of what the key names is a mistake,
// because the points would overwrite it.
static const char *value_given(struct scn_loader *loader, const struct scn_tree *entry)
{
    const char *value = NULL;
    for (size_t i = 0; i < loader->set_count; i++) {
        const char *set = loader->sets[i], *equals = strchr(set, '=');
        size_t length = equals != NULL ? (size_t)(equals - set) : 0;
        if (length == 0 || !paths_meet(set, length, entry->key)) {
            continue;
        }
        if (strlen(entry->key) == length && strncmp(set, entry->key, length) == 0) {
            value = equals + 1;
        } else {
            scn_mistakes_add(&loader->mistakes, entry->key_location,
                             "sweep: '%s' is swept, and would overwrite --set %s; set '%s'", entry->key, set,
                             entry->key);
        }
    }
    return value;
}

// Keys that change together take their values at the same position of their lists.
static bool position_take(struct scn_loader *loader, struct dimension *dimension, size_t key, const char *value)
{
    size_t index = 0;
    const struct scn_tree *item = dimension->keys[key]->first;
    for (; item != NULL && strcmp(item->text, value) != 0; item = item->next) {
        index++;
    }
    if (item == NULL || (dimension->value_count == 1 && dimension->first != index)) {
        scn_mistakes_add(&loader->mistakes, dimension->keys[key]->key_location,
                         "sweep: '%s' changes together with other keys; --set %s=%s is %s", dimension->keys[key]->key,
                         dimension->keys[key]->key, value,
                         item == NULL ? "none of its values" : "at another position than the others");
        return false;
    }
    dimension->first = index;
    dimension->value_count = 1;
    return true;
}

// --set of a swept key leaves one value of the dimension.
static bool dimension_collapse(struct scn_loader *loader, struct dimension *dimension)
{
    size_t before = loader->mistakes.count;
    for (size_t i = 0; i < dimension->key_count; i++) {
        const char *value = value_given(loader, dimension->keys[i]);
        if (value != NULL && dimension->key_count > 1) {
            (void)position_take(loader, dimension, i, value);
        } else if (value != NULL) {
            dimension->given = value;
            dimension->value_count = 1;
        }
        loader->sweep_collapsed = loader->sweep_collapsed || value != NULL;
    }
    return loader->mistakes.count == before;
}

static bool dimension_add(struct scn_loader *loader, struct request *request, const struct scn_tree *entry)
{
    if (request->dimension_count == DIMENSIONS_MAX) {
        scn_mistakes_add(&loader->mistakes, entry->key_location, "sweep: more than %d keys to combine", DIMENSIONS_MAX);
        return false;
    }
    struct dimension *dimension = &request->dimensions[request->dimension_count++];
    if (strcmp(entry->key, "zip") != 0) {
        return key_add(loader, dimension, entry) && dimension_collapse(loader, dimension);
    }
    if (entry->kind != SCN_TREE_MAPPING || entry->count == 0) {
        scn_mistakes_add(&loader->mistakes, entry->location,
                         "sweep: zip: expected a mapping of paths to lists, found %s", found_text(entry));
        return false;
    }
    bool good = true;
    for (const struct scn_tree *inner = entry->first; inner != NULL; inner = inner->next) {
        good = key_add(loader, dimension, inner) && good;
    }
    return good && dimension_collapse(loader, dimension);
}

static const char *value_text(const struct dimension *dimension, size_t key, size_t index)
{
    const struct scn_tree *item = dimension->keys[key]->first;
    if (dimension->given != NULL) {
        return dimension->given;
    }
    for (index += dimension->first; index > 0; index--) {
        item = item->next;
    }
    return item->text;
}

// "Gen3, x16"; a value that several keys under zip: share appears once.
static const char *label_extend(struct scn_loader *loader, const char *label, const struct dimension *dimension,
                                size_t index)
{
    for (size_t i = 0; i < dimension->key_count; i++) {
        const char *text = value_text(dimension, i, index);
        bool seen = false;
        for (size_t k = 0; k < i; k++) {
            seen = seen || strcmp(value_text(dimension, k, index), text) == 0;
        }
        if (!seen) {
            label = scn_arena_format(loader->arena, "%s%s%s", label, label[0] != '\0' ? ", " : "", text);
        }
    }
    return label;
}

static bool is_column(const struct dimension *dimension)
{
    bool all = true;
    for (size_t i = 0; i < dimension->key_count; i++) {
        all = all && strcmp(dimension->keys[i]->key, "parameters.bytes.value") == 0;
    }
    return all;
}

// On the x axis of a plot over the sweep: the first one with several values that is no column of the results.
static const struct dimension *axis_of(const struct request *request)
{
    for (size_t i = 0; i < request->dimension_count; i++) {
        if (request->dimensions[i].value_count > 1 && !is_column(&request->dimensions[i])) {
            return &request->dimensions[i];
        }
    }
    return &request->dimensions[0];
}

// The last dimension changes fastest.
static void point_make(struct scn_loader *loader, const struct request *request, size_t number,
                       struct scn_sweep_point *point)
{
    size_t sets_max = DIMENSIONS_MAX * PATHS_MAX;
    const char **sets = scn_arena_alloc(loader->arena, sets_max * sizeof *sets);
    size_t rest = number, indices[DIMENSIONS_MAX] = {0};
    for (size_t i = request->dimension_count; i > 0; i--) {
        indices[i - 1] = rest % request->dimensions[i - 1].value_count;
        rest /= request->dimensions[i - 1].value_count;
    }
    *point = (struct scn_sweep_point){.label = "", .curve = "", .axis = "", .others = "", .sets = sets};
    const struct dimension *axis = axis_of(request);
    for (size_t i = 0; i < request->dimension_count; i++) {
        const struct dimension *dimension = &request->dimensions[i];
        point->label = label_extend(loader, point->label, dimension, indices[i]);
        if (!is_column(dimension)) {
            point->curve = label_extend(loader, point->curve, dimension, indices[i]);
        }
        if (dimension == axis) {
            point->axis = label_extend(loader, point->axis, dimension, indices[i]);
        } else if (!is_column(dimension)) {
            point->others = label_extend(loader, point->others, dimension, indices[i]);
        }
        for (size_t k = 0; k < dimension->key_count; k++) {
            sets[point->set_count++] =
                scn_arena_format(loader->arena, "%s=%s", dimension->keys[k]->key, value_text(dimension, k, indices[i]));
        }
    }
}

// The last step of a path; for a parameter, its name.
static const char *step_of(struct scn_loader *loader, const char *path)
{
    static const char parameters[] = "parameters.";
    const char *dot = strrchr(path, '.'), *name = path + strlen(parameters);
    if (dot != NULL && dot > name && strncmp(path, parameters, strlen(parameters)) == 0) {
        return scn_arena_copy(loader->arena, name, (size_t)(dot - name));
    }
    return dot != NULL ? dot + 1 : path;
}

// "generation, clock": the last steps of the paths, each once. axis: of the dimension on the axis, and of the others.
static const char *title_make(struct scn_loader *loader, const struct request *request, bool axis, bool others)
{
    const char *title = "", *seen[DIMENSIONS_MAX * PATHS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < request->dimension_count; i++) {
        const struct dimension *dimension = &request->dimensions[i];
        bool named = !is_column(dimension) && (dimension == axis_of(request) ? axis : others);
        for (size_t k = 0; k < dimension->key_count && named; k++) {
            const char *step = step_of(loader, dimension->keys[k]->key);
            size_t known = 0;
            while (known < count && strcmp(seen[known], step) != 0) {
                known++;
            }
            if (known == count) {
                seen[count++] = step;
                title = scn_arena_format(loader->arena, "%s%s%s", title, title[0] != '\0' ? ", " : "", step);
            }
        }
    }
    return title;
}

static void points_make(struct scn_loader *loader, const struct request *request, const struct scn_tree *tree)
{
    size_t count = 1;
    for (size_t i = 0; i < request->dimension_count && count <= SCN_SWEEP_MAX; i++) {
        count *= request->dimensions[i].value_count;
    }
    if (count > SCN_SWEEP_MAX) {
        scn_mistakes_add(&loader->mistakes, tree->location, "sweep: more than %d points", SCN_SWEEP_MAX);
        return;
    }
    struct scn_sweep *sweep = scn_arena_alloc(loader->arena, sizeof *sweep);
    struct scn_sweep_point *points = scn_arena_alloc(loader->arena, count * sizeof *points);
    for (size_t i = 0; i < count; i++) {
        point_make(loader, request, i, &points[i]);
        for (size_t k = 0; k < i; k++) {
            if (strcmp(points[k].label, points[i].label) == 0) {
                scn_mistakes_add(&loader->mistakes, tree->location, "sweep: two points are called '%s'",
                                 points[i].label);
            }
        }
    }
    const struct dimension *axis = axis_of(request);
    uint32_t stride = 1;
    for (const struct dimension *after = axis + 1; after < request->dimensions + request->dimension_count; after++) {
        stride *= (uint32_t)after->value_count;
    }
    *sweep = (struct scn_sweep){.title = title_make(loader, request, true, true),
                                .axis_title = title_make(loader, request, true, false),
                                .others_title = title_make(loader, request, false, true),
                                .axis_count = (uint32_t)axis->value_count,
                                .axis_stride = stride,
                                .points = points,
                                .point_count = (uint32_t)count};
    loader->scenario->sweep = sweep;
    loader->sweep_location = tree->location;
}

void scn_sweep_load(struct scn_loader *loader, const struct scn_tree *tree)
{
    struct request request = {0};
    if (loader->without_sweep) {
        return;
    }
    if (tree->kind == SCN_TREE_MAPPING && tree->count == 0) {
        return; // no sweep
    }
    bool good = tree->kind == SCN_TREE_MAPPING;
    if (!good) {
        scn_mistakes_add(&loader->mistakes, tree->location, "sweep: expected a mapping of paths to lists, found %s",
                         found_text(tree));
    }
    for (const struct scn_tree *entry = good ? tree->first : NULL; entry != NULL; entry = entry->next) {
        good = dimension_add(loader, &request, entry) && good;
    }
    if (good) {
        points_make(loader, &request, tree);
    }
    loader->sweep_is_bad = loader->scenario->sweep == NULL;
}

void scn_sweep_series_make(const struct scn_scenario *scenario, const char *bare, uint32_t point, char *series,
                           size_t size)
{
    const char *curve = scenario->sweep != NULL ? scenario->sweep->points[point].curve : "";
    snprintf(series, size, "%s%s%s", bare, curve[0] != '\0' ? ", " : "", curve);
}

void scn_sweep_check(struct scn_loader *loader)
{
    const struct scn_scenario *scenario = loader->scenario;
    const struct scn_sweep *sweep = scenario->sweep;
    if (sweep == NULL) {
        return;
    }
    const char *bare;
    for (uint32_t i = 0; (bare = scn_series(scenario, i)) != NULL; i++) {
        for (uint32_t k = 0; k < sweep->point_count; k++) {
            char series[4 * SCN_NAME_MAX];
            scn_sweep_series_make(scenario, bare, k, series, sizeof series);
            if (strlen(series) >= SCN_NAME_MAX) {
                scn_mistakes_add(&loader->mistakes, loader->sweep_location,
                                 "sweep: the name '%s' is longer than %d bytes", series, SCN_NAME_MAX - 1);
            }
        }
    }
}

void scn_sweep_series_cut(const struct scn_sweep *sweep, uint32_t number, char series[SCN_NAME_MAX])
{
    size_t length = strlen(series);
    size_t added = number > 0 && number <= sweep->point_count ? strlen(sweep->points[number - 1].curve) : 0;
    size_t tail = added > 0 ? added + strlen(", ") : 0;
    if (tail <= length) {
        series[length - tail] = '\0';
    }
}

void scn_sweep_series_group(const struct scn_sweep *sweep, uint32_t number, char series[SCN_NAME_MAX])
{
    scn_sweep_series_cut(sweep, number, series);
    const char *others = number > 0 && number <= sweep->point_count ? sweep->points[number - 1].others : "";
    if (others[0] != '\0') {
        size_t length = strlen(series);
        snprintf(series + length, SCN_NAME_MAX - length, ", %s", others);
    }
}

bool scn_sweep_gives(const struct scn_sweep *sweep, const char *key)
{
    bool gives = false;
    for (size_t i = 0; sweep != NULL && i < sweep->points[0].set_count; i++) {
        gives = gives || scn_set_gives(sweep->points[0].sets[i], key);
    }
    return gives;
}
